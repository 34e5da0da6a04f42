"""Many runs, a few at a time, each in its own process.

Owns starting, watching and ending these processes; must not know what happens in them, nor how to show it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.head_to_head.runs import BUSY, LOG, Run, is_busy, is_finished, read_progress, tabled_steps
from benchmarks.head_to_head.table import ROWS, join_rows, read_rows

_ROOT = Path(__file__).parents[2]
_POLL = 0.5  # seconds
_PATIENCE = 10.0  # seconds for a process to end by itself
_LAST_LINES = 15
# Everything that starts threads reads one of these; NPROC is XLA's.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NPROC")


class Schedule:
    """Runs to do, being done here or by another invocation, and done.

    :param runs: all that are asked for, in the order in which to begin them
    :param out: folder of all runs, absolute
    :param say: what to tell the user, line by line
    """

    def __init__(self, runs: list[Run], out: Path, say: Callable[[str], None]) -> None:
        self._out, self._say = out, say
        self._steps = dict.fromkeys(runs, 0)
        self._tabled = tabled_steps(out)
        self._pending = deque(runs)
        self._elsewhere: list[Run] = []
        self._working: dict[Run, subprocess.Popen[bytes]] = {}
        self._table_state: dict[Run, float] = {}
        self.finished: list[Run] = []
        self.failed: list[Run] = []

    def work(self, jobs: int, show_steps: Callable[[int], None]) -> None:
        """Go on until every run is finished or has failed; end the processes if that is interrupted.

        :param jobs: processes at a time
        :param show_steps: told again and again how many environment steps of all runs are done
        """
        try:
            while self._pending or self._working or self._elsewhere:
                self._start(jobs)
                show_steps(self.steps())
                time.sleep(_POLL)
                self._look_after_processes()
                self._look_elsewhere()
                self._join_rows()
            show_steps(self.steps())
        finally:
            self._end_processes()
            self._join_rows()

    def steps(self) -> int:
        """Environment steps done, over all runs; those of a run that has failed count as done."""
        for run in (*self._working, *self._elsewhere):
            self._steps[run] = min(read_progress(run.folder(self._out)).steps, run.steps)
        for run in (*self.finished, *self.failed):
            self._steps[run] = run.steps
        return sum(self._steps.values())

    def _start(self, jobs: int) -> None:
        while self._pending and len(self._working) < jobs:
            run = self._pending.popleft()
            if is_finished(self._out, run, self._tabled):
                self.finished.append(run)
            elif is_busy(run.folder(self._out)):
                self._elsewhere.append(run)
                self._say(f"{run.name}: another invocation is at it.")
            else:
                self._working[run] = self._process(run)

    def _process(self, run: Run) -> subprocess.Popen[bytes]:
        folder = run.folder(self._out)
        folder.mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, **dict.fromkeys(_THREADS, str(run.threads))}
        module = "benchmarks.head_to_head.worker"
        with (folder / LOG).open("ab") as log:
            # In its own folder, for what libraries leave behind.
            return subprocess.Popen(
                [sys.executable, "-m", module, str(self._out), json.dumps(asdict(run))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
            )

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
                self._say(f"{run.name}: finished, {self._score(run)}.")
            else:
                self.failed.append(run)
                self._say(f"{run.name}: ended with status {status}.\n{self._last_words(run)}")

    def _look_elsewhere(self) -> None:
        """A run that another invocation finishes is finished; one that it gives up is ours to do."""
        for run in list(self._elsewhere):
            if is_busy(run.folder(self._out)):
                continue
            self._elsewhere.remove(run)
            self._pending.append(run)

    def _join_rows(self) -> None:
        tables = {run: run.folder(self._out) / ROWS for run in self._steps}
        state = {run: path.stat().st_mtime for run, path in tables.items() if path.exists()}
        if state != self._table_state:
            join_rows(self._out)
            self._table_state = state

    def _score(self, run: Run) -> str:
        row = read_rows(run.folder(self._out) / ROWS)[-1]
        score = f"score {float(row['score']):.1f} ± {float(row['score_std']):.1f}"
        return f"{score} after {int(row['steps']):,} steps in {float(row['training_seconds']):,.0f} s"

    def _last_words(self, run: Run) -> str:
        log = run.folder(self._out) / LOG
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
        return "\n".join(f"  {line}" for line in [*lines, f"({log}; without its folder, the run begins anew)"])

    def _end_processes(self) -> None:
        for process in self._working.values():
            process.terminate()
        for process in self._working.values():
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
