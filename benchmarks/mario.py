"""Owns SuperMarioBros 1-1 as a Gymnasium environment for a CNN, under the id ``ENV_ID``.

Must not know who trains on it, for how long, or how frames are stacked (the vectorized environment does that).

One step is one of the seven button combinations of SIMPLE_MOVEMENT, held for four frames of the console. The game
draws crowded sprites only every other frame, hence the maximum over the last two. The reward is the package's own:
pixels to the right, minus one per tick of the game's clock, minus 25 for dying; nothing is clipped or scaled here.

An episode is one life and always ends by ``terminated``: at the flag, by a death, or when the clock has run down
from 400, after 2,000 steps; so there is no time limit of Gymnasium's. The flag is 3,121 pixels from the start: no
return exceeds that, and one life without a pause, at full speed, returns about 3,060. Nothing is random: the same
actions give the same episode under every seed, so that evaluation needs stochastic actions to be more than one sample.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.atari_wrappers import MaxAndSkipEnv, WarpFrame

ENV_ID = "SuperMarioBros1-1-v0"
WORLD_AND_STAGE = (1, 1)
FRAME_SKIP = 4


def register() -> None:
    """Make ``gymnasium.make(ENV_ID)`` work in this process; calling it again changes nothing.

    Worker processes need no call of their own where they are given ``environment`` or the spec instead of the id.

    :raises ImportError: without the optional extra ``mario``
    """
    _require_extra()
    if ENV_ID not in gym.registry:
        gym.register(ENV_ID, entry_point=f"{__name__}:{environment.__name__}")


def environment(*, render_mode: str | None = None) -> gym.Env[np.ndarray, int]:
    """World 1, stage 1 of the original cartridge.

    :param render_mode: ``"rgb_array"``, ``"human"`` or None
    :return: observations (84, 84, 1) of uint8, grey; seven actions; ``info`` has ``x_pos`` in pixels (40 at the
        start), ``time`` left in ticks and ``flag_get``
    :raises ImportError: without the optional extra ``mario``
    """
    _require_extra()
    from gymnasium_mariobros import SuperMarioBrosEnv
    from gymnasium_mariobros.actions import SIMPLE_MOVEMENT
    from gymnasium_mariobros.wrappers import JoypadSpace

    # Not through the package's own ids: their "versions" are drawings of the same game, and Gymnasium warns that the
    # original one is out of date.
    game = SuperMarioBrosEnv(target=WORLD_AND_STAGE, render_mode=render_mode)
    _restart(game)
    env: gym.Env[Any, Any] = JoypadSpace(game, SIMPLE_MOVEMENT)
    return WarpFrame(MaxAndSkipEnv(env, skip=FRAME_SKIP))


def _restart(game: Any) -> None:
    # The emulator (cynes 0.1.2) leaves its "frame is ready" flag uninitialised: whether the first frame after power-on
    # is played depends on what the memory held, and the whole game comes a frame early or late. So start it again
    # from a console that has played exactly one frame; an unplayed one changes no byte but the flag.
    from cynes import NES

    console = NES(game._rom_path)
    power_on = console.save()
    while np.count_nonzero(console.save() != power_on) <= 1:
        console.step()
    game._nes.load(console.save())
    game.ram.sync_from_emulator()
    game._skip_start_screen()
    game._backup()  # what every reset returns to


def _require_extra() -> None:
    try:
        import cv2  # noqa: F401 - WarpFrame needs it
        import gymnasium_mariobros  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{ENV_ID} needs {error.name}, which cannot be imported: pip install 'sb3_ppo_from_scratch[mario]'"
        ) from error
