"""Reading and joining tables of head-to-head runs; here too: made-up tables for all tests of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.head_to_head.table import COLUMNS
from benchmarks.report.table import final_scores, load, sides, unfinished_rows

# Lowest and highest return, steps, steps per second of ours.
TASKS = {
    "Acrobot-v1": (-500.0, -75.0, 1_000_000, 4_000.0),
    "BreakoutNoFrameskip-v4": (1.7, 60.0, 1_000_000, 700.0),
    "CartPole-v1": (20.0, 500.0, 100_000, 3_000.0),
    "HalfCheetah-v5": (-280.0, 5_800.0, 1_000_000, 900.0),
    "LunarLander-v3": (-180.0, 245.0, 1_000_000, 2_500.0),
    "PongNoFrameskip-v4": (-20.7, 19.0, 1_500_000, 700.0),
    "SuperMarioBros1-1-v0": (300.0, 1_900.0, 500_000, 120.0),
}
SPEEDS = {"ours": 1.0, "sb3": 0.5, "a2c": 0.6, "trpo": 0.4, "sbx": 0.8}


def a_row(task: str, algorithm: str, seed: int, steps: int, score: float, **others: Any) -> dict[str, Any]:
    row = {
        **dict.fromkeys(COLUMNS, ""),
        "task": task,
        "env_id": task,
        "algorithm": algorithm,
        "seed": seed,
        "steps": steps,
        "score": score,
        "final": False,
        "score_std": 1.0,
        "episodes": 10,
        "training_score": "",
        "resumed": 0,
        "training_seconds": steps / 100,
        "wall_seconds": steps / 50,
        "n_envs": 8,
        "threads": 1,
        "jobs": 2,
        "environment": "DummyVecEnv",
        "policy": "MlpPolicy",
        "command": "python -m benchmarks head-to-head",
        "commit": "abc1234",
        "date": "2001-02-03T04:05:06+00:00",
        "machine": "A Processor x 2",
        "python": "3.11",
        "torch": "2.9",
        "sb3_ppo_from_scratch": "1.0",
    }
    assert set(others) <= set(row)
    return {**row, **others}


def ends(task: str, scores: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Rows of finished runs, evaluated at 1,000 steps, with a return of 0, and at 2,000."""
    return [
        row
        for algorithm, of_seeds in scores.items()
        for seed, score in enumerate(of_seeds)
        for row in (
            a_row(task, algorithm, seed, 1_000, 0.0),
            a_row(task, algorithm, seed, 2_000, score, final=True),
        )
    ]


def a_realistic_table(n_seeds: Mapping[str, Sequence[int]], *, n_evaluations: int = 20) -> list[dict[str, Any]]:
    """Noisy sigmoid curves of different scales, speeds and lengths; the last seed of many is not finished.

    :param n_seeds: of each algorithm, on the tasks in order; no runs where 0
    """
    rng = np.random.default_rng(3)
    rows = []
    for algorithm, numbers in n_seeds.items():
        for (task, (low, high, steps, speed)), number in zip(TASKS.items(), numbers, strict=False):
            for seed in range(number):
                middle, height = rng.uniform(0.25, 0.5), rng.uniform(0.85, 1.0)
                pace = speed * SPEEDS[algorithm] * rng.uniform(0.95, 1.05)
                n_done = n_evaluations // 2 if number > 3 and seed == number - 1 else n_evaluations
                for part in np.arange(1, n_done + 1) / n_evaluations:
                    level = height / (1 + np.exp(-12 * (part - middle))) + rng.normal(0, 0.03)
                    done = round(steps * part)
                    rows.append(
                        a_row(
                            *(task, algorithm, seed, done, low + (high - low) * min(level, 1.0)),
                            final=bool(part == 1),
                            training_seconds=done / pace,
                        )
                    )
    return rows


