"""Several threads that share the turns of one vector step.

Owns threads and their end; must not know what a turn does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait


class Crew:
    """The calling thread and ``n_threads - 1`` helpers, taking turns as each gets free.

    Worth having only for turns that release the interpreter lock for most of their time.

    :param n_threads: how many work at once, the caller of ``finish`` included
    """

    def __init__(self, n_threads: int) -> None:
        self._n_helpers = n_threads - 1
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._turns: Iterator[int] = iter(())
        self._turn: Callable[[int], None] | None = None
        self._helpers: list[Future[None]] = []

    @property
    def at_work(self) -> bool:
        """Whether turns were begun and not finished."""
        return self._turn is not None

    def begin(self, turn: Callable[[int], None], n_turns: int) -> None:
        """Let the helpers start.

        :param turn: called once with each of 0 ... n_turns - 1, from any thread
        :param n_turns: how many turns there are
        """
        # One iterator for all threads: whoever is free takes the next turn, so a slow turn holds up nobody.
        self._turns, self._turn = iter(range(n_turns)), turn
        n_helpers = min(self._n_helpers, n_turns - 1)
        if n_helpers > 0:
            pool = self._living_pool()
            self._helpers = [pool.submit(_take_turns, turn, self._turns) for _ in range(n_helpers)]

    def finish(self) -> None:
        """Take part until every turn is done.

        :raises Exception: what a turn raised; turns that other threads had taken are done by then
        """
        turn, helpers = self._turn, self._helpers
        self._turn, self._helpers = None, []
        try:
            if turn is not None:
                _take_turns(turn, self._turns)
        finally:
            wait(helpers)
        for helper in helpers:
            helper.result()

    def close(self) -> None:
        """Let the helpers go."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown()
        self._pool = None

    def _living_pool(self) -> ThreadPoolExecutor:
        # Threads do not follow into a forked process; work given to their pool there would wait for ever.
        if self._pool is None or self._process != os.getpid():
            self._pool = ThreadPoolExecutor(self._n_helpers, thread_name_prefix="AtariVecEnv")
            self._process = os.getpid()
        return self._pool


def _take_turns(turn: Callable[[int], None], turns: Iterator[int]) -> None:
    for i in turns:
        turn(i)
