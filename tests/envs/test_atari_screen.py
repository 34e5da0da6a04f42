"""The colour tables against OpenCV on random colours, which no game shows so thoroughly.

Owns a fake emulator; must not know any game.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sb3_ppo_from_scratch.envs.atari_screen import Palette, Screen

SHAPE = (210, 160)


class FakeEmulator:
    """Shows whatever colour numbers it is given, in a random palette whose colour 0 is black."""

    def __init__(self, seed: int) -> None:
        self.palette = np.random.default_rng(seed).integers(0, 256, (256, 3), np.uint8)
        self.palette[0] = 0
        self.shown: NDArray[np.uint8] = np.zeros(SHAPE, np.uint8)

    def getScreenDims(self) -> tuple[int, int]:  # noqa: N802
        return SHAPE

    def getScreen(self, out: NDArray[np.uint8] | None = None) -> Any:  # noqa: N802
        if out is None:
            return self.shown.copy()
        out[...] = self.shown
        return None

    def getScreenRGB(self, out: NDArray[np.uint8] | None = None) -> Any:  # noqa: N802
        if out is None:
            return self.palette[self.shown]
        out[...] = self.palette[self.shown]
        return None


def as_sb3_draws(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return cv2.resize(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY), (84, 84), interpolation=cv2.INTER_AREA)


def drawn(screen: Screen) -> NDArray[np.uint8]:
    picture = np.empty((84, 84), np.uint8)
    screen.draw(picture)
    return picture


def test_the_maximum_of_two_frames_is_taken_in_rgb_and_greyed_after() -> None:
    colours = np.random.default_rng(1)
    emulator, palette = FakeEmulator(0), Palette()
    screen = Screen(emulator, palette, 84)
    for n_colours in (2, 20, 256):
        frames = []
        for slot in (0, 1):
            # Each frame brings colours that the other lacks.
            emulator.shown = colours.integers(0, n_colours, SHAPE, np.uint8)
            frames.append(emulator.getScreenRGB())
            screen.capture(slot)
        screen.observe_maximum()
        np.testing.assert_array_equal(drawn(screen), as_sb3_draws(np.maximum(*frames)))


def test_a_frame_left_from_the_step_before_counts_as_in_sb3() -> None:
    emulator = FakeEmulator(2)
    screen = Screen(emulator, Palette(), 84)
    screen.observe_maximum()
    assert not drawn(screen).any(), "SB3's buffers are black before the first frame"
    shown = {}
    for slot, colour in ((0, 7), (1, 9), (0, 8)):
        emulator.shown = np.full(SHAPE, colour, np.uint8)
        shown[slot] = emulator.getScreenRGB()
        screen.capture(slot)
    screen.observe_maximum()

    np.testing.assert_array_equal(drawn(screen), as_sb3_draws(np.maximum(shown[0], shown[1])))


def test_a_single_frame_is_shown_alone() -> None:
    emulator = FakeEmulator(3)
    screen = Screen(emulator, Palette(), 84)
    emulator.shown = np.random.default_rng(3).integers(0, 256, SHAPE, np.uint8)
    screen.observe_current()

    np.testing.assert_array_equal(drawn(screen), as_sb3_draws(emulator.getScreenRGB()))
