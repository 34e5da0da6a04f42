"""From the pixels of an emulated television to the small grey picture that a policy sees.

Owns colours, the maximum of two frames and resizing, equal in every bit to SB3's; knows no rules, rewards or lives.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

_N_COLOURS = 256
_WORD = 8


class Palette:
    """Grey values of an emulator's colours, learned from its own RGB pictures.

    The emulator hands out colour numbers thirty times faster than RGB, but does not tell its palette. One palette
    serves every copy of a game.
    """

    def __init__(self) -> None:
        self._rgb = np.zeros((_N_COLOURS, 3), np.uint8)
        self.known: NDArray[np.bool_] = np.zeros(_N_COLOURS, bool)
        # SB3's buffers hold black until the first frames fill them; ours hold colour 0, which is black.
        self.known[0] = True
        self.grey: NDArray[Any] = np.zeros(_N_COLOURS, np.uint8)
        self.grey_of_maximum: NDArray[Any] = np.zeros(_N_COLOURS * _N_COLOURS, np.uint8)

    def learn(self, colours: NDArray[np.uint8], rgb: NDArray[np.uint8]) -> None:
        """Take in the colours of one screen.

        :param colours: [height, width] colour numbers
        :param rgb: [height, width, 3] the same screen
        """
        self._rgb[colours] = rgb
        self.known[colours] = True
        self.grey = cv2.cvtColor(self._rgb[None], cv2.COLOR_RGB2GRAY)[0]
        maxima = np.maximum(self._rgb[:, None], self._rgb[None])
        self.grey_of_maximum = cv2.cvtColor(maxima, cv2.COLOR_RGB2GRAY).ravel()


class Screen:
    """What one emulator shows, as SB3's ``MaxAndSkipEnv`` and ``WarpFrame`` turn it into an observation.

    SB3 takes the maximum of two RGB frames channel by channel and greys the result. Here the later frame is greyed by
    table, and the few pixels that differ between both frames are looked up as pairs: the same grey values.

    :param ale: the emulator (``ale_py.ALEInterface``) with its game loaded
    :param palette: shared with the other copies of this game
    :param size: width and height of the observation, pixels
    """

    def __init__(self, ale: Any, palette: Palette, size: int) -> None:
        self._ale = ale
        self._palette = palette
        self._size = (size, size)
        shape = ale.getScreenDims()
        self._frames = np.zeros((2, *shape), np.uint8)
        self._rgb = np.zeros((*shape, 3), np.uint8)
        self._grey = np.zeros(shape, np.uint8)
        # Frames are compared eight pixels at a time; a television's line has 160.
        self._frames_by_word = self._frames.view(np.uint64).reshape(2, -1)
        self._pixels_by_word = self._frames.reshape(2, -1, _WORD)
        self._grey_by_word = self._grey.reshape(-1, _WORD)
        self._differing: NDArray[np.intp] = np.zeros(0, np.intp)
        palette.learn(ale.getScreen(), ale.getScreenRGB())

    def capture(self, slot: int) -> None:
        """Keep the current frame as one of the two whose maximum is observed.

        :param slot: 0 for the last frame but one of a step, 1 for the last
        """
        self._ale.getScreen(self._frames[slot])
        first, second = self._frames_by_word
        self._differing = np.flatnonzero(first != second)
        # The other frame's colours are known, so only where both differ can there be a new one.
        if not self._palette.known[self._pixels_by_word[slot, self._differing]].all():
            self._palette.learn(self._frames[slot], self._ale.getScreenRGB())

    def observe_maximum(self) -> None:
        """Make the maximum of the two captured frames the current picture."""
        cv2.LUT(self._frames[1], self._palette.grey, dst=self._grey)
        if self._differing.size:
            first, second = self._pixels_by_word[:, self._differing]
            pairs = (first.astype(np.uint16) << 8) | second
            self._grey_by_word[self._differing] = self._palette.grey_of_maximum[pairs]

    def observe_current(self) -> None:
        """Make the emulator's current frame, alone, the current picture."""
        self._ale.getScreenRGB(self._rgb)
        cv2.cvtColor(self._rgb, cv2.COLOR_RGB2GRAY, dst=self._grey)

    def draw(self, picture: NDArray[np.uint8]) -> None:
        """Write the current picture, resized.

        :param picture: [size, size] contiguous, is overwritten
        """
        cv2.resize(self._grey, self._size, dst=picture, interpolation=cv2.INTER_AREA)
