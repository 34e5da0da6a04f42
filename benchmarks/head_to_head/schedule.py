"""The runs of the comparison as processes: how many steps they have done, and the table that joins their rows.

Owns both while they work; must not know how processes are started or ended, nor how to show anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import processes
from benchmarks.files import is_locked
from benchmarks.head_to_head.runs import LOG, Run, is_finished, read_progress, run_lock, tabled_runs
from benchmarks.head_to_head.table import ROWS, join_rows, read_rows


class Schedule(processes.Schedule[Run]):
    """Runs to do, being done here or by another invocation, and done.

    :param runs: all that are asked for, in the order in which to begin them
    :param out: folder of all runs, absolute
    :param say: what to tell the user, line by line
    """

    advice = "; without its folder, the run begins anew"

    def __init__(self, runs: Sequence[Run], out: Path, say: Callable[[str], None]) -> None:
        super().__init__(runs, say)
        self._out = out
        self._tabled = tabled_runs(out)
        # What earlier invocations have done counts from the beginning, not from when a run's turn comes.
        self._steps = {run: run.steps if self.is_finished(run) else self._steps_so_far(run) for run in runs}
        self._table_state: dict[Run, float] = {}

    def is_finished(self, run: Run) -> bool:  # noqa: D102
        return is_finished(self._out, run, self._tabled)

    def is_busy(self, run: Run) -> bool:  # noqa: D102
        return is_locked(run_lock(run.folder(self._out)))

    def worker(self, run: Run) -> processes.Worker:  # noqa: D102
        order = (str(self._out), json.dumps(asdict(run)))
        return processes.Worker(
            "benchmarks.head_to_head.worker", order, run.folder(self._out) / LOG, threads=run.threads
        )

    def news(self, run: Run) -> str:  # noqa: D102
        row = read_rows(run.folder(self._out) / ROWS)[-1]
        score = f"score {float(row['score']):.1f} ± {float(row['score_std']):.1f}"
        return f"finished, {score} after {int(row['steps']):,} steps in {float(row['training_seconds']):,.0f} s"

    def work(self, jobs: int, look: Callable[[], None]) -> None:
        """Go on until every run is finished or has failed, keeping the joined table up to date.

        :param jobs: processes at a time
        :param look: called again and again meanwhile
        """

        def join_and_look() -> None:
            self._join_rows()
            look()

        try:
            super().work(jobs, join_and_look)
        finally:
            self._join_rows()

    def steps(self) -> int:
        """Environment steps done, over all runs; those of a run that has failed count as done."""
        for run in self.underway():
            self._steps[run] = self._steps_so_far(run)
        for run in (*self.finished, *self.failed):
            self._steps[run] = run.steps
        return sum(self._steps.values())

    def _steps_so_far(self, run: Run) -> int:
        return min(read_progress(run.folder(self._out)).steps, run.steps)

    def _join_rows(self) -> None:
        tables = {run: run.folder(self._out) / ROWS for run in self._steps}
        state = {run: path.stat().st_mtime for run, path in tables.items() if path.exists()}
        if state != self._table_state:
            join_rows(self._out)
            self._table_state = state
