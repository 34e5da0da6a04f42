"""Which scores, times and places of evaluation are compared: numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.report.comparisons import Anchors, anchors, comparisons, overall, time_ratios
from benchmarks.report.curves import curves
from tests.benchmarks.test_report_table import a_row, ends, loaded


def test_comparison_of_a_task(tmp_path: Path) -> None:
    rows = ends("A", {"ours": [15, 30], "sb3": [10, 20], "a2c": [15]})
    against_stock, against_a2c = comparisons(loaded(rows, tmp_path))
    assert (against_stock.task, against_stock.against) == ("A", "sb3")
    assert against_stock.ours.tolist() == [15, 30]
    assert against_stock.theirs.tolist() == [10, 20]
    assert against_stock.improvement is not None
    assert against_stock.improvement.value == 0.75
    assert against_stock.permutation is not None
    # 30 + 15 is not the largest of the six sums of two, 30 + 20 is: p = 2 * 2 / 6.
    assert against_stock.permutation.p == pytest.approx(2 / 3)
    assert against_stock.time_ratios == (1.0, 1.0)
    assert against_a2c.improvement is not None
    assert against_a2c.improvement.value == 0.75, "a tie counts half"
    assert against_a2c.permutation is None


@pytest.mark.parametrize("n_seeds, interval", [(9, None), (10, (1.0, 1.0))])
def test_few_seeds_do_not_make_an_improvement_certain(
    n_seeds: int, interval: tuple[float, float] | None, tmp_path: Path
) -> None:
    rows = ends("A", {"ours": range(100, 110), "sb3": range(1, 1 + n_seeds)})
    (one,) = comparisons(loaded(rows, tmp_path))
    assert one.improvement == (1.0, interval)
    (over_tasks,) = overall(loaded(rows, tmp_path))
    assert over_tasks.improvement == (1.0, interval)


def test_unfinished_runs_are_in_no_score(tmp_path: Path) -> None:
    rows = [*ends("A", {"ours": [15.0]}), a_row("A", "sb3", 0, 1_000, 99.0)]
    (one,) = comparisons(loaded(rows, tmp_path))
    assert len(one.theirs) == 0
    assert (one.improvement, one.permutation, one.detectable) == (None, None, None)
    assert overall(loaded(rows, tmp_path)) == []


def test_tasks_without_ours_are_not_compared(tmp_path: Path) -> None:
    assert comparisons(loaded(ends("A", {"sb3": [1.0], "a2c": [2.0]}), tmp_path)) == []


def test_anchors(tmp_path: Path) -> None:
    rows = ends("A", {"ours": [50.0], "sb3": [10, 20]})
    rows[0]["score"] = -3.0  # first evaluation of ours
    table = loaded([*rows, *ends("without stock", {"ours": [7.0], "a2c": [8.0]})], tmp_path)
    assert anchors(table, "A") == Anchors(-3.0, 1_000, 15.0, "sb3")
    assert anchors(table, "without stock") == Anchors(0.0, 1_000, 8.0, "a2c")


def test_scores_that_stock_did_not_raise_are_not_normalised(tmp_path: Path) -> None:
    assert anchors(loaded(ends("A", {"ours": [5.0], "sb3": [0.0]}), tmp_path), "A") is None


def test_overall(tmp_path: Path) -> None:
    rows = [
        *ends("A", {"ours": [15, 30], "sb3": [10, 20]}),  # normalised by 15: ours 1 and 2
        *ends("B", {"ours": [5.0], "sb3": [10.0]}),  # ours 0.5
        *ends("not raised", {"ours": [9.0], "sb3": [-1.0]}),
        *ends("ours alone", {"ours": [9.0]}),
    ]
    (one,) = overall(loaded(rows, tmp_path))
    assert (one.against, one.tasks) == ("sb3", ("A", "B"))
    assert one.means[0].value == pytest.approx((1.5 + 0.5) / 2)
    assert one.means[0].interval == pytest.approx((0.75, 1.25))
    assert one.means[1].value == pytest.approx(1.0)
    assert one.iqms[0].value == pytest.approx((0.25 * 0.5 + 0.25 * 1) / 0.5)
    assert one.improvement.value == pytest.approx((0.75 + 0) / 2)


def test_time_ratios_stop_where_the_shorter_run_stops(tmp_path: Path) -> None:
    rows = [
        a_row("A", "ours", 0, 1_000, 0, training_seconds=10),
        a_row("A", "ours", 0, 2_000, 0, training_seconds=20, final=True),
        a_row("A", "sb3", 0, 1_000, 0, training_seconds=30),
        a_row("A", "ours", 1, 1_500, 0, training_seconds=15),
        a_row("A", "sb3", 1, 1_000, 0, training_seconds=20),
        a_row("A", "sb3", 1, 2_000, 0, training_seconds=50),
        a_row("A", "ours", 2, 500, 0, training_seconds=5),
        a_row("A", "sb3", 2, 1_000, 0, training_seconds=20),
        a_row("A", "ours", 3, 500, 0, training_seconds=5),
    ]
    assert time_ratios(loaded(rows, tmp_path), "A", "sb3") == pytest.approx((30 / 10, 35 / 15, 10 / 5))


def test_seeds_evaluated_at_different_steps_are_averaged_from_where_all_have_scores(tmp_path: Path) -> None:
    rows = [
        *(a_row("A", "ours", 0, steps, steps - 10, final=steps == 30) for steps in (10, 20, 30)),
        *(a_row("A", "ours", 1, steps, score, final=steps == 25) for steps, score in ((15, 1.0), (25, 3.0))),
        *(a_row("A", "ours", 2, steps, 1000.0) for steps in (16, 18)),
    ]
    (curve,) = curves(loaded(rows, tmp_path), "A", "steps")
    assert curve.places.tolist() == [15, 20, 25, 30]
    assert curve.mean.tolist() == pytest.approx([(5 + 1) / 2, (10 + 2) / 2, (15 + 3) / 2, (20 + 3) / 2])
    assert curve.band is not None
    assert [bound.tolist() for bound in curve.band] == [[1, 2, 3, 3], [5, 10, 15, 20]]
    assert [where.tolist() for where, _ in curve.runs] == [[10, 20, 30], [15, 25], [16, 18]]


def test_a_curve_against_time(tmp_path: Path) -> None:
    rows = [a_row("A", "ours", 0, steps, steps, training_seconds=steps / 4) for steps in (4, 8)]
    (curve,) = curves(loaded(rows, tmp_path), "A", "training_seconds")
    assert (curve.places.tolist(), curve.mean.tolist(), curve.band) == ([1, 2], [4, 8], None)


def test_the_mean_against_time_ends_at_the_final_scores_of_all_seeds(tmp_path: Path) -> None:
    fast = [a_row("A", "ours", 0, steps, steps, training_seconds=steps / 10, final=steps == 100) for steps in (0, 100)]
    slow = [a_row("A", "ours", 1, steps, 0.0, training_seconds=steps / 2, final=steps == 100) for steps in (0, 100)]
    unfinished = a_row("A", "ours", 2, 90, 99.0, training_seconds=80.0)
    (curve,) = curves(loaded([*fast, *slow, unfinished], tmp_path), "A", "training_seconds")
    assert curve.places.tolist() == [0, 10, 50]
    assert curve.mean.tolist() == [0, 50, 50]
    assert curve.band is not None
    assert [bound.tolist() for bound in curve.band] == [[0, 0, 0], [0, 100, 100]]
    assert [where[-1] for where, _ in curve.runs] == [10, 50, 80], "thin lines end where they end"


def test_unfinished_seeds_are_not_held(tmp_path: Path) -> None:
    rows = [a_row("A", "ours", seed, steps, steps) for seed, last in ((0, 20), (1, 30)) for steps in (10, last)]
    (curve,) = curves(loaded(rows, tmp_path), "A", "steps")
    assert (curve.places.tolist(), curve.mean.tolist()) == ([10, 20], [10, 20])


def test_seeds_that_share_no_step_have_no_mean(tmp_path: Path) -> None:
    rows = [a_row("A", "ours", seed, steps, 1.0) for seed, steps in ((0, 10), (1, 20))]
    (curve,) = curves(loaded(rows, tmp_path), "A", "steps")
    assert (len(curve.runs), len(curve.mean), curve.band) == (2, 0, None)
