"""How numbers are written for a reader.

Owns digits, units and dashes; must not know what a number means.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.report.comparisons import Estimate
from benchmarks.report.statistics import Scores

NONE = "–"


def score(value: float, *, like: float | None = None) -> str:
    """A return.

    :param value: any
    :param like: value beside which it stands, and whose decimals it gets
    :return: with one decimal, two below ten
    """
    return f"{value:,.{2 if abs(value if like is None else like) < 10 else 1}f}"


def steps(*numbers: int) -> str:
    """Environment steps.

    :param numbers: of the runs of one side
    :return: such as "100 k" or "1–1.5 M"
    """
    scale, unit = (1e6, "M") if max(numbers) >= 1e6 else (1e3, "k")
    ends = [f"{number / scale:.4g}" for number in sorted({min(numbers), max(numbers)})]
    return f"{'–'.join(ends)} {unit}"


def mean_and_deviation(scores: Scores) -> str:
    """Mean ± sample standard deviation over seeds.

    :param scores: ``(seeds,)``
    :return: without deviation for a single seed
    """
    if not len(scores):
        return NONE
    mean = float(scores.mean())
    return score(mean) + ("" if len(scores) == 1 else f" ± {score(float(scores.std(ddof=1)), like=mean)}")


def estimate(one: Estimate | None, *, decimals: int | None = None) -> str:
    """A statistic and its interval.

    :param one: None writes a dash
    :param decimals: None writes a return
    :return: such as "0.50 [0.25, 0.75]"
    """
    if one is None:
        return NONE
    numbers = [
        score(x, like=one.value) if decimals is None else f"{x:.{decimals}f}"
        for x in (one.value, *(one.interval or ()))
    ]
    return numbers[0] if one.interval is None else f"{numbers[0]} [{numbers[1]}, {numbers[2]}]"


def median_and_range(values: Iterable[float], *, decimals: int) -> str:
    """The middle of a few values, and how far they lie apart.

    :param values: may be none
    :param decimals: to write
    :return: such as "1.8 (1.7–1.9)"
    """
    ordered = sorted(values)
    if not ordered:
        return NONE
    middle, low, high = (f"{x:,.{decimals}f}" for x in (float(np.median(ordered)), ordered[0], ordered[-1]))
    return middle if len(ordered) == 1 else f"{middle} ({low}–{high})"


def distinct(values: Iterable[Any]) -> str:
    """What occurs in a column.

    :param values: with repetitions
    :return: each once, in order of appearance
    """
    return " / ".join(dict.fromkeys(str(value) for value in values if str(value))) or NONE