def written(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def loaded(rows: Sequence[Mapping[str, Any]], folder: Path) -> pd.DataFrame:
    return load([written(rows, folder / "results.csv")])


def test_a_table_is_read_sorted_and_typed(tmp_path: Path) -> None:
    rows = [
        a_row("Z", "sb3", 0, 20, -1.5, final=True),
        a_row("Z", "ours", 10, 10, 3.0),
        a_row("Z", "ours", 9, 10, 2.0, final=True),
        a_row("A", "ours", 0, 5, 1.0),
    ]
    table = loaded(rows, tmp_path)
    assert table[["task", "algorithm", "seed", "steps", "score"]].to_numpy().tolist() == [
        ["Z", "ours", 9, 10, 2.0],
        ["Z", "ours", 10, 10, 3.0],
        ["Z", "sb3", 0, 20, -1.5],
        ["A", "ours", 0, 5, 1.0],
    ]
    assert sides(table, "Z") == ["ours", "sb3"]
    assert final_scores(table, "Z", "ours").tolist() == [2.0]
    assert final_scores(table, "A", "ours").tolist() == []
    assert table["commit"].iloc[0] == "abc1234"
    assert table["sbx"].iloc[0] == "", "what is not installed has no version"


def test_the_last_row_of_an_unfinished_run(tmp_path: Path) -> None:
    rows = [*ends("A", {"ours": [1.0]}), a_row("A", "sb3", 4, 7, 2.0), a_row("A", "sb3", 4, 9, 3.0)]
    assert unfinished_rows(loaded(rows, tmp_path))[["algorithm", "seed", "steps"]].to_numpy().tolist() == [
        ["sb3", 4, 9]
    ]


def test_files_and_folders_are_joined(tmp_path: Path) -> None:
    one = written(ends("A", {"ours": [1.0, 2.0]}), tmp_path / "one" / "results.csv")
    other = written(ends("A", {"sb3": [3.0]}), tmp_path / "any.csv")
    table = load([one.parent, other])
    assert final_scores(table, "A", "ours").tolist() == [1.0, 2.0]
    assert final_scores(table, "A", "sb3").tolist() == [3.0]


def test_a_run_in_two_tables_is_refused(tmp_path: Path) -> None:
    paths = [written(ends("A", {"ours": [1.0]}), tmp_path / name) for name in ("one.csv", "other.csv")]
    with pytest.raises(ValueError, match=r"other\.csv: two rows have task A, algorithm ours, seed 0, steps 1000;"):
        load(paths)


def test_a_run_with_two_ends_is_refused(tmp_path: Path) -> None:
    rows = [a_row("A", "ours", 2, steps, 0.0, final=True) for steps in (1, 2)]
    with pytest.raises(ValueError, match="two rows are the final one of task A, algorithm ours, seed 2"):
        loaded(rows, tmp_path)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_named(column: str, tmp_path: Path) -> None:
    row = a_row("A", "ours", 0, 1, 0.0)
    del row[column]
    with pytest.raises(ValueError, match=rf"results\.csv: missing {column};"):
        loaded([row], tmp_path)


@pytest.mark.parametrize(
    "column, value, words",
    [
        ("score", "nan", "column score has 'nan' in data row 2; use a finite number"),
        ("score", "", "column score has '' in data row 2"),
        ("steps", "1.5", "column steps has '1.5' in data row 2; use a whole number"),
        ("training_seconds", "inf", "column training_seconds has 'inf'"),
        ("final", "yes", "column final has 'yes'; use True or False"),
        ("algorithm", "dqn", "column algorithm has 'dqn'; known are ours, sb3"),
    ],
)
def test_a_wrong_value_is_named(column: str, value: str, words: str, tmp_path: Path) -> None:
    rows = [a_row("A", "ours", seed, 1, 0.0, final=True) for seed in (0, 1)]
    rows[1][column] = value
    with pytest.raises(ValueError, match=words):
        loaded(rows, tmp_path)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"results\.csv: there is no such table"):
        load([tmp_path])
    (tmp_path / "results.csv").write_text("")
    with pytest.raises(ValueError, match="not a CSV table"):
        load([tmp_path])
    (tmp_path / "results.csv").write_text(",".join(COLUMNS) + "\n")
    with pytest.raises(ValueError, match="has no rows"):
        load([tmp_path])
