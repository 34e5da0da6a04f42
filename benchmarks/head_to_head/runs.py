"""One run, and its folder: what is asked of it, how far it is, whether it is finished or being worked on.

Owns the files that a run's process and the process that started it share; must not know how training goes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.files import write_atomically
from benchmarks.head_to_head.table import RESULTS, ROWS, final_row, read_rows

LOG = "log.txt"
_LOCK = ".lock"
_ORDER = "run.json"
_PROGRESS = "progress.json"
Key = tuple[str, str, int]


@dataclass(frozen=True)
class Run:
    """What is asked of one run.

    :param task: name of the task
    :param algorithm: name of the algorithm
    :param seed: of everything random
    :param steps: environment steps over all environments
    :param threads: of torch, and processes of a native vector environment
    :param jobs: runs that share the machine
    :param device: where torch computes
    :param command: by which the user asked for it
    """

    task: str
    algorithm: str
    seed: int
    steps: int
    threads: int
    jobs: int
    device: str
    command: str

    @property
    def name(self) -> str:
        """For people to read."""
        return f"{self.task}, {self.algorithm}, seed {self.seed}"

    @property
    def key(self) -> Key:
        """Task, algorithm and seed: what one folder has one run for."""
        return self.task, self.algorithm, self.seed

    def folder(self, out: Path) -> Path:
        """Where the run's files are, and nobody else's.

        :param out: folder of all runs
        """
        return out / "runs" / self.task / self.algorithm / str(self.seed)


class Tabled(NamedTuple):
    """How far a finished run went, according to the joined table.

    :param steps: of its last evaluation: those asked for, up to the end of their rollout
    :param before: of the evaluation before that; it would have been the last one if no more had been asked for
    """

    steps: int
    before: int


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    :param steps: trained so far, also those that a crash would lose
    :param wall_seconds: that its processes have taken
    :param resumed: how many times it went on from a checkpoint
    """

    steps: int = 0
    wall_seconds: float = 0.0
    resumed: int = 0


def run_lock(folder: Path) -> Path:
    """The file whose lock the one process holds that works in a run's folder.

    :param folder: of the run
    """
    return folder / _LOCK


def write_order(folder: Path, run: Run) -> None:
    """Note what is asked of a run.

    :param folder: of the run
    :param run: to note
    """
    write_atomically(folder / _ORDER, json.dumps(asdict(run), indent=1) + "\n")


def tabled_runs(out: Path) -> dict[Key, Tabled]:
    """Runs that are finished according to the joined table, which is all that is left of them if it was committed.

    :param out: folder of all runs
    """
    steps: dict[Key, int] = {}
    finished: dict[Key, Tabled] = {}
    for row in read_rows(out / RESULTS):
        key = (row["task"], row["algorithm"], int(row["seed"]))
        if final_row([row]) is not None:
            finished[key] = Tabled(int(row["steps"]), steps.get(key, 0))
        steps[key] = int(row["steps"])
    return finished


def objection(out: Path, run: Run, tabled: Mapping[Key, Tabled]) -> str | None:
    """Why a run cannot go on, or count as finished, with the steps now asked for.

    :param out: folder of all runs
    :param run: now asked for
    :param tabled: from ``tabled_runs``
    :return: a reason with its remedy; None if all is well
    """
    remedy = "give the same --steps, another --out, or delete what is there"
    order = run.folder(out) / _ORDER
    if order.exists():
        begun: int = json.loads(order.read_text(encoding="utf-8"))["steps"]
        if begun != run.steps:
            return f"{run.name} was begun with {begun:,} steps, now it is to have {run.steps:,}: {remedy}."
    elif run.key in tabled and not tabled[run.key].before < run.steps <= tabled[run.key].steps:
        return f"{run.name} is in {RESULTS} with {tabled[run.key].steps:,} steps, not {run.steps:,}: {remedy}."
    return None


def is_finished(out: Path, run: Run, tabled: Mapping[Key, Tabled]) -> bool:
    """Whether a run has come to its end, here or, its folder gone, in the joined table.

    :param out: folder of all runs
    :param run: asked for
    :param tabled: from ``tabled_runs``
    """
    rows = read_rows(run.folder(out) / ROWS)
    return final_row(rows) is not None or (not rows and run.key in tabled)


def write_progress(folder: Path, progress: Progress) -> None:
    """Tell how far a run is.

    :param folder: of the run
    :param progress: of the run
    """
    write_atomically(folder / _PROGRESS, json.dumps(asdict(progress)))


def read_progress(folder: Path) -> Progress:
    """How far a run is.

    :param folder: of the run
    :return: nothing at all before it was begun
    """
    path = folder / _PROGRESS
    return Progress(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else Progress()
