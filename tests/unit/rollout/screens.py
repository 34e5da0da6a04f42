"""Environments that show stacks of frames, and buffers that are filled with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces

from sb3_ppo_from_scratch.core.arrays import stacked
from sb3_ppo_from_scratch.core.records import FrameStacks
from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from sb3_ppo_from_scratch.rollout.minibatches import rows

Bytes = npt.NDArray[np.uint8]
T, E, C, H, W = 20, 3, 4, 6, 5


class Screens:
    """E environments that show random frames through a stack, as SB3's VecFrameStack or with a full stack at a start.

    :param n_values: of a pixel; one makes all frames empty, two of one pixel repeat each other
    :param end_rate: share of steps that end an episode
    :param is_emptied: whether an episode starts with one frame and empty ones, else with C new frames
    """

    def __init__(
        self, seed: int, n_envs: int = E, shape: tuple[int, ...] = (C, H, W), n_values: int = 256, **ends: Any
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._bank = self._rng.integers(0, n_values, (200, *shape[1:]), dtype=np.uint8)
        self._end_rate: float = ends.get("end_rate", 0.1)
        self._is_emptied: bool = ends.get("is_emptied", True)
        self._stacks = np.zeros((n_envs, *shape), np.uint8)

    def _frames(self, *shape: int) -> Bytes:
        frames: Bytes = self._bank[self._rng.integers(0, len(self._bank), shape)]
        return frames

    def step(self) -> Bytes:
        ended = self._rng.random(len(self._stacks)) < self._end_rate
        self._stacks[:, :-1] = self._stacks[:, 1:]
        self._stacks[ended] = 0 if self._is_emptied else self._frames(ended.sum(), self._stacks.shape[1])
        self._stacks[:, -1] = self._frames(len(self._stacks))
        return self._stacks.copy()

    def rollout(self, n_steps: int = T) -> Bytes:
        return np.stack([self.step() for _ in range(n_steps)])


def new_buffer(observations: npt.NDArray[Any], buffer_class: type[Any] = RolloutBuffer) -> Any:
    """Empty, for rollouts of that shape of bytes."""
    space = spaces.Box(0, 255, observations.shape[2:], np.uint8)
    n_steps, n_envs = observations.shape[:2]
    return buffer_class(n_steps, space, spaces.Discrete(2), "cpu", n_envs=n_envs)


def add_steps(buffer: Any, observations: npt.NDArray[Any] | list[npt.NDArray[Any]]) -> None:
    for row in observations:
        scalars = np.zeros(len(row), np.float32)
        buffer.add(row, scalars[:, None], scalars, scalars, th.from_numpy(scalars), th.from_numpy(scalars))


def filled(observations: npt.NDArray[Any]) -> Any:
    buffer = new_buffer(observations)
    add_steps(buffer, observations)
    return buffer


def keeps_frames(buffer: RolloutBuffer) -> bool:
    rollout = buffer.packed()
    assert rollout is not None
    return isinstance(rollout.observations, FrameStacks)


def n_bytes(holder: Any) -> int:
    """Of every array that an object holds, at any depth."""
    if isinstance(holder, np.ndarray):
        return holder.nbytes
    parts = holder if isinstance(holder, (list, tuple)) else getattr(holder, "__dict__", {}).values()
    return sum(map(n_bytes, parts))


def assert_reads_as(buffer: RolloutBuffer, observations: npt.NDArray[Any]) -> None:
    """Whatever way is taken to read the observations, and as often as one likes."""
    n_samples = observations.shape[0] * observations.shape[1]
    for _ in range(2):
        np.testing.assert_array_equal(buffer.observations, observations, strict=True)
        some = np.random.default_rng(0).permutation(n_samples)[: n_samples // 2 + 1]
        served = buffer._get_samples(some).observations.numpy()
        np.testing.assert_array_equal(served, rows(observations, some), strict=True)
        rollout = buffer.packed()
        assert rollout is not None
        packed = rollout.observations
        columns = stacked(*packed) if isinstance(packed, FrameStacks) else packed
        np.testing.assert_array_equal(columns, observations.reshape(n_samples, *observations.shape[2:]), strict=True)
