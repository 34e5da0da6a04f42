"""One training run and its result file, which is complete or not there.

Owns where results are and what is asked of a run; must not know how training goes or who starts it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.experiments.training.recipes import Recipe, Recipes
from benchmarks.files import write_atomically


@dataclass(frozen=True)
class Run:
    """What is asked.

    :param experiment: name of the package whose ``settings.RECIPES`` count
    :param task: id of a registered environment
    :param setting: name of the recipe
    :param seed: of everything random
    :param steps: environment steps over all environments
    """

    experiment: str
    task: str
    setting: str
    seed: int
    steps: int

    @property
    def name(self) -> str:
        """For people to read."""
        return f"{self.task}, {self.setting}, seed {self.seed}"

    @property
    def recipe(self) -> Recipe:
        """What the setting is made of."""
        recipes: Recipes = import_module(f"benchmarks.experiments.{self.experiment}.settings").RECIPES
        return recipes[self.setting]

    def result(self, out: Path) -> Path:
        """The file that says how it went.

        :param out: folder of the experiment
        """
        return out / "runs" / self.task / self.setting / f"{self.seed}.json"

    def beside(self, out: Path, suffix: str) -> Path:
        """A file of the same run for something else.

        :param out: folder of the experiment
        :param suffix: such as ".log"
        """
        return self.result(out).with_suffix(suffix)


def write_result(out: Path, run: Run, result: dict[str, Any]) -> None:
    """Note how a run went.

    :param out: folder of the experiment
    :param run: finished
    :param result: JSON's types only
    """
    write_atomically(run.result(out), json.dumps({**asdict(run), **result}, indent=1) + "\n")


def read_result(out: Path, run: Run) -> dict[str, Any] | None:
    """How a run went.

    :param out: folder of the experiment
    :param run: asked for
    :return: None if it is not finished
    :raises ValueError: if it was finished with other steps
    """
    path = run.result(out)
    if not path.exists():
        return None
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if result["steps"] != run.steps:
        raise ValueError(
            f"{run.name} was done with {result['steps']:,} steps, now it is to have {run.steps:,}: give the same "
            f"--steps, another --out, or delete {path}."
        )
    return result


def finished_results(out: Path, runs: Sequence[Run]) -> pd.DataFrame:
    """How those runs went that are finished.

    :param out: folder of the experiment
    :param runs: all that are asked for
    :return: one row for each, by task and seed; empty if there is none
    """
    rows = [result for run in runs if (result := read_result(out, run)) is not None]
    if not rows:
        return pd.DataFrame()
    return pd.DataFrame(rows).drop(columns="experiment").sort_values(["task", "seed"], kind="stable")


def complete_results(out: Path, runs: Sequence[Run]) -> pd.DataFrame:
    """Those of tasks and seeds for which every setting asked for is finished.

    :param out: folder of the experiment
    :param runs: all that are asked for
    :return: one row for each, by task and seed; empty if there is none
    """
    finished = finished_results(out, runs)
    if finished.empty:
        return finished
    n_settings = len({run.setting for run in runs})
    return finished.groupby(["task", "seed"]).filter(lambda rows: len(rows) == n_settings)


def trained_tasks(table: pd.DataFrame) -> str:
    """What was trained for how long, and how many times.

    :param table: of results
    :return: such as "Hopper-v5 (300,000 steps, 2 seeds)"; with "1–2 seeds" where settings have unlike many
    """
    parts = []
    for task, rows in table.groupby("task", sort=False):
        n_seeds = rows.groupby("setting")["seed"].nunique()
        fewest, most = n_seeds.min(), n_seeds.max()
        number = f"{most}" if fewest == most else f"{fewest}–{most}"
        parts.append(f"{task} ({rows['steps'].iloc[0]:,} steps, {number} seed{'' if number == '1' else 's'})")
    return ", ".join(parts)


def diverged_runs(table: pd.DataFrame) -> str:
    """Which settings led to weights that are not finite.

    :param table: of results
    :return: such as "no-clip 4", or "none"
    """
    counts = table[table["diverged"]].groupby("setting", sort=False).size()
    return ", ".join(f"{name} {n}" for name, n in counts.items()) or "none"
