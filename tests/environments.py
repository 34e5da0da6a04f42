"""Small deterministic environments for every observation and action family, shared by the test rooms.

Owns dynamics and spaces; must not know any algorithm. Runs that act alike see the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

OBSERVATION_SPACES: dict[str, spaces.Space[Any]] = {
    "vector": spaces.Box(-1.0, 1.0, (4,), np.float32),
    "image": spaces.Box(0, 255, (1, 36, 36), np.uint8),
    "channels_last_image": spaces.Box(0, 255, (36, 36, 3), np.uint8),
    "discrete": spaces.Discrete(5),
    "multi_discrete": spaces.MultiDiscrete([3, 4]),
    "multi_binary": spaces.MultiBinary(3),
    "dict": spaces.Dict(
        {
            "position": spaces.Box(-1.0, 1.0, (2,), np.float32),
            "camera": spaces.Box(0, 255, (1, 36, 36), np.uint8),
            "gear": spaces.Discrete(3),
        }
    ),
    "dict_of_vectors": spaces.Dict(
        {
            "position": spaces.Box(-1.0, 1.0, (2,), np.float32),
            "speed": spaces.Box(-1.0, 1.0, (3,), np.float32),
        }
    ),
}

ACTION_SPACES: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(3),
    "box": spaces.Box(-1.0, 1.0, (2,), np.float32),
    "uneven_box": spaces.Box(np.array([-2, 0], np.float32), np.array([1, 3], np.float32)),
    "multi_discrete": spaces.MultiDiscrete([3, 2]),
    "multi_binary": spaces.MultiBinary(3),
}

_N_HIDDEN = 3
_DRIFT = np.array([[0.9, 0.4, 0.0], [-0.4, 0.9, 0.2], [0.1, -0.2, 0.9]])
_PUSH = np.array([0.5, -0.3, 0.2])


class HiddenStateEnv(gym.Env[Any, Any]):
    """A smooth three-number state that actions push about, seen through any observation space.

    The state starts from the environment's own generator, which has a fixed seed until ``reset`` gets one.
    The reward is highest at the origin. Episodes end at ``episode_length`` (termination) or at ``time_limit``
    (truncation), whichever comes first.

    :param observation: key of ``OBSERVATION_SPACES``, or a space
    :param action: key of ``ACTION_SPACES``, or a space
    :param episode_length: steps until termination; None for never
    :param time_limit: steps until truncation; None for never
    """

    def __init__(
        self,
        observation: str | spaces.Space[Any] = "vector",
        action: str | spaces.Space[Any] = "discrete",
        *,
        episode_length: int | None = 7,
        time_limit: int | None = None,
    ) -> None:
        self.observation_space = OBSERVATION_SPACES[observation] if isinstance(observation, str) else observation
        self.action_space = ACTION_SPACES[action] if isinstance(action, str) else action
        self.episode_length = episode_length
        self.time_limit = time_limit
        self.np_random = np.random.default_rng(0)
        self._state = np.zeros(_N_HIDDEN)
        self._n_steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = self.np_random.uniform(-1.0, 1.0, _N_HIDDEN)
        self._n_steps = 0
        return seen_through(self.observation_space, self._state), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._state = np.tanh(_DRIFT @ self._state + _PUSH * effort(self.action_space, action))
        self._n_steps += 1
        reward = 1.0 - float(np.square(self._state).sum())
        terminated = self._n_steps == self.episode_length
        truncated = self._n_steps == self.time_limit
        return seen_through(self.observation_space, self._state), reward, terminated, truncated, {}


def effort(space: spaces.Space[Any], action: Any) -> float:
    """An action of any family as one number, every component of it counting differently.

    :param space: that the action belongs to
    :param action: one action
    :return: within [−1, 1] for actions within their space
    """
    if isinstance(space, spaces.Box):
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    elif isinstance(space, spaces.Discrete):
        low, high = np.float64(space.start), np.float64(space.start + space.n - 1)
    elif isinstance(space, spaces.MultiDiscrete):
        low, high = space.start.astype(np.float64), (space.start + space.nvec - 1).astype(np.float64)
    else:
        low, high = np.zeros(space.shape or ()), np.ones(space.shape or ())
    span = np.where(high > low, high - low, 1.0)
    scaled = np.ravel(2.0 * (np.asarray(action, np.float64) - low) / span - 1.0)
    weights = 1.0 / np.arange(1, len(scaled) + 1)
    return float(scaled @ weights / weights.sum())


def seen_through(space: spaces.Space[Any], state: np.ndarray[Any, Any]) -> Any:
    """The hidden state as an observation of a space, in the space's shape and dtype.

    :param space: Box, Discrete, MultiDiscrete, MultiBinary or a Dict of these
    :param state: numbers in [−1, 1]
    :return: one observation
    """
    if isinstance(space, spaces.Dict):
        # Rolled, so that no two keys show the same numbers.
        return {key: seen_through(part, np.roll(state, i)) for i, (key, part) in enumerate(space.spaces.items())}
    share = (state + 1.0) / 2.0
    if isinstance(space, spaces.Discrete):
        return int(min(share[0] * space.n, space.n - 1)) + int(space.start)
    if isinstance(space, spaces.MultiDiscrete):
        shares = np.resize(share, space.nvec.shape)
        return (np.minimum(shares * space.nvec, space.nvec - 1)).astype(space.dtype) + space.start
    if isinstance(space, spaces.MultiBinary):
        return (np.resize(share, space.shape) > 0.5).astype(space.dtype)
    assert isinstance(space, spaces.Box)
    low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)
    return (low + (high - low) * np.resize(share, space.shape)).astype(space.dtype)


def environment_makers(n_envs: int = 1, **settings: Any) -> list[Callable[[], gym.Env[Any, Any]]]:
    """Functions that build monitored environments, for any vector environment of SB3.

    :param n_envs: how many
    :param settings: arguments of ``HiddenStateEnv``
    :return: ``n_envs`` picklable functions
    """
    return [partial(_monitored, settings) for _ in range(n_envs)]


def vector_environment(n_envs: int = 1, **settings: Any) -> DummyVecEnv:
    """``n_envs`` monitored environments stepped one after the other.

    :param n_envs: how many
    :param settings: arguments of ``HiddenStateEnv``
    :return: a vector environment of SB3
    """
    return DummyVecEnv(environment_makers(n_envs, **settings))


def _monitored(settings: dict[str, Any]) -> gym.Env[Any, Any]:
    return Monitor(HiddenStateEnv(**settings))
