"""Environments that bear witness: what they showed, what they were handed, what became of their arrays.

Owns scripted dynamics; must not know any algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

UNIT_BOX = spaces.Box(-1.0, 1.0, (2,), np.float32)


class CountingEnv(gym.Env[np.ndarray[Any, Any], int]):
    """Shows how often it was reset and how many steps the episode has, so that a lost step leaves a gap.

    :param episode_length: steps until the time limit truncates
    """

    def __init__(self, episode_length: int = 5) -> None:
        self.observation_space = spaces.Box(-1e6, 1e6, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.episode_length = episode_length
        self._episode, self._step = 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        self._episode, self._step = self._episode + 1, 0
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray[Any, Any], float, bool, bool, dict[str, Any]]:
        self._step += 1
        return self._observation(), 1.0, False, self._step == self.episode_length, {}

    def _observation(self) -> np.ndarray[Any, Any]:
        return np.array([self._episode, self._step], np.float32)


class ActionRecorder(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps every action that the wrapped environment is handed, untouched.

    :param env: receives the actions
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.received: list[Any] = []

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.received.append(action)
        return self.env.step(action)


class ArrayVecEnv(VecEnv):
    """A vector environment with its own arrays: any reward dtype, optionally write-protected, all of them kept.

    Every episode lasts two steps and ends at a time limit; every reward is 1.

    :param n_envs: E
    :param reward_dtype: of the reward array
    :param writeable: False protects every array that is handed out
    """

    def __init__(self, n_envs: int = 2, reward_dtype: Any = np.float32, writeable: bool = True) -> None:
        super().__init__(n_envs, UNIT_BOX, spaces.Discrete(2))
        self._reward_dtype, self._writeable = reward_dtype, writeable
        self._random = np.random.default_rng(0)
        self._n_steps = 0
        self.handed_out: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []

    def _hand_out(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        array.flags.writeable = self._writeable
        self.handed_out.append((array, array.copy()))
        return array

    def _observations(self) -> np.ndarray[Any, Any]:
        return self._hand_out(self._random.uniform(-1, 1, (self.num_envs, 2)).astype(np.float32))

    def reset(self) -> np.ndarray[Any, Any]:
        self._n_steps = 0
        return self._observations()

    def step_async(self, actions: np.ndarray[Any, Any]) -> None:
        self._n_steps += 1

    def step_wait(self) -> VecEnvStepReturn:
        truncated = self._n_steps % 2 == 0
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if truncated:
            last = self._observations()
            infos = [{"TimeLimit.truncated": True, "terminal_observation": last[i]} for i in range(self.num_envs)]
        rewards = self._hand_out(np.ones(self.num_envs, self._reward_dtype))
        dones = self._hand_out(np.full(self.num_envs, truncated))
        return self._observations(), rewards, dones, infos

    def modified(self) -> list[np.ndarray[Any, Any]]:
        """The arrays that no longer hold what they held when they were handed out."""
        return [array for array, kept in self.handed_out if not np.array_equal(array, kept)]

    def close(self) -> None: ...

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [None] * self.num_envs

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Any = None
    ) -> Sequence[bool]:  # type: ignore[override]
        return [False] * self.num_envs
