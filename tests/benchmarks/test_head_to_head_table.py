"""Runs of `python -m benchmarks head-to-head` and the table that joins them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.files import locked
from benchmarks.head_to_head.runs import Progress, Run, is_finished, objection, tabled_runs, write_order, write_progress
from benchmarks.head_to_head.schedule import Schedule
from benchmarks.head_to_head.table import COLUMNS, RESULTS, ROWS, join_rows, read_rows, write_rows


def rows_of(run: Run, *steps: int, final: bool) -> list[dict[str, Any]]:
    named = {"task": run.task, "algorithm": run.algorithm, "seed": run.seed}
    last = len(steps) - 1
    return [
        {**dict.fromkeys(COLUMNS, ""), **named, "steps": at, "final": final and i == last} for i, at in enumerate(steps)
    ]


def a_run(**changes: Any) -> Run:
    run = Run("CartPole-v1", "ours", seed=0, steps=100, threads=1, jobs=1, device="cpu", command="")
    return replace(run, **changes)


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path, wait=False) as first, locked(path, wait=False) as second:
        assert (first, second) == (True, False)
    with locked(path, wait=False) as third:
        assert third


def test_the_table_joins_the_runs_and_keeps_those_without_a_folder(tmp_path: Path) -> None:
    kept, replaced, new = a_run(), a_run(seed=10), a_run(seed=2, algorithm="sb3")
    write_rows(tmp_path / RESULTS, [*rows_of(replaced, 0, final=False), *rows_of(kept, 0, 100, final=True)])
    for run in (replaced, new):
        run.folder(tmp_path).mkdir(parents=True)
        write_rows(run.folder(tmp_path) / ROWS, rows_of(run, 0, 50, final=False))
    join_rows(tmp_path)
    rows = read_rows(tmp_path / RESULTS)
    assert [(row["algorithm"], row["seed"], row["steps"], row["final"]) for row in rows] == [
        ("ours", "0", "0", "False"),
        ("ours", "0", "100", "True"),
        ("ours", "10", "0", "False"),
        ("ours", "10", "50", "False"),
        ("sb3", "2", "0", "False"),
        ("sb3", "2", "50", "False"),
    ]
    tabled = tabled_runs(tmp_path)
    assert [is_finished(tmp_path, run, tabled) for run in (kept, replaced, new)] == [True, False, False]


@pytest.mark.parametrize("steps, fits", [(101, False), (100, True), (81, True), (80, False), (40, False)])
def test_a_run_of_the_committed_table_was_as_long_as_asked_for(steps: int, fits: bool, tmp_path: Path) -> None:
    """Evaluated after rollouts of 20 steps: with 80 steps asked for, or fewer, it would not have come to 100."""
    run = a_run(seed=3)
    write_rows(tmp_path / RESULTS, [*rows_of(a_run(), 0, 500, final=True), *rows_of(run, 0, 40, 80, 100, final=True)])
    reason = objection(tmp_path, replace(run, steps=steps), tabled_runs(tmp_path))
    assert reason == (
        None
        if fits
        else f"CartPole-v1, ours, seed 3 is in results.csv with 100 steps, not {steps}: "
        "give the same --steps, another --out, or delete what is there."
    )


def test_what_was_done_before_counts_from_the_beginning(tmp_path: Path) -> None:
    tabled, halfway, new = a_run(), a_run(seed=1), a_run(seed=2)
    write_rows(tmp_path / RESULTS, rows_of(tabled, 0, 120, final=True))
    halfway.folder(tmp_path).mkdir(parents=True)
    write_progress(halfway.folder(tmp_path), Progress(steps=50))
    assert Schedule([tabled, halfway, new], tmp_path, print).steps() == 100 + 50 + 0


def test_a_run_keeps_the_steps_that_it_was_begun_with(tmp_path: Path) -> None:
    run = a_run()
    run.folder(tmp_path).mkdir(parents=True)
    write_order(run.folder(tmp_path), run)
    assert objection(tmp_path, replace(run, jobs=2), {}) is None
    for steps in (99, 101):
        reason = objection(tmp_path, replace(run, steps=steps), {})
        assert reason is not None
        assert f"was begun with 100 steps, now it is to have {steps}:" in reason


def test_a_table_with_other_columns_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"results\.csv is not a table"):
        join_rows(tmp_path)
    assert (tmp_path / RESULTS).read_text(encoding="utf-8") == "a,b\n1,2\n"
