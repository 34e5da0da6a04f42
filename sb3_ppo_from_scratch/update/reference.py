"""The reference engine: any SB3 policy through its public methods, bit for bit as SB3 2.9 updates it.

Owns the order of operations of one minibatch; must not know epochs, schedules or logging.
"""

from __future__ import annotations

from typing import ClassVar

import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core import diagnostics, losses
from sb3_ppo_from_scratch.core.records import LossTerms, Minibatch, UpdateSettings


class ReferenceEngine:
    """One minibatch, one optimizer step, through ``policy.evaluate_actions`` and automatic differentiation.

    :param policy: any SB3 actor-critic policy, overridden methods included
    """

    min_batch_size: ClassVar[int] = 1

    def __init__(self, policy: ActorCriticPolicy) -> None:
        self._policy = policy

    def evaluate(self, minibatch: Minibatch, settings: UpdateSettings) -> LossTerms:
        """Score the minibatch under the current policy.

        Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 9, minimised. Matches the body of SB3 2.9's
        ``PPO.train`` bit for bit on a CPU with one torch thread.

        :param minibatch: B transitions
        :param settings: of this update
        :return: the loss, with its graph, and detached terms for the log
        """
        actions = minibatch.actions
        if isinstance(self._policy.action_space, spaces.Discrete):
            actions = actions.long().flatten()
        values, log_prob, entropy = self._policy.evaluate_actions(minibatch.observations, actions)
        advantages = minibatch.advantages
        if settings.normalize_advantage:
            advantages = losses.normalized_advantages(advantages)
        log_ratio = log_prob - minibatch.old_log_prob
        ratio = th.exp(log_ratio)

        policy_loss = losses.clipped_surrogate_loss(ratio, advantages, settings.clip_range)
        value_loss = losses.value_loss(
            values.flatten(), minibatch.old_values, minibatch.returns, settings.clip_range_vf
        )
        entropy_loss = losses.entropy_loss(entropy, log_prob)
        with th.no_grad():
            approx_kl = diagnostics.approx_kl(log_ratio)
            clip_fraction = diagnostics.clip_fraction(ratio, settings.clip_range)
        return LossTerms(
            loss=losses.total_loss(policy_loss, value_loss, entropy_loss, settings.vf_coef, settings.ent_coef),
            policy_loss=policy_loss.detach(),
            value_loss=value_loss.detach(),
            entropy_loss=entropy_loss.detach(),
            approx_kl=approx_kl,
            clip_fraction=clip_fraction,
        )

    def step(self, loss: th.Tensor, settings: UpdateSettings) -> None:
        """Back-propagate, clip the joint gradient norm, step the policy's own optimizer.

        :param loss: scalar with a graph
        :param settings: of this update
        """
        self._policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        th.nn.utils.clip_grad_norm_(self._policy.parameters(), settings.max_grad_norm)
        self._policy.optimizer.step()
