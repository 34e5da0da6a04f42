"""Learning curves of one task: every seed, their mean, and the band around it.

Owns how seeds that were evaluated at different places are brought together; must not know how a curve is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.report.statistics import Scores, bootstrap_band
from benchmarks.report.table import sides


@dataclass(frozen=True)
class Curve:
    """One side on one task.

    :param algorithm: name
    :param runs: places and scores of the evaluations of each seed, each ``(evaluations,)``
    :param places: where there is a mean, ``(points,)``: from where every seed of it has been evaluated, to the end of
        the last finished one, those that ended before it keeping their last score; where none is finished, as far as
        every seed has evaluations
    :param mean: over finished seeds, or over all where none is finished, ``(points,)``
    :param band: lower and upper bound of the mean, each ``(points,)``; None for a single seed
    """

    algorithm: str
    runs: tuple[tuple[Scores, Scores], ...]
    places: Scores
    mean: Scores
    band: tuple[Scores, Scores] | None


def curves(table: pd.DataFrame, task: str, column: str) -> list[Curve]:
    """The curves of a task.

    :param table: of runs
    :param task: name
    :param column: that says where an evaluation lies: ``steps`` or ``training_seconds``
    :return: one for each algorithm
    """
    rows = table[table["task"] == task]
    return [_curve(rows[rows["algorithm"] == side], side, column) for side in sides(table, task)]


def _curve(rows: pd.DataFrame, algorithm: str, column: str) -> Curve:
    runs = [
        (
            np.asarray(run[column], dtype=np.float64),
            np.asarray(run["score"], dtype=np.float64),
            bool(run["final"].any()),
        )
        for _, run in rows.groupby("seed")
    ]
    all_runs = tuple((where, scores) for where, scores, _ in runs)
    finished = tuple((where, scores) for where, scores, is_finished in runs if is_finished)
    averaged = finished or all_runs
    # Where a seed is missing, the mean would jump; but what is finished stays as it is.
    first = max(where[0] for where, _ in averaged)
    last = (max if finished else min)(where[-1] for where, _ in averaged)
    places = np.unique(np.concatenate([where for where, _ in averaged]))
    places = places[(places >= first) & (places <= last)]
    scores = np.stack([np.interp(places, *run) for run in averaged])  # which goes on with the last score
    band = bootstrap_band(scores) if len(averaged) > 1 and len(places) else None
    return Curve(algorithm, all_runs, places, scores.mean(axis=0), band)
