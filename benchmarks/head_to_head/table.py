"""The tidy table: one row for each evaluation of a run, and one file that joins those of all runs.

Owns the columns and the joining; must not know how a run or an evaluation is made.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.files import locked, write_atomically

PACKAGES = (
    *("torch", "numpy", "gymnasium", "stable_baselines3", "sb3_contrib"),
    *("sbx", "ale_py", "sb3_ppo_from_scratch"),
)
COLUMNS = (
    *("task", "env_id", "algorithm", "seed", "steps", "final"),
    *("score", "score_std", "episodes", "training_score", "training_seconds", "wall_seconds", "resumed"),
    *("n_envs", "environment", "threads", "jobs", "policy", "command", "commit", "date", "machine", "python"),
    *PACKAGES,
)
ROWS = "rows.csv"
RESULTS = "results.csv"
Row = dict[str, Any]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a table.

    :param path: of the file
    :param rows: with the keys ``COLUMNS``
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue())


def read_rows(path: Path) -> list[Row]:
    """Read a table.

    :param path: of the file
    :return: every value as text; nothing if there is no file
    :raises ValueError: for a file with other columns
    """
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path} is not a table of head-to-head runs: its columns are {reader.fieldnames}.")
        return list(reader)


def final_row(rows: list[Row]) -> Row | None:
    """The evaluation at the end of a run.

    :param rows: of the run, in the order of their steps
    :return: None if the run has not come to its end
    """
    return rows[-1] if rows and rows[-1]["final"] in (True, "True") else None


def join_rows(out: Path) -> None:
    """Bring the joined table up to date with the tables of the runs.

    Runs that are in the joined table only, because their folders were deleted or never committed, stay there.

    :param out: folder of the joined table and of ``runs/``
    """
    (out / "runs").mkdir(exist_ok=True)
    with locked(out / "runs" / ".lock", wait=True):
        by_run: dict[tuple[str, str, int], list[Row]] = {}
        for row in read_rows(out / RESULTS):
            by_run.setdefault((row["task"], row["algorithm"], int(row["seed"])), []).append(row)
        for path in out.glob(f"runs/*/*/*/{ROWS}"):
            task, algorithm, seed = path.parts[-4:-1]
            by_run[task, algorithm, int(seed)] = read_rows(path)
        write_rows(out / RESULTS, [row for run in sorted(by_run) for row in by_run[run]])
