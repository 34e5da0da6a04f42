"""Runs in processes of their own: what becomes of those that end, fail, or are being done elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks import processes

# What a process does: appends what it was told, then ends with its second argument, or sleeps for ever.
_WORKER = """
import os, sys, time
print(sys.argv[1], "with", os.environ["OMP_NUM_THREADS"], "threads in", os.path.basename(os.getcwd()), flush=True)
if sys.argv[2] == "forever":
    time.sleep(60)
if sys.argv[2] == "0":
    open(sys.argv[1] + ".done", "w").close()
sys.exit(int(sys.argv[2]))
"""


@dataclass(frozen=True)
class Run:
    name: str
    status: str = "0"


class Schedule(processes.Schedule[Run]):
    """Runs that are finished when their file is there, and busy while they are named."""

    advice = "; try again"

    def __init__(self, runs: list[Run], folder: Path) -> None:
        self.folder = folder
        self.busy: set[str] = set()
        self.said: list[str] = []
        super().__init__(runs, self.said.append)

    def is_finished(self, run: Run) -> bool:
        return (self.folder / f"{run.name}.done").exists()

    def is_busy(self, run: Run) -> bool:
        return run.name in self.busy

    def worker(self, run: Run) -> processes.Worker:
        return processes.Worker("a_worker", (run.name, run.status), self.folder / f"{run.name}.log", threads=3)

    def news(self, run: Run) -> str:
        return f"went well, {run.status}"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a_worker.py").write_text(_WORKER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "runs"


def test_runs_end_or_fail_and_logs_are_added_to(folder: Path) -> None:
    folder.mkdir()
    (folder / "good.log").write_text("yesterday\n")
    (folder / "old.done").touch()
    good, bad, old = Run("good"), Run("bad", "3"), Run("old")
    schedule = Schedule([good, bad, old], folder)
    counts: list[int] = []
    schedule.work(2, lambda: counts.append(len(schedule.finished)))
    assert counts[0] == 1, "what was finished before counts from the beginning"
    assert (schedule.finished, schedule.failed) == ([old, good], [bad])
    assert (folder / "good.log").read_text() == "yesterday\ngood with 3 threads in runs\n"
    assert sorted(schedule.said) == [
        f"bad: ended with status 3.\n  bad with 3 threads in runs\n  ({folder / 'bad.log'}; try again)",
        "good: went well, 0.",
    ]


def test_a_run_that_another_invocation_finishes_is_finished(folder: Path) -> None:
    folder.mkdir()
    schedule = Schedule([run := Run("theirs")], folder)
    schedule.busy = {"theirs"}

    def finish() -> None:
        if schedule.busy:
            assert schedule.underway() == (run,)
            (folder / "theirs.done").touch()
            schedule.busy.clear()

    schedule.work(1, finish)
    assert schedule.finished == [run]
    assert schedule.said == ["theirs: another invocation is at it."]
    assert not (folder / "theirs.log").exists(), "no process of ours"


def test_a_run_that_another_invocation_gives_up_is_done_here(folder: Path) -> None:
    schedule = Schedule([Run("theirs")], folder)
    schedule.busy = {"theirs"}
    schedule.work(1, schedule.busy.clear)
    assert schedule.said == ["theirs: another invocation is at it.", "theirs: went well, 0."]


def test_a_process_that_finds_another_one_at_work_is_no_failure(folder: Path) -> None:
    schedule = Schedule([run := Run("shared", str(processes.BUSY))], folder)

    def finish() -> None:
        if (folder / "shared.log").exists() and (folder / "shared.log").read_text():
            (folder / "shared.done").touch()

    schedule.work(1, finish)
    assert (schedule.finished, schedule.failed) == ([run], [])


def test_an_interruption_ends_the_processes(folder: Path) -> None:
    schedule = Schedule([Run("long", "forever")], folder)

    def interrupt() -> None:
        if (folder / "long.log").read_text():
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        schedule.work(1, interrupt)
    assert time.monotonic() - began < 30, "not when it would have ended by itself"
