"""The Atari games that one process plays, stepped one after the other.

Owns their creation and what is told of one step; must not import SB3, so that another process starts within a second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_ppo_from_scratch.envs.atari_emulator import make_emulator
from sb3_ppo_from_scratch.envs.atari_game import AtariGame, AtariSettings
from sb3_ppo_from_scratch.envs.atari_screen import Palette


class GroupSettings(NamedTuple):
    """What a group needs to make its games: id and arguments of the emulator, SB3's preprocessing, start of time."""

    env_id: str
    env_kwargs: dict[str, Any]
    game: AtariSettings
    t_start: float


class Restart(NamedTuple):
    """What is told of a game that ended an episode: its last frame, and the info of its restart."""

    last_frame: NDArray[np.uint8]
    info: dict[str, Any]


class GroupStep(NamedTuple):
    """What is told of one step of n games.

    ``frames`` [n, size, size] uint8 are what is seen after the step (after the restart where there was one);
    ``rewards`` are not clipped; ``restarts`` has the games whose episode ended, ``episodes`` the whole games that
    ended, both by place in the group.
    """

    frames: NDArray[np.uint8]
    rewards: list[float]
    infos: list[dict[str, Any]]
    restarts: dict[int, Restart]
    episodes: list[tuple[int, dict[str, float]]]


class AtariGroup:
    """Some copies of one game.

    :param settings: of each of them
    :param n_games: how many
    :raises ValueError: for an environment that these games cannot stand in for
    """

    def __init__(self, settings: GroupSettings, n_games: int) -> None:
        palette = Palette()
        self.games = [
            AtariGame(make_emulator(settings.env_id, settings.env_kwargs), settings.game, palette, settings.t_start)
            for _ in range(n_games)
        ]
        self._shape = (n_games, settings.game.screen_size, settings.game.screen_size)

    def reset(self, seeds: list[int | None], options: list[dict[str, Any] | None]) -> GroupStep:
        """Restart every game.

        :param seeds: one for each game
        :param options: one for each game
        :return: first frames, with the restarts' infos as ``infos``
        """
        frames = np.empty(self._shape, np.uint8)
        infos = []
        for game, frame, seed, option in zip(self.games, frames, seeds, options, strict=True):
            infos.append(game.restart(seed, option))
            game.draw(frame)
        return GroupStep(frames, [0.0] * len(infos), infos, {}, self._ended_episodes())

    def step(self, actions: list[int]) -> GroupStep:
        """Play one step of every game, and restart those whose episode ends.

        :param actions: one for each game, each within range
        :return: what happened
        """
        frames = np.empty(self._shape, np.uint8)
        rewards, infos, restarts = [], [], {}
        for i, (game, action) in enumerate(zip(self.games, actions, strict=True)):
            reward, terminated, truncated, info = game.play(action)
            game.draw(frames[i])
            info["TimeLimit.truncated"] = truncated and not terminated
            if terminated or truncated:
                last_frame = frames[i].copy()
                restarts[i] = Restart(last_frame, game.restart())
                game.draw(frames[i])
            rewards.append(reward)
            infos.append(info)
        return GroupStep(frames, rewards, infos, restarts, self._ended_episodes())

    def get_attr(self, i: int, name: str) -> Any:
        """The attribute of a game or, where it has none of that name, of its ``ale_py.AtariEnv``."""
        game = self.games[i]
        return getattr(game, name) if hasattr(game, name) else getattr(game.env, name)

    def set_attr(self, i: int, name: str, value: Any) -> None:
        """Set an attribute of a game."""
        setattr(self.games[i], name, value)

    def call(self, i: int, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of a game or of its ``ale_py.AtariEnv``."""
        return self.get_attr(i, name)(*args, **kwargs)

    def close(self) -> None:
        """Close every game."""
        for game in self.games:
            game.close()

    def _ended_episodes(self) -> list[tuple[int, dict[str, float]]]:
        ended = [(i, episode) for i, game in enumerate(self.games) for episode in game.ended_episodes]
        if ended:
            for game in self.games:
                game.ended_episodes.clear()
        return ended
