"""How observations are kept: as they come, or stacks of images as single frames that are put together when read.

Owns that choice and its exactness; must not know rewards, phases of a rollout or the order of serving.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from sb3_ppo_from_scratch.core.arrays import stacked
from sb3_ppo_from_scratch.core.records import FrameStacks
from sb3_ppo_from_scratch.rollout.minibatches import IntArray, rows

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int32]
Stored: TypeAlias = "Array | FrameStore"

# Steps after which data that do not chain are told from stacks that an episode's end interrupted. In rollouts that are
# shorter than this, single frames would save next to nothing.
_TRIAL_STEPS = 8
# A pool that is too small grows by this share of its first size.
_GROWTH = 16


class FramePool:
    """A growing row of frames, of which the first shows nothing.

    It grows by whole blocks, so that no frame is moved while a rollout is being stored.

    :param capacity: frames to allocate at once, ≥ 1
    :param frame_shape: (H, W)
    """

    def __init__(self, capacity: int, frame_shape: tuple[int, ...]) -> None:
        self._block_size = max(1, capacity // _GROWTH)
        self._blocks = [np.zeros((capacity, *frame_shape), dtype=np.uint8)]
        self.n_frames = 1

    def append(self, frames: Bytes) -> Positions:
        """Copy frames into the pool.

        :param frames: [n, H, W]
        :return: [n], where in the pool they are
        """
        first = self.n_frames
        while len(frames):
            n_free = sum(map(len, self._blocks)) - self.n_frames
            if n_free == 0:
                n_free = self._block_size
                self._blocks.append(np.zeros((n_free, *frames.shape[1:]), dtype=np.uint8))
            free = self._blocks[-1][-n_free:]
            n_copied = min(n_free, len(frames))
            free[:n_copied] = frames[:n_copied]
            frames = frames[n_copied:]
            self.n_frames += n_copied
        return np.arange(first, self.n_frames, dtype=np.int32)

    def frames(self) -> Bytes:
        """All frames; blocks that were added since the last call are joined first.

        :return: [n_frames, H, W], a view
        """
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0][: self.n_frames]

    def clear(self) -> None:
        """Forget all frames but the first; what was allocated stays so."""
        if len(self._blocks) > 1:
            shape = (sum(map(len, self._blocks)), *self._blocks[0].shape[1:])
            # In this order, because the old blocks are to be freed first.
            self._blocks.clear()
            self._blocks.append(np.zeros(shape, dtype=np.uint8))
        self.n_frames = 1


class FrameStore:
    """T steps of E stacks of C frames, each frame once.

    A stack whose first C − 1 frames are, bit for bit, the last C − 1 of the stack that its environment showed a step
    earlier adds one frame; any other adds all of its frames but the empty ones, of which the pool has one already
    (SB3's VecFrameStack empties the stack where an episode starts). Whatever the data, what is read is what was added.

    :param n_steps: T
    :param n_envs: E
    :param shape: (C, H, W), the newest frame last
    """

    def __init__(self, n_steps: int, n_envs: int, shape: tuple[int, ...]) -> None:
        n_frames, *frame_shape = shape
        self._index: Positions = np.zeros((n_steps, n_envs, n_frames), dtype=np.int32)
        # Exactly what a rollout takes whose stacks are emptied where episodes start, and where it begins full ones.
        self._pool = FramePool(1 + (n_steps + n_frames - 1) * n_envs, tuple(frame_shape))
        # The stacks of this step and of the one before, taking turns.
        self._newest: Bytes = np.zeros((2, n_envs, *shape), dtype=np.uint8)
        self._n_steps = 0

    @property
    def is_wasteful(self) -> bool:
        """Whether more than half of the frames that need not be stored were stored, over enough steps to tell."""
        _, n_envs, n_frames = self._index.shape
        most = (1 + n_frames) / 2 * n_envs * self._n_steps
        return self._n_steps >= _TRIAL_STEPS and self._pool.n_frames > most

    def reset(self) -> None:
        """Begin a new rollout."""
        self._pool.clear()
        self._n_steps = 0

    def add(self, step: int, stacks: Bytes) -> None:
        """Store one step of every environment.

        :param step: in [0, T), the first or the one after the step that was added last
        :param stacks: [E, C, H, W]
        """
        current, previous, positions = self._newest[step % 2], self._newest[(step - 1) % 2], self._index[step]
        current[:] = stacks.reshape(current.shape)
        broken = np.full(len(current), step == 0)
        if step > 0:
            positions[:, :-1] = self._index[step - 1, :, 1:]
            broken = (current[:, :-1] != previous[:, 1:]).any(axis=(1, 2, 3))
        if broken.any():
            positions[broken, :-1] = self._appended(current[broken, :-1])
        positions[:, -1] = self._pool.append(current[:, -1])
        self._n_steps = step + 1

    def _appended(self, stacks: Bytes) -> Positions:
        frames = stacks.reshape(-1, *stacks.shape[2:])
        positions = np.zeros(len(frames), dtype=np.int32)  # of the empty frame
        shows_something = frames.any(axis=(1, 2))
        positions[shows_something] = self._pool.append(frames[shows_something])
        return positions.reshape(stacks.shape[:2])

    def rows(self, indices: IntArray) -> Bytes:
        """Stacks by their environment-major number; see ``minibatches.rows``.

        :param indices: [B], in [0, T·E)
        :return: [B, C, H, W], a copy
        """
        served: Bytes = stacked(self._pool.frames(), rows(self._index, indices))
        return served

    def packed(self) -> FrameStacks:
        """All frames and which of them each sample sees; views of what is stored.

        :return: N = T·E samples, step-major
        """
        return FrameStacks(self._pool.frames(), self._index.reshape(-1, self._index.shape[-1]))

    def unpacked(self) -> Bytes:
        """All stacks, a copy.

        :return: [T, E, C, H, W], zero where this rollout has stored nothing yet
        """
        frames = self._pool.frames()
        observations = np.zeros((*self._index.shape, *frames.shape[1:]), dtype=np.uint8)
        for step in range(self._n_steps):
            observations[step] = stacked(frames, self._index[step])
        return observations


def new_storage(n_steps: int, n_envs: int, space: spaces.Space[Any], shape: tuple[int, ...]) -> Stored:
    """Room for the observations of one space: single frames where they may be stacks of images, else an array.

    :param n_steps: T
    :param n_envs: E
    :param space: of one observation; images are a uint8 Box [C, H, W] with 2 ≤ C ≤ H, W
    :param shape: in which one observation is stored
    :return: zeros
    """
    is_bytes = isinstance(space, spaces.Box) and space.dtype == np.uint8
    if is_bytes and len(shape) == 3 and 2 <= shape[0] == min(shape) and n_steps >= _TRIAL_STEPS:
        return FrameStore(n_steps, n_envs, shape)
    return np.zeros((n_steps, n_envs, *shape), dtype=space.dtype)


def with_row(stored: Stored, step: int, row: Array) -> Stored:
    """Store one step; what is stored moves to a wider array where it must, or to a plain one where frames don't pay.

    :param stored: is written to
    :param step: in [0, T)
    :param row: [E, ...], numbers in the dtype of the space, or floats whatever the space says
    :return: where to store from now on
    :raises ValueError: if ``row`` has another size than a step
    """
    if isinstance(stored, FrameStore):
        if row.dtype == np.uint8:
            stored.add(step, row)
            return stored.unpacked() if stored.is_wasteful else stored
        stored = stored.unpacked()
    is_narrow = stored.dtype not in (np.float32, np.float64)
    if is_narrow and row.dtype != stored.dtype and np.issubdtype(row.dtype, np.floating):
        stored = stored.astype(np.float32)
    # Discrete observations come as [E] and are stored as [E, 1].
    stored[step] = row.reshape(stored.shape[1:])
    return stored


def whole(stored: Stored) -> Array:
    """All observations.

    :param stored: T steps of E environments
    :return: [T, E, ...], itself where it is an array, a copy where it is frames
    """
    return stored.unpacked() if isinstance(stored, FrameStore) else stored


def packed(stored: Stored) -> Array | FrameStacks:
    """All observations as N = T·E samples, step-major and without a copy.

    :param stored: T steps of E environments
    :return: [N, ...], or frames and the index of N stacks
    """
    return stored.packed() if isinstance(stored, FrameStore) else stored.reshape(-1, *stored.shape[2:])


def served(stored: Stored, indices: IntArray) -> Array:
    """Observations by their environment-major number; see ``minibatches.rows``.

    :param stored: T steps of E environments
    :param indices: [B], in [0, T·E)
    :return: [B, ...], a copy
    """
    return stored.rows(indices) if isinstance(stored, FrameStore) else rows(stored, indices)
