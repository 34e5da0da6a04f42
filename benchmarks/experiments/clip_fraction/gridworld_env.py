"""The gridworld as a Gymnasium environment.

Owns observations and random draws; must not know the layout, which is the process's.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from benchmarks.experiments.markov import MarkovDecisionProcess, gridworld

Observation = npt.NDArray[np.float32]


class GridworldEnv(gym.Env[Observation, np.int64]):
    """One-hot states, episodes of at most 100 steps if wrapped so.

    :param process: to play; None for the gridworld of the other experiments
    """

    def __init__(self, process: MarkovDecisionProcess | None = None) -> None:
        self._process = process or gridworld()
        self._state = self._process.start
        self.observation_space = gym.spaces.Box(0.0, 1.0, (self._process.n_states,), np.float32)
        self.action_space = gym.spaces.Discrete(self._process.n_actions)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin in the start state."""
        super().reset(seed=seed, options=options)
        self._state = self._process.start
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Draw the next state."""
        probabilities = self._process.transitions[self._state, int(action)]
        following = int(self.np_random.choice(self._process.n_states, p=probabilities))
        reward = float(self._process.rewards[self._state, int(action), following])
        self._state = following
        return self._observation(), reward, bool(self._process.terminal[following]), False, {}

    def _observation(self) -> Observation:
        one_hot = np.zeros(self._process.n_states, dtype=np.float32)
        one_hot[self._state] = 1.0
        return one_hot
