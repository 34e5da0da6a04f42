"""Advantage estimators: Generalized Advantage Estimation and the n-step estimator that it averages.

Owns the arithmetic on [T, E] arrays; must not know where rewards, values or episode starts come from.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]


def compute_gae(
    rewards: FloatArray,
    values: FloatArray,
    episode_starts: npt.NDArray[np.generic],
    last_values: FloatArray,
    dones: npt.NDArray[np.generic],
    gamma: float,
    gae_lambda: float,
) -> tuple[FloatArray, FloatArray]:
    """Generalized advantages and the returns they imply, by one backward pass.

    δ_t = r_t + γ·V_{t+1}·(1 − done_t) − V_t ;  Â_t = δ_t + γλ·(1 − done_t)·Â_{t+1} ;  R_t = Â_t + V_t

    Source: Schulman et al. 2017 (arXiv:1707.06347), eqs. 11–12; Schulman et al. 2016 (arXiv:1506.02438), eq. 16.
    Matches ``RolloutBuffer.compute_returns_and_advantage`` of SB3 2.9 bit for bit on float32 input.

    :param rewards: [T, E], reward after acting at step t, time-limit bootstrap included
    :param values: [T, E], V(s_t)
    :param episode_starts: [T, E] bool or 0/1, whether s_t is the first state of an episode
    :param last_values: [E], V(s_T), the state after the last step
    :param dones: [E] bool or 0/1, whether the last step ended its episode
    :param gamma: discount factor γ in [0, 1]
    :param gae_lambda: λ in [0, 1]: 0 is the TD error, 1 is Monte Carlo minus the baseline
    :return: advantages [T, E] and returns [T, E], in the dtype of ``values``
    :raises ValueError: if shapes disagree (nothing is ever broadcast)
    :raises TypeError: if ``values`` are not floats
    """
    _check_shapes(rewards, values, episode_starts, last_values, dones)
    next_values = np.concatenate([values[1:], last_values[None]])
    next_non_terminal = 1.0 - np.concatenate([episode_starts[1:], dones[None]]).astype(values.dtype)
    deltas = rewards + gamma * next_values * next_non_terminal - values
    decays = gamma * gae_lambda * next_non_terminal
    advantages = np.empty_like(values)
    following_advantage: FloatArray | float = 0.0
    for step in reversed(range(len(rewards))):
        following_advantage = deltas[step] + decays[step] * following_advantage
        advantages[step] = following_advantage
    return advantages, advantages + values


def n_step_advantages(
    rewards: FloatArray,
    values: FloatArray,
    episode_starts: npt.NDArray[np.generic],
    last_values: FloatArray,
    dones: npt.NDArray[np.generic],
    gamma: float,
    n_steps: int,
) -> FloatArray:
    """Advantages from n real rewards and then the critic: slow, readable, the reference that GAE averages.

    Â_t^(n) = r_t + γ·r_{t+1} + … + γ^{n−1}·r_{t+n−1} + γ^n·V(s_{t+n}) − V(s_t),
    cut short (and not bootstrapped) where the episode ends, and bootstrapped from s_T at the end of the rollout.

    Source: Schulman et al. 2016 (arXiv:1506.02438), eqs. 11–15. Has no counterpart in SB3.

    :param rewards: [T, E], time-limit bootstrap included
    :param values: [T, E]
    :param episode_starts: [T, E] bool or 0/1
    :param last_values: [E]
    :param dones: [E] bool or 0/1
    :param gamma: discount factor γ in [0, 1]
    :param n_steps: n ≥ 1, real rewards before the bootstrap
    :return: [T, E] advantages, in the dtype of ``values``
    :raises ValueError: if shapes disagree or ``n_steps`` < 1
    """
    _check_shapes(rewards, values, episode_starts, last_values, dones)
    if n_steps < 1:
        raise ValueError(f"n_steps={n_steps} must be at least 1: the shortest estimate uses one real reward.")
    horizon, n_envs = rewards.shape
    ends = np.concatenate([episode_starts[1:], dones[None]]).astype(bool)
    next_values = np.concatenate([values[1:], last_values[None]])
    advantages = np.empty_like(values)
    for env in range(n_envs):
        for start in range(horizon):
            estimate, discount = 0.0, 1.0
            for step in range(start, min(start + n_steps, horizon)):
                estimate += discount * rewards[step, env]
                discount *= gamma
                if ends[step, env]:
                    break
            else:
                estimate += discount * next_values[step, env]
            advantages[start, env] = estimate - values[start, env]
    return advantages


def _check_shapes(
    rewards: npt.NDArray[np.generic],
    values: npt.NDArray[np.generic],
    episode_starts: npt.NDArray[np.generic],
    last_values: npt.NDArray[np.generic],
    dones: npt.NDArray[np.generic],
) -> None:
    if not np.issubdtype(values.dtype, np.floating):
        raise TypeError(f"values are {values.dtype}; advantages would be truncated: pass floats.")
    if rewards.ndim != 2:
        raise ValueError(f"rewards has shape {rewards.shape}; expected two axes [T, E] (steps, environments).")
    for name, array, expected in (
        ("values", values, rewards.shape),
        ("episode_starts", episode_starts, rewards.shape),
        ("last_values", last_values, rewards.shape[1:]),
        ("dones", dones, rewards.shape[1:]),
    ):
        if array.shape != expected:
            raise ValueError(
                f"{name} has shape {array.shape}, but rewards has shape {rewards.shape}: expected {expected}. "
                "Reshape it; nothing is broadcast."
            )
