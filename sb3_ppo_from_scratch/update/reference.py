"""The reference engine: any SB3 policy through its public methods, bit for bit as SB3 2.9 updates it.

Owns the order of operations of one minibatch; must not know epochs, schedules or logging.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core import diagnostics, losses
from sb3_ppo_from_scratch.core.records import LossTerms, Minibatch, UpdateSettings
from sb3_ppo_from_scratch.networks.graphs import release_graphs
from sb3_ppo_from_scratch.update.objective import POLICY_OBJECTIVES, VALUE_CLIPS, VALUE_LOSSES, scaled_advantages


class ReferenceEngine:
    """One minibatch, one optimizer step, through ``policy.evaluate_actions`` and automatic differentiation.

    :param policy: any SB3 actor-critic policy, overridden methods included
    """

    def __init__(self, policy: ActorCriticPolicy) -> None:
        self._policy = policy
        self._rollout_buffer: Any = None
        self._batch_size = 0
        self._loss: th.Tensor | None = None

    def begin(self, rollout_buffer: Any, batch_size: int) -> None:
        """See ``UpdateEngine``."""
        self._policy.set_training_mode(True)
        self._rollout_buffer, self._batch_size = rollout_buffer, batch_size

    def minibatches(self) -> Iterator[Minibatch]:
        """See ``UpdateEngine``: the buffer's own minibatches."""
        minibatches: Iterator[Minibatch] = self._rollout_buffer.get(self._batch_size)
        return minibatches

    def prepared(self, minibatch: Minibatch) -> Minibatch:
        """See ``UpdateEngine``: nothing to prepare."""
        return minibatch

    def evaluate(self, minibatch: Minibatch, settings: UpdateSettings) -> LossTerms:
        """Score the minibatch under the current policy.

        Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 9, minimised. Matches the body of SB3 2.9's
        ``PPO.train`` bit for bit on a CPU with one torch thread.

        :param minibatch: B transitions
        :param settings: of this update
        :return: terms for the log, detached
        """
        actions = minibatch.actions
        if isinstance(self._policy.action_space, spaces.Discrete):
            actions = actions.long().flatten()
        values, log_prob, entropy = self._policy.evaluate_actions(minibatch.observations, actions)
        advantages = scaled_advantages(
            minibatch.advantages, settings.normalize_advantage, settings.advantage_statistics
        )
        log_ratio = log_prob - minibatch.old_log_prob
        ratio = th.exp(log_ratio)

        policy_loss = POLICY_OBJECTIVES[settings.objective].loss(log_ratio, ratio, advantages, settings)
        criterion = VALUE_LOSSES[settings.value_loss]
        value_loss = VALUE_CLIPS[settings.value_clip].loss(
            values.flatten(), minibatch.old_values, minibatch.returns, settings.clip_range_vf, criterion
        )
        entropy_loss = losses.entropy_loss(entropy, log_prob)
        with th.no_grad():
            approx_kl = diagnostics.approx_kl(log_ratio, ratio)
            approx_kl_k1 = diagnostics.approx_kl_k1(log_ratio)
            clip_fraction = diagnostics.clip_fraction(ratio, settings.clip_range)
        self._loss = losses.total_loss(policy_loss, value_loss, entropy_loss, settings.vf_coef, settings.ent_coef)
        return LossTerms(
            loss=self._loss.detach(),
            policy_loss=policy_loss.detach(),
            value_loss=value_loss.detach(),
            entropy_loss=entropy_loss.detach(),
            approx_kl=approx_kl,
            clip_fraction=clip_fraction,
            approx_kl_k1=approx_kl_k1,
        )

    def step(self, settings: UpdateSettings) -> th.Tensor:
        """Back-propagate, clip the joint gradient norm, step the policy's own optimizer.

        :param settings: of this update
        :return: the norm before clipping, a scalar
        """
        assert self._loss is not None
        self._policy.optimizer.zero_grad()
        self._loss.backward()  # type: ignore[no-untyped-call]
        grad_norm = th.nn.utils.clip_grad_norm_(self._policy.parameters(), settings.max_grad_norm)
        self._policy.optimizer.step()
        return grad_norm

    def finish(self) -> None:
        """See ``UpdateEngine``."""
        release_graphs(self._policy)
        self._rollout_buffer, self._loss = None, None


class IsolatedEngine(ReferenceEngine):
    """The reference engine for policies that have no counterpart, apart from everybody else's random draws.

    :param policy: any SB3 actor-critic policy
    :param randomness: a context in which the policy draws (dropout, for instance)
    """

    def __init__(self, policy: ActorCriticPolicy, randomness: AbstractContextManager[None]) -> None:
        super().__init__(policy)
        self._randomness = randomness

    def evaluate(self, minibatch: Minibatch, settings: UpdateSettings) -> LossTerms:
        """See ``ReferenceEngine``."""
        with self._randomness:
            return super().evaluate(minibatch, settings)
