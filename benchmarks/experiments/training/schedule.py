"""The training runs of an experiment as processes, with a progress bar.

Owns the bar and what is said of a run; must not know how processes are started or ended, nor what happens in them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks import processes
from benchmarks.experiments.training.runs import Run, read_result
from benchmarks.files import is_locked


def do_runs(runs: list[Run], out: Path, jobs: int) -> list[Run]:
    """Do what is not finished yet, with a progress bar; an interruption ends the processes and loses only their runs.

    :param runs: in the order in which to begin them
    :param out: folder of the experiment, absolute
    :param jobs: processes at a time
    :return: the runs that did not finish
    """
    n_finished = sum(read_result(out, run) is not None for run in runs)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn())
    with Progress(*columns, *times, console=Console(stderr=True), refresh_per_second=2) as progress:
        bar = progress.add_task("runs", total=len(runs), completed=n_finished)
        schedule = _Schedule(
            runs, out, lambda line: progress.console.print(line, highlight=False, markup=False, soft_wrap=True)
        )
        schedule.work(jobs, lambda: progress.update(bar, completed=len(schedule.finished) + len(schedule.failed)))
    return schedule.failed


class _Schedule(processes.Schedule[Run]):
    """Runs of one thread each.

    :param runs: in the order in which to begin them
    :param out: folder of the experiment, absolute
    :param say: what to tell the user, line by line
    """

    def __init__(self, runs: Sequence[Run], out: Path, say: Callable[[str], None]) -> None:
        super().__init__(runs, say)
        self._out = out

    def is_finished(self, run: Run) -> bool:
        return read_result(self._out, run) is not None

    def is_busy(self, run: Run) -> bool:
        return is_locked(run.beside(self._out, ".lock"))

    def worker(self, run: Run) -> processes.Worker:
        order = (str(self._out), json.dumps(asdict(run)))
        return processes.Worker(
            "benchmarks.experiments.training.worker", order, run.beside(self._out, ".log"), threads=1
        )

    def news(self, run: Run) -> str:
        result = read_result(self._out, run)
        assert result is not None
        return f"score {result['score']:.1f}, {result['cpu_seconds']:,.0f} s of CPU time"
