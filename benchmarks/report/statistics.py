"""What scores of a few seeds tell, and how surely: Agarwal et al. 2021 (arXiv:2108.13264) and a permutation test.

Owns the formulas; must not know tasks, algorithms or tables. Every generator is seeded: same scores, same figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, hypot
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

SEED = 0
CONFIDENCE = 0.95
N_BOOTSTRAP = 9_999
N_PERMUTATIONS = 199_999  # all of them up to ten seeds a side
SIGNIFICANCE = 0.05
POWER = 0.8

Scores = npt.NDArray[np.float64]


class Interval(NamedTuple):
    """Bounds of a confidence interval."""

    low: float
    high: float


class PermutationTest(NamedTuple):
    """Whether two sides' means differ.

    :param p: two-sided
    :param smallest_p: that so many seeds can attain; above 5 %, the test cannot see any difference
    :param is_exact: whether every split of the scores was counted, not a random sample of them
    """

    p: float
    smallest_p: float
    is_exact: bool


def interquartile_mean(strata: Sequence[Scores]) -> Scores:
    """Mean of the middle half of all scores, where every stratum weighs the same, however many scores it has.

    A score on the border of the middle half counts with its part inside. For strata of one length, and a number of
    scores that four divides, this is ``scipy.stats.trim_mean(scores, 0.25)``.

    :param strata: each ``(..., scores)``
    :return: ``(...,)``
    """
    leading = np.broadcast_shapes(*(scores.shape[:-1] for scores in strata))
    together = np.concatenate([np.broadcast_to(one, (*leading, one.shape[-1])) for one in strata], axis=-1)
    weights = np.concatenate([np.full(one.shape[-1], 1 / (len(strata) * one.shape[-1])) for one in strata])
    order = np.argsort(together, axis=-1)
    upper = np.cumsum(weights[order], axis=-1)
    inside = np.clip(upper, 0.25, 0.75) - np.clip(upper - weights[order], 0.25, 0.75)
    lowest = together.min(axis=-1, keepdims=True)  # subtracted, so that equal scores have exactly their mean
    above = np.sum(inside * np.take_along_axis(together - lowest, order, axis=-1), axis=-1)
    return np.asarray(lowest[..., 0] + above / inside.sum(axis=-1))


def mean_of_means(strata: Sequence[Scores]) -> Scores:
    """Mean over strata of the mean of each.

    :param strata: each ``(..., scores)``
    :return: ``(...,)``
    """
    means = np.broadcast_arrays(*(scores.mean(axis=-1) for scores in strata))
    return np.asarray(np.mean(np.stack(means), axis=0))


def probability_of_improvement(ours: Scores, theirs: Scores) -> Scores:
    """How likely a run of ours scores above one of theirs, ties counting half: Mann and Whitney's U / (n m).

    :param ours: ``(..., n)``
    :param theirs: ``(..., m)``
    :return: ``(...,)``, in [0, 1]
    """
    mine, other = ours[..., :, None], theirs[..., None, :]
    return np.asarray(np.mean((mine > other) + 0.5 * (mine == other), axis=(-2, -1)))


def bootstrap_interval(strata: Sequence[Scores], statistic: Callable[[Sequence[Scores]], Scores]) -> Interval | None:
    """Percentile bootstrap interval that resamples the seeds within every stratum.

    :param strata: each ``(seeds,)``; one of a single seed stays as it is
    :param statistic: of strata, each ``(resamples, seeds)`` or ``(1,)``
    :return: None if no stratum has two seeds
    """
    spread = [scores for scores in strata if len(scores) > 1]
    if not spread:
        return None

    def of_resampled(*resampled: Scores, axis: int) -> Scores:
        ones = iter(resampled)
        return statistic([next(ones) if len(scores) > 1 else scores for scores in strata])

    interval = _bootstrap(spread, of_resampled, n_resamples=N_BOOTSTRAP, axis=-1)
    return Interval(float(interval.low), float(interval.high))


def bootstrap_band(scores: Scores, *, n_resamples: int = 1_999) -> tuple[Scores, Scores]:
    """Percentile bootstrap interval of the mean over seeds, at every point of a curve.

    :param scores: ``(seeds, points)``, of at least two seeds
    :param n_resamples: what the eye can tell apart; the same seeds are drawn at all points
    :return: lower and upper bound, each ``(points,)``
    """
    interval = _bootstrap([scores], np.mean, n_resamples=n_resamples, axis=0)
    return np.asarray(interval.low), np.asarray(interval.high)


def permutation_test(ours: Scores, theirs: Scores) -> PermutationTest | None:
    """How often a random split of all scores has means at least as far apart.

    :param ours: ``(n,)``
    :param theirs: ``(m,)``
    :return: None if a side has a single seed
    """
    if min(len(ours), len(theirs)) < 2:
        return None

    def difference(x: Scores, y: Scores, axis: int) -> Scores:
        return np.asarray(np.mean(x, axis=axis) - np.mean(y, axis=axis))

    result = stats.permutation_test(
        (ours, theirs), difference, n_resamples=N_PERMUTATIONS, vectorized=True, rng=np.random.default_rng(SEED)
    )
    n_splits = comb(len(ours) + len(theirs), len(ours))
    is_exact = n_splits <= N_PERMUTATIONS
    return PermutationTest(float(result.pvalue), 2 / (n_splits if is_exact else N_PERMUTATIONS + 1), is_exact)


def detectable_difference(ours: Scores, theirs: Scores) -> float | None:
    """The difference of means that a two-sided test at 5 % sees with a probability of 80 %.

    δ with P(t' > t₀.₉₇₅) = 0.8, where t' is noncentral t with Welch's degrees of freedom and noncentrality δ / SE,
    SE = √(s₁²/n₁ + s₂²/n₂); for many seeds it becomes (z₀.₉₇₅ + z₀.₈) SE.

    :param ours: ``(n,)``
    :param theirs: ``(m,)``
    :return: in the unit of the scores; None if a side has a single seed
    """
    n, m = len(ours), len(theirs)
    if min(n, m) < 2:
        return None
    a, b = ours.var(ddof=1) / n, theirs.var(ddof=1) / m
    if a + b == 0:
        return 0.0
    freedom = (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))
    return hypot(*np.sqrt([a, b])) * _detectable_noncentrality(freedom)


def _detectable_noncentrality(freedom: float) -> float:
    critical = stats.t.ppf(1 - SIGNIFICANCE / 2, freedom)

    def missing_power(noncentrality: float) -> float:
        return float(POWER - stats.nct.sf(critical, freedom, noncentrality))

    upper = float(critical)
    while missing_power(upper) > 0:
        upper *= 2
    return float(optimize.brentq(missing_power, 0, upper))


def _bootstrap(data: Sequence[Scores], statistic: Callable[..., Any], *, n_resamples: int, axis: int) -> Any:
    return stats.bootstrap(
        data,
        statistic,
        n_resamples=n_resamples,
        batch=500,
        axis=axis,
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
