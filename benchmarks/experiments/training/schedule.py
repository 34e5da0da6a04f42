"""Many runs, a few at a time, each in its own process.

Owns starting, watching and ending these processes; must not know what happens in them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.experiments.training.runs import BUSY, Run, read_result

_ROOT = Path(__file__).parents[3]
_LAST_LINES = 15
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def do_runs(runs: list[Run], out: Path, jobs: int) -> list[Run]:
    """Do what is not finished yet, with a progress bar; an interruption ends the processes and loses only their runs.

    :param runs: in the order in which to begin them
    :param out: folder of the experiment, absolute
    :param jobs: processes at a time
    :return: the runs that did not finish
    """
    pending = [run for run in runs if read_result(out, run) is None]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn())
    with Progress(*columns, *times, console=Console(stderr=True), refresh_per_second=2) as progress:
        bar = progress.add_task("runs", total=len(runs), completed=len(runs) - len(pending))

        def say(line: str) -> None:
            progress.console.print(line, highlight=False, markup=False, soft_wrap=True)
            progress.advance(bar)

        return _do_pending(pending, out, jobs, say)


def _do_pending(runs: list[Run], out: Path, jobs: int, say: Callable[[str], None]) -> list[Run]:
    processes = _Processes(out)
    failed = []
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(processes.wait_for, run): run for run in runs}
        try:
            for future in as_completed(futures):
                run, status = futures[future], future.result()
                if status:
                    failed.append(run)
                say(_news(run, out, status))
        except BaseException:
            processes.end()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return failed


class _Processes:
    """The processes at work, so that an interruption can end them.

    :param out: folder of the experiment
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        self._working: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._ended = False

    def wait_for(self, run: Run) -> int:
        """Do a run in a process.

        :param run: to do
        :return: exit status
        """
        log = run.beside(self._out, ".log")
        log.parent.mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        with log.open("wb") as output:
            with self._lock:
                if self._ended:
                    return 1
                process = subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.experiments.training.worker", str(self._out), _json(run)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=log.parent,  # for what libraries leave behind
                    env={**os.environ, "PYTHONPATH": path, **dict.fromkeys(_THREADS, "1")},
                )
                self._working.add(process)
            status = process.wait()
        with self._lock:
            self._working.discard(process)
        return status

    def end(self) -> None:
        """Terminate what is at work, and start nothing any more."""
        with self._lock:
            self._ended = True
            for process in self._working:
                process.terminate()


def _json(run: Run) -> str:
    return json.dumps(asdict(run))


def _news(run: Run, out: Path, status: int) -> str:
    if status == BUSY:
        return f"{run.name}: another invocation is at it."
    if status:
        log = run.beside(out, ".log")
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
        return "\n".join([f"{run.name}: ended with status {status}.", *(f"  {line}" for line in lines), f"  ({log})"])
    result = read_result(out, run)
    assert result is not None
    return f"{run.name}: score {result['score']:.1f}, {result['cpu_seconds']:,.0f} s of CPU time."
