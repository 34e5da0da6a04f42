"""How much time measurements may take of the time that training takes.

Owns the stopwatch; must not know what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class TimeBudget:
    """Grants time for measurements as long as they stay below a share of all time.

    :param share: ≥ 0; infinity grants everything
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._began = time.perf_counter()
        self._spent, self._latest = 0.0, 0.0

    def start(self) -> None:
        """Let the time begin now."""
        self._began = time.perf_counter()
        self._spent = 0.0

    def affords(self) -> bool:
        """Whether another measurement like the latest would stay within the share; the first always does."""
        return self._spent + self._latest <= self._share * (time.perf_counter() - self._began) or self._spent == 0.0

    @contextmanager
    def spending(self) -> Iterator[None]:
        """A context whose time counts as spent."""
        before = time.perf_counter()
        try:
            yield
        finally:
            self._latest = time.perf_counter() - before
            self._spent += self._latest
