"""Formulas of the report, against numbers worked out by hand, by enumeration or by simulation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest
from scipy import stats

from benchmarks.report.statistics import (
    PermutationTest,
    Scores,
    bootstrap_band,
    bootstrap_interval,
    detectable_difference,
    interquartile_mean,
    mean_of_means,
    permutation_test,
    probability_of_improvement,
)


def scores(*values: float) -> Scores:
    return np.array(values, dtype=np.float64)


def standardised(n: int) -> Scores:
    """Mean 0, sample standard deviation 1."""
    values = np.arange(n, dtype=np.float64)
    return np.asarray((values - values.mean()) / values.std(ddof=1))


def assert_most_extreme(test: PermutationTest | None, smallest_p: float, *, is_exact: bool) -> None:
    assert test is not None
    assert test.p == pytest.approx(smallest_p)
    assert test.smallest_p == pytest.approx(smallest_p)
    assert test.is_exact is is_exact


@pytest.mark.parametrize(
    "strata, expected",
    [
        ([scores(4, 1, 3, 2)], 2.5),
        ([scores(0, 1, 2, 3, 4, 5, 6, 100)], 3.5),
        ([scores(7)], 7.0),
        ([scores(50, 0, 10)], (0 / 4 + 10 + 50 / 4) / 1.5),  # of the outer ones, a quarter each lies inside
        ([scores(0), scores(10, 20, 30, 40)], (0 * 0.25 + 10 * 0.125 + 20 * 0.125) / 0.5),  # both weigh a half
    ],
)
def test_interquartile_mean(strata: list[Scores], expected: float) -> None:
    assert interquartile_mean(strata) == pytest.approx(expected)


def test_interquartile_mean_of_equal_strata_is_scipys_trimmed_mean() -> None:
    strata = list(np.random.default_rng(1).normal(size=(4, 3)))
    assert interquartile_mean(strata) == pytest.approx(stats.trim_mean(np.concatenate(strata), 0.25))


def test_interquartile_mean_of_resamples() -> None:
    resampled = np.array([[1, 2, 3, 4], [0, 0, 0, 8]], dtype=np.float64)
    assert interquartile_mean([resampled]) == pytest.approx([2.5, 0.0])
    assert interquartile_mean([resampled, scores(9.0)]).shape == (2,)


def test_mean_of_means_weighs_strata_alike() -> None:
    assert mean_of_means([scores(0, 2, 4), scores(10)]) == 6.0


def test_interval_of_equal_scores_is_exactly_these() -> None:
    assert bootstrap_interval([np.full(10, 0.1 + 0.2)], interquartile_mean) == (0.1 + 0.2, 0.1 + 0.2)


def test_interval_of_two_seeds_reaches_from_one_to_the_other() -> None:
    """Each alone is drawn twice in a quarter of the resamples."""
    assert bootstrap_interval([scores(0, 1)], mean_of_means) == (0.0, 1.0)


def test_a_single_seed_adds_no_width() -> None:
    assert bootstrap_interval([scores(0, 1), scores(10)], mean_of_means) == (5.0, 5.5)
    assert bootstrap_interval([scores(3), scores(10)], mean_of_means) is None


def test_strata_are_resampled_within() -> None:
    """Seeds of one task never stand for those of another."""
    assert bootstrap_interval([scores(0, 0), scores(10, 10)], mean_of_means) == (5.0, 5.0)


@pytest.mark.parametrize("n_seeds, coverage", [(3, 0.75), (5, 0.84), (10, 0.90), (20, 0.93)])
def test_intervals_of_few_seeds_cover_as_much_as_the_report_says(n_seeds: int, coverage: float) -> None:
    samples = np.random.default_rng(5).normal(size=(300, n_seeds))
    intervals = [bootstrap_interval([sample], mean_of_means) for sample in samples]
    n_covering = sum(interval is not None and interval.low <= 0 <= interval.high for interval in intervals)
    assert n_covering / len(samples) == pytest.approx(coverage, abs=0.06)


def test_same_scores_have_the_same_interval() -> None:
    sample = np.random.default_rng(2).normal(size=7)
    one, other = (bootstrap_interval([sample], interquartile_mean) for _ in range(2))
    assert one == other


def test_band_draws_the_same_seeds_everywhere() -> None:
    low, high = bootstrap_band(np.array([[0.0, 10.0, 5.0], [1.0, 30.0, 5.0]]))
    assert low.tolist() == [0.0, 10.0, 5.0]
    assert high.tolist() == [1.0, 30.0, 5.0]


def test_probability_of_improvement_counts_ties_half() -> None:
    ours, theirs = scores(1, 2, 2), scores(2, 3)
    # 1 < 2, 1 < 3, and twice 2 = 2, 2 < 3
    assert probability_of_improvement(ours, theirs) == pytest.approx((0 + 0 + 2 * (0.5 + 0)) / 6)
    assert probability_of_improvement(theirs, ours) == pytest.approx(5 / 6)
    u = stats.mannwhitneyu(ours, theirs, method="asymptotic").statistic
    assert probability_of_improvement(ours, theirs) == pytest.approx(u / 6)


def test_permutation_test_is_an_enumeration() -> None:
    ours, theirs = scores(1, 4, 2), scores(3, 5, 7, 0.5)
    together = [*ours, *theirs]
    sums = np.array([sum(chosen) for chosen in combinations(together, 3)])
    expected = 2 * min(np.mean(sums <= ours.sum()), np.mean(sums >= ours.sum()))
    test = permutation_test(ours, theirs)
    assert test is not None
    assert test.p == pytest.approx(expected)
    assert test.smallest_p == pytest.approx(2 / 35)


def test_three_seeds_a_side_cannot_be_significant() -> None:
    assert_most_extreme(permutation_test(scores(1, 2, 3), scores(4, 5, 6)), 0.1, is_exact=True)


def test_equal_scores_do_not_differ() -> None:
    test = permutation_test(np.full(10, 500.0), np.full(10, 500.0))
    assert test is not None
    assert test.p == 1.0


def test_ten_seeds_a_side_are_all_enumerated_and_more_are_sampled() -> None:
    ten = permutation_test(np.arange(10.0), np.arange(10.0) + 100)
    assert_most_extreme(ten, 2 / comb(20, 10), is_exact=True)
    more = permutation_test(np.arange(14.0), np.arange(14.0) + 100)
    assert_most_extreme(more, 2 / 200_000, is_exact=False)


def test_a_single_seed_cannot_be_tested() -> None:
    assert permutation_test(scores(1), scores(2, 3)) is None


def test_detectable_difference_worked_out_by_hand() -> None:
    """Of 70 splits only the one observed may be so extreme: the shifted side's least must exceed the other's most.

    Of four draws of ±1, some are 1 and some are −1 but in 1 of 8 sets; of four of −1, −1, −1, 3, a 3 comes up in 68 %.
    """
    even, uneven = scores(7, 7, 9, 9), scores(0, 0, 0, 4)
    assert detectable_difference(even, even + 5) == pytest.approx(2 * sqrt(4 / 3))
    assert detectable_difference(uneven, uneven) == pytest.approx(4 * sqrt(4 / 3))
    assert detectable_difference(10 * even, 10 * even) == pytest.approx(20 * sqrt(4 / 3)), "in the unit of the scores"


def test_detectable_difference_of_many_seeds_is_the_textbooks() -> None:
    """Cohen 1988, table 2.4.1: 64 a side see half a standard deviation at two-sided 5 % four times in five."""
    assert detectable_difference(standardised(64), standardised(64)) == pytest.approx(0.5, rel=0.03)


def test_the_permutation_test_sees_a_detectable_difference_four_times_in_five() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = scores(0, 1, 5, 6, 8), 3 * scores(-2, -1, 0, 0, 3, 1)
    difference = detectable_difference(ours, theirs)
    assert difference is not None

    def drawn(side: Scores, shift: float) -> Callable[[tuple[int, ...]], Scores]:
        centred = (side - side.mean()) * sqrt(len(side) / (len(side) - 1))
        return lambda size: np.asarray(rng.choice(centred, size=size) + shift)

    def p_values(x: Scores, y: Scores, axis: int) -> Scores:
        result = stats.permutation_test(
            (x, y), lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis), vectorized=True, axis=axis
        )
        return np.asarray(result.pvalue)

    powers = [
        stats.power(p_values, sides, (5, 6), significance=0.05 + 1e-9, vectorized=True, n_resamples=1_000).power
        for sides in (
            (drawn(ours, difference), drawn(theirs, 0.0)),
            (drawn(ours, 0.0), drawn(theirs, difference)),
        )
    ]
    assert min(powers) == pytest.approx(0.8, abs=0.04)


def test_where_no_difference_can_be_told_to_be_detectable() -> None:
    assert detectable_difference(scores(1), scores(2, 3)) is None
    assert detectable_difference(scores(1, 2, 3), scores(4, 5, 7, 9)) is None, "2 of 35 splits are more than 5 %"
    assert detectable_difference(scores(1, 2, 3), scores(4, 5, 6, 7, 8)) is not None
    assert detectable_difference(np.full(10, 500.0), standardised(10)) is None, "a side without spread"
