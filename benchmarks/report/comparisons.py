"""Our side held against the others, task by task and over all tasks.

Owns which scores and times are compared, and on which scale; must not know the formulas or how a figure is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.report.algorithms import ALGORITHMS, OURS, STOCK
from benchmarks.report.statistics import (
    Interval,
    PermutationTest,
    Scores,
    bootstrap_interval,
    detectable_difference,
    interquartile_mean,
    mean_of_means,
    permutation_test,
    probability_of_improvement,
)
from benchmarks.report.table import RUN, final_scores, sides

_ENOUGH_SEEDS = 10  # for an interval without width to mean that there is little doubt


class Estimate(NamedTuple):
    """A statistic with its bootstrap interval; None where that would mean nothing, as for a single seed."""

    value: float
    interval: Interval | None


@dataclass(frozen=True)
class Comparison:
    """Our side against another on one task.

    :param task: name
    :param against: the other algorithm
    :param ours: final scores of our finished runs, ``(n,)``
    :param theirs: likewise, ``(m,)``
    :param improvement: probability that a run of ours scores higher; None if a side has no finished run
    :param permutation: test of the difference of means; None if a side has fewer than two
    :param detectable: difference that this test could see, in the unit of the scores; None if that cannot be told
    :param time_ratios: their training time / ours up to the same step, of each seed that both sides have
    """

    task: str
    against: str
    ours: Scores
    theirs: Scores
    improvement: Estimate | None
    permutation: PermutationTest | None
    detectable: float | None
    time_ratios: tuple[float, ...]


class Anchors(NamedTuple):
    """Scores of a task that count as 0 and as 1, and the steps and the side that they stem from."""

    low: float
    low_steps: int
    high: float
    high_side: str


@dataclass(frozen=True)
class Overall:
    """Our side against another over all tasks that both finished, in normalised scores.

    :param against: the other algorithm
    :param tasks: names
    :param iqms: interquartile mean of each side, ours first
    :param means: mean over tasks of each side's mean over seeds
    :param improvement: mean over tasks of the probability that a run of ours scores higher
    """

    against: str
    tasks: tuple[str, ...]
    iqms: tuple[Estimate, Estimate]
    means: tuple[Estimate, Estimate]
    improvement: Estimate


def comparisons(table: pd.DataFrame) -> list[Comparison]:
    """Judge our side on every task.

    :param table: of runs
    :return: one for each task and other algorithm
    """
    return [
        _comparison(table, task, against)
        for task in table["task"].unique()
        for against in sides(table, task)
        if against != OURS and OURS in sides(table, task)
    ]


def anchors(table: pd.DataFrame, task: str) -> Anchors | None:
    """The scale on which scores of a task are normalised.

    :param table: of runs
    :param task: name
    :return: low: the lowest mean, over algorithms, of the first evaluations; high: mean final score of the stock side,
        or of the best one where stock has none. None unless low < high
    """
    rows = table[table["task"] == task]
    firsts = rows.groupby(RUN, sort=False).head(1).groupby("algorithm", sort=False)[["score", "steps"]].mean()
    first = firsts.loc[firsts["score"].idxmin()]
    finals = {
        side: float(scores.mean()) for side in sides(table, task) if len(scores := final_scores(table, task, side))
    }
    if not finals:
        return None
    side = STOCK if STOCK in finals else max(finals, key=finals.__getitem__)
    if first["score"] >= finals[side]:
        return None
    return Anchors(float(first["score"]), round(first["steps"]), finals[side], side)


def overall(table: pd.DataFrame) -> list[Overall]:
    """Judge our side over tasks.

    :param table: of runs
    :return: one for each algorithm that finished a task that ours finished too, if its scores can be normalised
    """
    scales = {task: scale for task in table["task"].unique() if (scale := anchors(table, task)) is not None}
    found = (_overall(table, against, scales) for against in ALGORITHMS if against != OURS)
    return [one for one in found if one is not None]


def time_ratios(table: pd.DataFrame, task: str, against: str) -> tuple[float, ...]:
    """How many times as long the other side took, at the most steps that both reached.

    :param table: of runs
    :param task: name
    :param against: the other algorithm
    :return: one for each seed that both sides have, finished or not
    """
    rows = table[table["task"] == task]
    runs = dict(list(rows.groupby(["algorithm", "seed"])))
    ratios = []
    for seed in sorted(rows["seed"].unique()):
        if (OURS, seed) in runs and (against, seed) in runs:
            ours, theirs = runs[OURS, seed], runs[against, seed]
            steps = min(ours["steps"].max(), theirs["steps"].max())
            if steps > 0:
                ratios.append(_seconds_until(steps, theirs) / _seconds_until(steps, ours))
    return tuple(ratios)


def _seconds_until(steps: int, run: pd.DataFrame) -> float:
    """Interpolated between evaluations; a run begins at no steps and no time."""
    return float(np.interp(steps, [0, *run["steps"]], [0.0, *run["training_seconds"]]))


def _comparison(table: pd.DataFrame, task: str, against: str) -> Comparison:
    ours, theirs = final_scores(table, task, OURS), final_scores(table, task, against)
    both = len(ours) > 0 and len(theirs) > 0
    return Comparison(
        task=task,
        against=against,
        ours=ours,
        theirs=theirs,
        improvement=_improvement([ours], [theirs]) if both else None,
        permutation=permutation_test(ours, theirs),
        detectable=detectable_difference(ours, theirs),
        time_ratios=time_ratios(table, task, against),
    )


def _improvement(ours: list[Scores], theirs: list[Scores]) -> Estimate:
    """Over tasks."""

    def mean_over_tasks(strata: Sequence[Scores]) -> Scores:
        pairs = zip(strata[: len(ours)], strata[len(ours) :], strict=True)
        of_tasks = np.broadcast_arrays(*(probability_of_improvement(*pair) for pair in pairs))
        return np.asarray(np.mean(np.stack(of_tasks), axis=0))

    strata = [*ours, *theirs]
    value = float(mean_over_tasks(strata))
    # Where all scores of a side are above all of the other, so are those of every resample: an interval without width.
    is_degenerate = value in (0.0, 1.0) and min(map(len, strata)) < _ENOUGH_SEEDS
    return Estimate(value, None if is_degenerate else bootstrap_interval(strata, mean_over_tasks))


def _overall(table: pd.DataFrame, against: str, scales: dict[str, Anchors]) -> Overall | None:
    scores = {
        side: {
            task: (found - scale.low) / (scale.high - scale.low)
            for task, scale in scales.items()
            if len(found := final_scores(table, task, side))
        }
        for side in (OURS, against)
    }
    tasks = [task for task in scales if task in scores[OURS] and task in scores[against]]
    if not tasks:
        return None
    ours, theirs = ([scores[side][task] for task in tasks] for side in (OURS, against))
    iqm_ours, iqm_theirs, mean_ours, mean_theirs = (
        Estimate(float(statistic(strata)), bootstrap_interval(strata, statistic))
        for statistic in (interquartile_mean, mean_of_means)
        for strata in (ours, theirs)
    )
    return Overall(against, tuple(tasks), (iqm_ours, iqm_theirs), (mean_ours, mean_theirs), _improvement(ours, theirs))
