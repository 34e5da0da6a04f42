"""Owns the sending to sleep of OpenMP's idle threads, which would spin on the cores that other processes play on.
Must not know who computes with those threads, nor who plays.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path

# OpenMP 5.0, section 2.6: keep what threads have learnt, give back the threads themselves.
_OMP_PAUSE_SOFT = 1


def rest_idle_threads() -> None:
    """End the idle OpenMP threads of this thread; the next parallel region starts them again, in about 0.1 ms.

    After a parallel region GNU's OpenMP lets its threads spin for milliseconds in case another one follows. Where a
    forward pass of torch is followed by games in other processes, that takes a core away from them. Does nothing
    where GNU's OpenMP is not loaded.
    """
    _pause()(_OMP_PAUSE_SOFT)


@functools.cache
def _pause() -> Callable[[int], int]:
    try:
        loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libgomp" in line}
        pauses = [ctypes.CDLL(path).omp_pause_resource_all for path in sorted(loaded)]
    except (OSError, AttributeError):  # no such file system, or an OpenMP before 5.0
        pauses = []
    return lambda kind: max((pause(kind) for pause in pauses), default=0)
