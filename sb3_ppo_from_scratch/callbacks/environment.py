"""What can be known of the environments beside their rewards: how long episodes are, who skips frames, whose gamma.

Owns these observations; must not judge them.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.atari_wrappers import MaxAndSkipEnv
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from sb3_ppo_from_scratch.core.health import Episodes

_N_EPISODES = 100


class EpisodeRecord:
    """Lengths and last rewards of the latest episodes, in steps of the agent.

    Read from rollouts, since ``Monitor`` counts frames where a wrapper outside of it skips some.
    """

    def __init__(self) -> None:
        self._lengths: deque[int] = deque(maxlen=_N_EPISODES)
        self._last_rewards: deque[float] = deque(maxlen=_N_EPISODES)
        self._n_steps = 0
        self._beginnings: list[int] = []
        self._mean_reward = 0.0
        self._previous: list[float] = []

    def add(self, rewards: npt.NDArray[np.floating], episode_starts: npt.NDArray[np.generic]) -> None:
        """Take in the next rollout.

        :param rewards: [T, E], as the environment gave them
        :param episode_starts: [T, E] bool or 0/1
        """
        n_steps, n_envs = rewards.shape
        self._beginnings = self._beginnings or [0] * n_envs
        steps, envs = np.nonzero(episode_starts)
        for step, env in zip(steps.tolist(), envs.tolist(), strict=True):
            now = self._n_steps + step
            if now > 0:
                self._lengths.append(now - self._beginnings[env])
                self._last_rewards.append(abs(float(rewards[step - 1, env] if step > 0 else self._previous[env])))
            self._beginnings[env] = now
        self._n_steps += n_steps
        self._previous = rewards[-1].tolist()
        self._mean_reward = float(np.abs(rewards).mean())

    def latest(self, *, rewards_are_raw: bool) -> Episodes:
        """The latest episodes in two numbers.

        :param rewards_are_raw: False where the value of a state that a time limit cut off was added to a last reward
        :return: NaN before the first episode has ended
        """
        if not self._lengths:
            return Episodes(float("nan"), float("nan"))
        length = sum(self._lengths) / len(self._lengths)
        everything = self._mean_reward * length
        if not (rewards_are_raw and everything > 0):
            return Episodes(length, float("nan"))
        return Episodes(length, sum(self._last_rewards) / len(self._last_rewards) / everything)


def emulator_frame_skip(env: VecEnv) -> int:
    """Frames that an Atari environment itself plays per step, by the id or arguments that it was made with.

    :param env: any vector environment
    :return: at least 1; the larger of a random range
    """
    try:
        spec = env.get_attr("spec", 0)[0]
    except (AttributeError, NotImplementedError):
        return 1
    skip: Any = (getattr(spec, "kwargs", None) or {}).get("frameskip", 1)
    # (2, 5) stands for one of 2, 3, 4, as for ``range``.
    return int(max(skip) - 1 if isinstance(skip, (tuple, list)) else skip)


def is_wrapped_to_skip(env: VecEnv) -> bool:
    """Whether SB3's wrapper that repeats actions is around the environments, by itself or within ``AtariWrapper``.

    :param env: any vector environment
    :return: the answer for the first of them
    """
    try:
        return bool(env.env_is_wrapped(MaxAndSkipEnv, 0)[0])
    except (AttributeError, NotImplementedError):
        return False


def normalization_gamma(env: VecEnv) -> float | None:
    """The γ with which ``VecNormalize`` discounts.

    :param env: any vector environment
    :return: None where rewards are not normalised
    """
    wrapper = unwrap_vec_normalize(env)
    return float(wrapper.gamma) if wrapper is not None and wrapper.norm_reward else None
