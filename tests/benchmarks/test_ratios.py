"""Ratios, medians and limits from given times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.throughput.cases import nature_cnn_flops
from benchmarks.throughput.ratios import outcomes_agree, part_of_limit, steps_per_second, verdicts
from benchmarks.throughput.records import Comparison, RowResult, Segment, Side
from tests.benchmarks.runs import a_row, a_run, holding, timed


def test_ratios_are_those_of_each_pair() -> None:
    result = RowResult(a_row("stock", target=3.0), {"ours": timed(1.0, 2.0, 1.0), "stock": timed(3.0, 4.0, 5.0)})
    (verdict,) = verdicts(result)
    assert verdict.ratios == pytest.approx((3.0, 2.0, 5.0))
    assert verdict.median == pytest.approx(3.0)
    assert (verdict.ours, verdict.theirs) == pytest.approx((1000.0, 250.0))
    assert verdict.is_met


def test_the_faster_peer_of_each_pair_counts() -> None:
    result = RowResult(
        a_row("stock", "other"), {"ours": timed(1.0, 1.0), "stock": timed(3.0, 8.0), "other": timed(6.0, 2.0)}
    )
    (verdict,) = verdicts(result)
    assert verdict.ratios == pytest.approx((3.0, 2.0))
    assert verdict.peers == "stock / other"


@pytest.mark.parametrize("ours, is_met", [(35, True), (36, False)])
def test_fewer_bytes_are_better(ours: int, is_met: bool) -> None:
    result = RowResult(a_row("stock", kind="memory", target=0.35), {"ours": holding(ours), "stock": holding(100)})
    (verdict,) = verdicts(result)
    assert verdict.median == pytest.approx(ours / 100)
    assert verdict.is_met is is_met


def test_a_missed_target_is_not_met() -> None:
    result = RowResult(a_row("stock", target=2.0), {"ours": timed(1.0, 1.0, 1.0), "stock": timed(1.0, 1.99, 9.0)})
    assert not verdicts(result)[0].is_met


def test_an_interrupted_pair_is_left_out() -> None:
    result = RowResult(a_row("stock"), {"ours": timed(1.0, 1.0), "stock": timed(2.0)})
    assert verdicts(result)[0].ratios == pytest.approx((2.0,))


def test_without_a_complete_pair_there_is_no_verdict() -> None:
    assert verdicts(RowResult(a_row("stock"), {"ours": timed(1.0), "stock": []})) == []


def test_every_comparison_is_judged() -> None:
    row = replace(a_row("stock", "SBX"), comparisons=(Comparison(("stock",), 3.0), Comparison(("SBX",), 2.0)))
    result = RowResult(row, {"ours": timed(1.0), "stock": timed(4.0), "SBX": timed(1.5)})
    assert [(one.peers, one.is_met) for one in verdicts(result)] == [("stock", True), ("SBX", False)]


def test_speed_is_the_median() -> None:
    assert steps_per_second(timed(1.0, 2.0, 8.0)) == pytest.approx(500.0)


def test_the_limit_is_that_of_the_sides_precision() -> None:
    row = a_row("stock", flops_per_step=1e6)
    row = replace(row, sides=(Side("ours", "ours", arguments={"precision": "bf16"}), row.sides[1]))
    result = RowResult(row, {"ours": timed(0.5), "stock": timed(2.0)})
    run = a_run([result])
    assert part_of_limit(run, result, "ours") == pytest.approx(2000 * 1e6 / 4e9)
    assert part_of_limit(run, result, "stock") == pytest.approx(500 * 1e6 / 2e9)


def test_no_limit_where_arithmetic_does_not_limit() -> None:
    result = RowResult(a_row("stock"), {"ours": timed(1.0), "stock": timed(1.0)})
    assert part_of_limit(a_run([result]), result, "ours") is None


def test_the_networks_arithmetic() -> None:
    multiply_adds = 9.35e6 + 4 * (9.35e6 + 15.4e6)
    assert nature_cnn_flops(4) == pytest.approx(2 * multiply_adds, rel=2e-3)


def test_outcomes_are_compared_where_there_are_some() -> None:
    row = a_row("stock", kind="memory")
    assert outcomes_agree(RowResult(row, {"ours": holding(1), "stock": holding(2)})) is True
    assert outcomes_agree(RowResult(row, {"ours": holding(1), "stock": holding(2, outcome="other")})) is False
    assert outcomes_agree(RowResult(row, {"ours": timed(1.0), "stock": timed(1.0)})) is None
    assert outcomes_agree(RowResult(row, {"ours": [Segment(1, 1.0, outcome="some")], "stock": []})) is None
