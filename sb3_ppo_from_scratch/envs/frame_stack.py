"""The last frames of every environment as one observation each, as SB3's ``VecFrameStack`` stacks them.

Owns frames only; must not know where they come from.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


class FrameStack:
    """The last ``n_stack`` frames, oldest first, channels first as after ``VecTransposeImage``.

    :param n_envs: number of environments
    :param n_stack: frames per observation
    :param size: width and height of a frame
    """

    def __init__(self, n_envs: int, n_stack: int, size: int) -> None:
        self.space = spaces.Box(0, 255, (n_stack, size, size), np.uint8)
        # A ring: a new frame takes the place of the oldest, and nothing is moved.
        self._ring = np.zeros((n_stack, n_envs, size, size), np.uint8)
        self._newest = 0

    def clear(self) -> None:
        """Make every frame black."""
        self._ring[...] = 0

    def push(self, frames: NDArray[np.uint8]) -> None:
        """Add the newest frames.

        :param frames: [n_envs, size, size]
        """
        self._newest = (self._newest + 1) % len(self._ring)
        self._ring[self._newest] = frames

    def ended(self, i: int, last_frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Environment i ended an episode: what was pushed for it is the first frame of the next, before it is black.

        :param i: which environment
        :param last_frame: [size, size] the last of the episode that ended
        :return: [n_stack, size, size] the last observation of that episode
        """
        first_frame = self._ring[self._newest, i].copy()
        self._ring[self._newest, i] = last_frame
        last_observation = self._ring[self._order(), i]
        self._ring[:, i] = 0
        self._ring[self._newest, i] = first_frame
        return last_observation

    def observations(self) -> NDArray[np.uint8]:
        """The current observations.

        :return: [n_envs, n_stack, size, size], in new memory
        """
        n_stack, n_envs, *size = self._ring.shape
        stacked = np.empty((n_envs, n_stack, *size), np.uint8)
        for place, slot in enumerate(self._order()):
            stacked[:, place] = self._ring[slot]
        return stacked

    def _order(self) -> list[int]:
        n_stack = len(self._ring)
        return [(self._newest + 1 + place) % n_stack for place in range(n_stack)]
