"""One Atari game that behaves as if wrapped in SB3's ``Monitor`` and ``AtariWrapper``.

Owns no-ops, frame skipping, lives, FIRE and the statistics of whole games; knows no other game, stack or policy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_ppo_from_scratch.envs.atari_screen import Palette, Screen

_NOOP, _FIRE, _AFTER_FIRE = 0, 1, 2


@dataclass(frozen=True)
class AtariSettings:
    """The arguments of SB3's ``AtariWrapper``, with its names, meanings and defaults.

    :raises ValueError: naming the argument and its value, if one is out of range
    """

    noop_max: int = 30
    frame_skip: int = 4
    screen_size: int = 84
    terminal_on_life_loss: bool = True
    clip_reward: bool = True
    action_repeat_probability: float = 0.0

    def __post_init__(self) -> None:
        for name, least in (("noop_max", 0), ("frame_skip", 1), ("screen_size", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")
        probability = self.action_repeat_probability
        if not isinstance(probability, Real) or not 0 <= probability <= 1:
            raise ValueError(f"action_repeat_probability={probability!r} must be a number in [0, 1].")


class AtariGame:
    """SB3's stack of wrappers around one emulator, unrolled.

    The methods follow the wrappers from the outside in: ``restart`` is ``FireResetEnv``, ``play`` and
    ``_restart_life`` are ``EpisodicLifeEnv``, ``_restart_game`` is ``NoopResetEnv``, ``_advance`` is ``MaxAndSkipEnv``
    with ``StickyActionEnv`` and ``Monitor`` inside. Random numbers are drawn as there, from the same generator.

    :param env: ``ale_py.AtariEnv`` with RGB observations and a frame skip of 1
    :param settings: what the wrappers would be given
    :param palette: shared with the other copies of this game
    :param t_start: ``time.time()`` from which ``Monitor`` would count the seconds of ``episode["t"]``
    """

    def __init__(self, env: Any, settings: AtariSettings, palette: Palette, t_start: float) -> None:
        self.env = env
        self.settings = settings
        self.ended_episodes: list[dict[str, float]] = []
        self.lives = 0
        self.was_real_done = True
        self.observation_space = spaces.Box(0, 255, (settings.screen_size, settings.screen_size, 1), np.uint8)
        meanings = env.get_action_meanings()
        self.needs_fire = "FIRE" in meanings
        if meanings[:1] != ["NOOP"] or (self.needs_fire and (meanings[1] != "FIRE" or len(meanings) < 3)):
            raise ValueError(f"Expected the actions NOOP, FIRE and one more to come first, as in SB3, got {meanings}.")
        self._ale = env.ale
        self._joystick = env._action_set
        self._screen = Screen(env.ale, palette, settings.screen_size)
        self._shows_maximum = False
        self._sticky_action = _NOOP
        self._t_start = t_start
        self._return = 0.0
        self._length = 0
        self._episode: dict[str, float] | None = None

    def play(self, action: int) -> tuple[float, bool, bool, dict[str, Any]]:
        """One step of the agent: ``frame_skip`` frames, fewer if the game ends.

        :param action: index into the action space, within its range (not checked)
        :return: unclipped reward, terminated (game over or a life lost), truncated, information
        """
        reward, terminated, truncated = self._play_life(action)
        self._observe()
        return reward, terminated, truncated, self._information()

    def restart(self, seed: int | None = None, options: dict[str, Any] | None = None) -> dict[str, Any]:
        """Begin the next life where one is left, a new game otherwise; press FIRE where the game waits for it.

        :param seed: of the emulator and the no-ops; without effect where the game goes on
        :param options: for ``AtariEnv.reset``
        :return: information, empty after FIRE as in SB3
        """
        request = {"seed": seed} if options is None else {"seed": seed, "options": options}
        information = self._restart_life(request)
        if not self.needs_fire:
            self._observe()
            return information
        for action in (_FIRE, _AFTER_FIRE):
            _, terminated, truncated = self._play_life(action)
            # Should the game end here, SB3 still shows what was seen before the restart.
            self._observe()
            if terminated or truncated:
                self._restart_life(request)
        return {}

    def draw(self, picture: NDArray[np.uint8]) -> None:
        """Write what the last ``play`` or ``restart`` showed.

        :param picture: [screen_size, screen_size] contiguous, is overwritten
        """
        self._screen.draw(picture)

    def close(self) -> None:
        """Close the emulator."""
        self.env.close()

    def _play_life(self, action: int) -> tuple[float, bool, bool]:
        reward, terminated, truncated = self._advance(action, self.settings.frame_skip)
        if self.settings.terminal_on_life_loss:
            self.was_real_done = terminated or truncated
            lives = self._ale.lives()
            # Some games stay at 0 lives for a few frames before they are over.
            terminated = terminated or 0 < lives < self.lives
            self.lives = lives
        return reward, terminated, truncated

    def _restart_life(self, request: dict[str, Any]) -> dict[str, Any]:
        if not self.settings.terminal_on_life_loss:
            return self._restart_game(request)
        if self.was_real_done:
            information = self._restart_game(request)
        else:
            _, terminated, truncated = self._advance(_NOOP, self.settings.frame_skip)
            information = self._restart_game(request) if terminated or truncated else self._information()
        self.lives = self._ale.lives()
        return information

    def _restart_game(self, request: dict[str, Any]) -> dict[str, Any]:
        information = self._restart_emulator(request)
        if self.settings.noop_max > 0:
            for _ in range(self.env.np_random.integers(1, self.settings.noop_max + 1)):
                _, terminated, truncated = self._advance(_NOOP, 1)
                information = self._restart_emulator(request) if terminated or truncated else self._information()
        self._shows_maximum = False
        return information

    def _restart_emulator(self, request: dict[str, Any]) -> dict[str, Any]:
        _, information = self.env.reset(**request)
        self._sticky_action = _NOOP
        self._return, self._length, self._episode = 0.0, 0, None
        return dict(information)

    def _advance(self, action: int, n_frames: int) -> tuple[float, bool, bool]:
        """Raw frames with one action held; the last two are captured where a maximum is wanted."""
        ale, reward, frame = self._ale, 0, 0
        captured_from = n_frames - 2 if n_frames > 1 else n_frames
        for frame in range(n_frames):
            reward += ale.act(self._joystick[self._held(action)])
            if frame >= captured_from:
                self._screen.capture(frame - captured_from)
            if ale.game_over():
                break
        self._shows_maximum = n_frames > 1
        self._return += reward
        self._length += frame + 1
        terminated, truncated = ale.game_over(with_truncation=False), ale.game_truncated()
        if terminated or truncated:
            self._end_episode()
        return float(reward), terminated, truncated

    def _held(self, action: int) -> int:
        probability = self.settings.action_repeat_probability
        if probability > 0 and self.env.np_random.random() < probability:
            return self._sticky_action
        self._sticky_action = action
        return action

    def _end_episode(self) -> None:
        elapsed = round(time.time() - self._t_start, 6)
        self._episode = {"r": round(self._return, 6), "l": self._length, "t": elapsed}
        # No-ops can end a game too: SB3 writes that one to the monitor file, but no info shows it.
        self.ended_episodes.append(self._episode)

    def _observe(self) -> None:
        if self._shows_maximum:
            self._screen.observe_maximum()
        else:
            self._screen.observe_current()

    def _information(self) -> dict[str, Any]:
        ale = self._ale
        information: dict[str, Any] = {
            "lives": ale.lives(),
            "episode_frame_number": ale.getEpisodeFrameNumber(),
            "frame_number": ale.getFrameNumber(),
        }
        if self._episode is not None:
            information["episode"] = self._episode
        return information
