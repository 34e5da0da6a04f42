"""What scores of a few seeds tell, and how surely: Agarwal et al. 2021 (arXiv:2108.13264) and a permutation test.

Owns the formulas; must not know tasks, algorithms or tables. Every generator is seeded: same scores, same figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

SEED = 0
CONFIDENCE = 0.95
N_BOOTSTRAP = 9_999
N_PERMUTATIONS = 199_999  # all of them up to ten seeds a side
SIGNIFICANCE = 0.05
POWER = 0.8
N_SIMULATED, _N_SIMULATED_SPLITS = 4_000, 1_999

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
    """The difference of means that ``permutation_test`` brings to 5 % with a probability of 80 %.

    Over simulated data sets, whose scores are those of the seeds, centred, scaled by √(n / (n − 1)) to the variance
    that they let expect, and drawn with replacement. In each, the test sees every shift of a side beyond a certain
    one; of these, this is the one that four fifths of the data sets do not exceed, for the side with the larger one.

    :param ours: ``(n,)``
    :param theirs: ``(m,)``
    :return: in the unit of the scores; None if a side has no spread, or if so few seeds cannot reach 5 % at all
    """
    n, m = len(ours), len(theirs)
    if min(n, m) < 2 or 2 / comb(n + m, n) > SIGNIFICANCE or min(np.ptp(ours), np.ptp(theirs)) == 0:
        return None
    rng = np.random.default_rng(SEED)
    sides = ((side - side.mean()) * sqrt(len(side) / (len(side) - 1)) for side in (ours, theirs))
    data = np.concatenate([rng.choice(side, size=(N_SIMULATED, len(side))) for side in sides], axis=1)
    others = _other_splits(n, m, rng)
    differences = np.where(others, 1 / n, -1 / m) @ data.T  # of means, (splits, data sets)
    observed = data[:, :n].mean(axis=1) - data[:, n:].mean(axis=1)
    # A split that takes `moved` scores of ours away is no less extreme than the one observed up to this shift.
    moved = n - others[:, :n].sum(axis=1, keepdims=True)
    shifts = (differences - observed) / (moved * (1 / n + 1 / m))
    n_allowed = int(SIGNIFICANCE / 2 * (len(others) + 1) + 1e-9)  # splits no less extreme, with the one observed
    seen_beyond = (np.partition(one, -n_allowed, axis=0)[-n_allowed] for one in (shifts, -shifts))
    return max(float(np.quantile(one, POWER, method="inverted_cdf")) for one in seen_beyond)


def _other_splits(n: int, m: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """All splits of n + m scores but the one observed, or as many random ones as are enough.

    :return: ``(splits, n + m)``, which scores count as ours
    """
    if comb(n + m, n) > _N_SIMULATED_SPLITS:
        splits = rng.permuted(np.tile(np.arange(n + m) < n, (_N_SIMULATED_SPLITS, 1)), axis=1)
        return splits[~splits[:, :n].all(axis=1)]
    chosen = list(combinations(range(n + m), n))[1:]
    splits = np.zeros((len(chosen), n + m), dtype=bool)
    np.put_along_axis(splits, np.array(chosen), True, axis=1)
    return splits


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
