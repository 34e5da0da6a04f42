"""Runs, a few at a time, each in a process of its own; other invocations may work on the same ones.

Owns starting, watching, waiting for and ending these processes; must not know what a run is made of, nor how to show
how far it is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

BUSY = 75  # exit status of a run's process that found another one at work
_ROOT = Path(__file__).parents[1]
_POLL = 0.5  # seconds
_PATIENCE = 10.0  # seconds for a process to end by itself
_LAST_LINES = 15
# Everything that starts threads reads one of these; NPROC is XLA's.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NPROC")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Run = TypeVar("Run", bound=_Named)


class Worker(NamedTuple):
    """The process that does a run.

    :param module: to be run with ``-m``
    :param arguments: of its command line
    :param log: file that all its output is added to; in its folder, made if it is not there, the process works
    :param threads: that libraries may start
    """

    module: str
    arguments: Sequence[str]
    log: Path
    threads: int


class Schedule(ABC, Generic[Run]):
    """Runs to do, being done here or by another invocation, and done.

    :param runs: all that are asked for, in the order in which to begin them
    :param say: what to tell the user, line by line
    """

    advice = ""  # what to do about a run that failed, beside reading its log

    def __init__(self, runs: Sequence[Run], say: Callable[[str], None]) -> None:
        self._say = say
        self._pending = deque(runs)
        self._elsewhere: list[Run] = []
        self._working: dict[Run, subprocess.Popen[bytes]] = {}
        self.finished: list[Run] = []
        self.failed: list[Run] = []

    @abstractmethod
    def is_finished(self, run: Run) -> bool:
        """Whether there is nothing left to do.

        :param run: asked for
        """

    @abstractmethod
    def is_busy(self, run: Run) -> bool:
        """Whether some process works on a run.

        :param run: asked for
        """

    @abstractmethod
    def worker(self, run: Run) -> Worker:
        """The process that does a run; it exits with ``BUSY`` if another one is at it.

        :param run: to do
        """

    @abstractmethod
    def news(self, run: Run) -> str:
        """How a run went.

        :param run: just finished
        """

    def underway(self) -> tuple[Run, ...]:
        """What is being done, here or by another invocation."""
        return (*self._working, *self._elsewhere)

    def work(self, jobs: int, look: Callable[[], None]) -> None:
        """Go on until every run is finished or has failed; end the processes if that is interrupted.

        :param jobs: processes at a time
        :param look: called again and again meanwhile, and at the end unless it is interrupted
        """
        self.finished += [run for run in self._pending if self.is_finished(run)]
        self._pending = deque(run for run in self._pending if run not in self.finished)
        try:
            while self._pending or self._working or self._elsewhere:
                self._start(jobs)
                look()
                time.sleep(_POLL)
                self._look_after_processes()
                self._look_elsewhere()
            look()
        finally:
            self._end_processes()

    def _start(self, jobs: int) -> None:
        while self._pending and len(self._working) < jobs:
            run = self._pending.popleft()
            if self.is_finished(run):
                self.finished.append(run)
            elif self.is_busy(run):
                self._elsewhere.append(run)
                self._say(f"{run.name}: another invocation is at it.")
            else:
                self._working[run] = _started(self.worker(run))

    def _look_after_processes(self) -> None:
        for run, process in list(self._working.items()):
            status = process.poll()
            if status is None:
                continue
            del self._working[run]
            if status == BUSY:
                self._elsewhere.append(run)
            elif status == 0:
                self.finished.append(run)
                self._say(f"{run.name}: {self.news(run)}.")
            else:
                self.failed.append(run)
                self._say(f"{run.name}: ended with status {status}.\n{self._last_words(run)}")

    def _look_elsewhere(self) -> None:
        """A run that another invocation finishes is finished; one that it gives up is ours to do."""
        for run in list(self._elsewhere):
            if not self.is_busy(run):
                self._elsewhere.remove(run)
                self._pending.append(run)

    def _last_words(self, run: Run) -> str:
        log = self.worker(run).log
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
        return "\n".join(f"  {line}" for line in [*lines, f"({log}{self.advice})"])

    def _end_processes(self) -> None:
        for process in self._working.values():
            process.terminate()
        for process in self._working.values():
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def interrupt_when_terminated() -> None:
    """Let SIGTERM end this process as Ctrl+C does, so that it ends its own processes first."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _started(worker: Worker) -> subprocess.Popen[bytes]:
    folder = worker.log.parent
    folder.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    # Added to, not begun anew: another invocation's process may be writing there.
    with worker.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", worker.module, *worker.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,  # for what libraries leave behind
            env={**os.environ, "PYTHONPATH": path, **dict.fromkeys(_THREADS, str(worker.threads))},
        )
