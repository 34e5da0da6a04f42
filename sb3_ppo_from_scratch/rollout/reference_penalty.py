"""The charge on every reward that keeps a policy near to a frozen one.

Owns that arithmetic; must not know where the frozen policy is from, nor how a rollout is learnt from.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.networks.observations import as_tensors

# Transitions that the frozen policy is asked about at once.
_ROWS = 512


class ReferencePenalty(NamedTuple):
    """r_t ← r_t − c·(log π(a_t|s_t) − log π_ref(a_t|s_t)), whose mean is c times a k1 estimate of KL(π ‖ π_ref).

    Source: Ziegler et al. 2019 (arXiv:1909.08593), eq. 2; Ouyang et al. 2022 (arXiv:2203.02155), eq. 2.

    :param policy: π_ref, frozen
    :param coef: c ≥ 0, in units of reward per nat
    """

    policy: ActorCriticPolicy
    coef: float

    def charge(self, rollout_buffer: Any) -> float:
        """Take the charge off the rewards that a rollout has stored; nothing but the buffer is written to.

        :param rollout_buffer: full, before its advantages are computed; ours, or a class with the interface of SB3's
        :return: mean of log π − log π_ref over the rollout, in nats
        """
        log_ratio = rollout_buffer.log_probs - self._log_probs(rollout_buffer)
        if self.coef != 0.0:
            rollout_buffer.rewards -= np.float32(self.coef) * log_ratio
        return float(log_ratio.mean(dtype=np.float64))

    def _log_probs(self, rollout_buffer: Any) -> npt.NDArray[np.float32]:
        observations, actions = rollout_buffer.observations, rollout_buffer.actions
        n_steps, n_envs = actions.shape[:2]
        stride = max(1, _ROWS // n_envs)
        parts = [
            self._log_probs_of(_rows(observations, part), _rows(actions, part))
            for part in (slice(start, start + stride) for start in range(0, n_steps, stride))
        ]
        return np.concatenate(parts).reshape(n_steps, n_envs)

    def _log_probs_of(self, observations: Any, actions: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        policy = self.policy
        actions_taken = th.as_tensor(actions.astype(np.float32), device=policy.device)
        if isinstance(policy.action_space, spaces.Discrete):
            actions_taken = actions_taken.long().flatten()
        with th.no_grad():
            _, log_prob, _ = policy.evaluate_actions(as_tensors(observations, policy.device), actions_taken)
        on_host: npt.NDArray[np.float32] = log_prob.cpu().numpy()
        return on_host


def _rows(columns: Any, steps: slice) -> Any:
    """Some steps of a [T, E, ...] array, or of every array of a dict, as rows."""
    if isinstance(columns, dict):
        return {key: _rows(column, steps) for key, column in columns.items()}
    part = columns[steps]
    return part.reshape(-1, *part.shape[2:])
