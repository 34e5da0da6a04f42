"""All games of a vector environment, dealt out to this process and others.

Owns who plays which game, and puts their results together; knows nothing of stacks, files or SB3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3_ppo_from_scratch.envs.atari_game import AtariGame
from sb3_ppo_from_scratch.envs.atari_group import AtariGroup, GroupSettings, GroupStep
from sb3_ppo_from_scratch.envs.idle_threads import rest_idle_threads
from sb3_ppo_from_scratch.envs.remote import Remote


class AtariTeam:
    """One group of games here, and one in each further process.

    :param settings: of every game
    :param n_games: how many in all
    :param n_processes: how many play them, this one included; never more than there are games
    :raises ValueError: for an environment that these games cannot stand in for
    """

    def __init__(self, settings: GroupSettings, n_games: int, n_processes: int) -> None:
        n_groups = min(n_games, n_processes)
        # The rest goes to the others, because this process also does the caller's work.
        self._sizes = [(n_games + i) // n_groups for i in range(n_groups)]
        self._starts = np.cumsum([0, *self._sizes]).tolist()
        self._here = AtariGroup(settings, self._sizes[0])
        self._elsewhere = [Remote(AtariGroup, settings, size) for size in self._sizes[1:]]
        for remote in self._elsewhere:
            remote.finish()
        self._actions: list[int] = []

    @property
    def first_game(self) -> AtariGame:
        """Game 0, which is always in this process."""
        return self._here.games[0]

    def reset(self, seeds: list[int | None], options: list[dict[str, Any] | None]) -> GroupStep:
        """Restart every game, leaving unfinished steps behind.

        :param seeds: one for each game
        :param options: one for each game
        :return: see ``AtariGroup.reset``
        """
        for remote, its_seeds, its_options in zip(
            self._elsewhere, self._dealt(seeds)[1:], self._dealt(options)[1:], strict=True
        ):
            remote.begin("reset", its_seeds, its_options)
        here = self._here.reset(self._dealt(seeds)[0], self._dealt(options)[0])
        return self._joined([here, *(remote.finish() for remote in self._elsewhere)])

    def begin_step(self, actions: list[int]) -> None:
        """Let the other processes start.

        :param actions: one for each game, each within range
        """
        if self._elsewhere:
            rest_idle_threads()
        self._actions, *others = self._dealt(actions)
        for remote, its_actions in zip(self._elsewhere, others, strict=True):
            remote.begin("step", its_actions)

    def finish_step(self) -> GroupStep:
        """Play this process's games, and wait for the others.

        :return: what happened in all games
        :raises RuntimeError: if a process is gone
        """
        here = self._here.step(self._actions)
        return self._joined([here, *(remote.finish() for remote in self._elsewhere)])

    def ask(self, i: int, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the group that has game i, between steps.

        :param i: which game
        :param name: of a method of ``AtariGroup`` that takes a game's place in the group first
        :return: what it returns
        """
        group = int(np.searchsorted(self._starts, i, side="right")) - 1
        place = i - self._starts[group]
        if group == 0:
            return getattr(self._here, name)(place, *args, **kwargs)
        return self._elsewhere[group - 1].call(name, place, *args, **kwargs)

    def close(self) -> None:
        """End every game and every other process."""
        for remote in self._elsewhere:
            remote.close()
        self._here.close()

    def _dealt(self, items: list[Any]) -> list[list[Any]]:
        return [items[start : start + size] for start, size in zip(self._starts, self._sizes, strict=False)]

    def _joined(self, parts: list[GroupStep]) -> GroupStep:
        if len(parts) == 1:
            return parts[0]
        places = list(zip(self._starts, parts, strict=False))
        return GroupStep(
            np.concatenate([part.frames for part in parts]),
            [reward for part in parts for reward in part.rewards],
            [info for part in parts for info in part.infos],
            {start + i: restart for start, part in places for i, restart in part.restarts.items()},
            [(start + i, episode) for start, part in places for i, episode in part.episodes],
        )
