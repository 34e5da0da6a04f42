"""The tidy table of head-to-head runs, read from one file or several.

Owns the types of its columns and what is refused; must not know what is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.head_to_head.table import COLUMNS, PACKAGES, RESULTS
from benchmarks.report.algorithms import ALGORITHMS

RUN = ["task", "algorithm", "seed"]
VERSIONS = ("python", *PACKAGES)
_INTEGERS = ("seed", "steps", "episodes", "resumed", "n_envs", "threads", "jobs")
_NUMBERS = (*_INTEGERS, "score", "score_std", "training_seconds", "wall_seconds")


def load(paths: Sequence[Path]) -> pd.DataFrame:
    """Read and join tables.

    :param paths: of CSV files, or of folders that hold a ``results.csv``
    :return: one row for each evaluation of a run: tasks in order of appearance, algorithms in that of ``ALGORITHMS``,
        then by seed and steps
    :raises ValueError: if a file is missing, not such a table, or repeats an evaluation; names it
    """
    files = [path / RESULTS if path.is_dir() else path for path in paths]
    table = pd.concat([_one_table(file) for file in files], ignore_index=True)
    evaluation = [*RUN, "steps"]
    if len(repeated := table[table.duplicated(evaluation)]):
        raise ValueError(
            f"{', '.join(map(str, files))}: two rows have {_named(repeated.iloc[0], evaluation)}; "
            "give each table once, and one table for each run."
        )
    ends = table[table["final"]]
    if len(repeated := ends[ends.duplicated(RUN)]):
        raise ValueError(
            f"{', '.join(map(str, files))}: two rows are the final one of {_named(repeated.iloc[0], RUN)}; "
            "keep the last one."
        )
    order = {"task": list(table["task"].unique()), "algorithm": list(ALGORITHMS)}
    return table.sort_values(
        evaluation,
        key=lambda column: column.map(order[column.name].index) if column.name in order else column,
        ignore_index=True,
    )


def final_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The evaluations at the end of runs.

    :param table: as ``load`` returns it
    :return: one row for each finished run
    """
    return table[table["final"]]


def unfinished_rows(table: pd.DataFrame) -> pd.DataFrame:
    """How far the other runs got.

    :param table: as ``load`` returns it
    :return: the last row of each run that has no final one
    """
    unfinished = table[~table.groupby(RUN)["final"].transform("any")]
    return unfinished.groupby(RUN, sort=False).tail(1)


def final_scores(table: pd.DataFrame, task: str, algorithm: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Mean returns at the end of the finished runs of one side.

    :param table: as ``load`` returns it
    :param task: name
    :param algorithm: name
    :return: ``(seeds,)``
    """
    rows = final_rows(table)
    return np.asarray(rows.loc[(rows["task"] == task) & (rows["algorithm"] == algorithm), "score"], dtype=np.float64)


def sides(table: pd.DataFrame, task: str) -> list[str]:
    """Which algorithms were run.

    :param table: as ``load`` returns it
    :param task: name
    :return: in the order of ``ALGORITHMS``
    """
    return list(table.loc[table["task"] == task, "algorithm"].unique())


def _one_table(file: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise ValueError(f"{file}: there is no such table; give a CSV file, or a folder with {RESULTS}.") from None
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: not a CSV table ({error}).") from None
    if missing := [column for column in COLUMNS if column not in table]:
        raise ValueError(f"{file}: missing {', '.join(missing)}; write the table with `benchmarks head-to-head`.")
    if table.empty:
        raise ValueError(f"{file}: has no rows; no run has been evaluated yet.")
    for column in _NUMBERS:
        table[column] = _numbers(table[column], file)
    table["training_score"] = pd.to_numeric(table["training_score"], errors="coerce")
    is_bool = table["final"].isin(["True", "False"])
    if not is_bool.all():
        raise ValueError(f"{file}: column final has {table.loc[~is_bool, 'final'].iloc[0]!r}; use True or False.")
    table["final"] = table["final"] == "True"
    if unknown := sorted(set(table["algorithm"]) - set(ALGORITHMS)):
        raise ValueError(f"{file}: column algorithm has {unknown[0]!r}; known are {', '.join(ALGORITHMS)}.")
    return table


def _numbers(column: pd.Series, file: Path) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    is_whole = numbers.mod(1) == 0 if column.name in _INTEGERS else True
    is_bad = ~(np.isfinite(numbers) & is_whole)
    if is_bad.any():
        kind = "a whole number" if column.name in _INTEGERS else "a finite number"
        raise ValueError(
            f"{file}: column {column.name} has {column[is_bad].iloc[0]!r} in data row {is_bad.argmax() + 1}; "
            f"use {kind}."
        )
    return numbers.astype("int64") if column.name in _INTEGERS else numbers


def _named(row: pd.Series, columns: list[str]) -> str:
    return ", ".join(f"{column} {row[column]}" for column in columns)
