"""Which differences between a few seeds count, and where numbers were made: sentences and bounds by hand."""

from __future__ import annotations

from math import sqrt

import pandas as pd
import pytest

from benchmarks.experiments.provenance import facts, made_by
from benchmarks.experiments.training.differences import Bound, bound


def test_everything_that_made_a_part_of_the_numbers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["-m", "ablation", "--seeds", "0,3"])
    old = {"commit": "1234567890+changes", "machine": "One x 2", "python": "3.11", "torch": "2.8", "numpy": ""}
    new = {"commit": "abcdefghij", "machine": "One x 2", "python": "3.11", "torch": "2.9", "score": 1.0}
    assert made_by([old, new, old]) == (
        "Made by `python -m benchmarks ablation --seeds 0,3` at commit 1234567 with uncommitted changes / abcdefg, "
        "Python 3.11, torch 2.8 / 2.9, on One x 2."
    )


def test_facts_of_this_process_make_a_sentence() -> None:
    assert "stable_baselines3 2" in made_by([facts()])


def test_the_bound_is_worked_out_by_hand() -> None:
    """Variances 2 and 8 in two tasks, 1 of a single run left out: s² = (2 + 2 * 4) / 3 with 3 degrees of freedom."""
    cells = {("A", "x"): (1.0, 3.0), ("B", "x"): (0.0, 2.0, 4.0), ("B", "y"): (7.0,)}
    runs = pd.DataFrame(
        [{"task": task, "setting": name, "score": score} for (task, name), of in cells.items() for score in of]
    )
    t, deviation = 3.182446, sqrt((2 + 2 * 4) / 3)
    assert bound(runs, "score", [2], decimals=0).least == pytest.approx(t * deviation * sqrt(2 / 2))
    # A mean over two tasks has the variance s² (1/2 + 1/3) / 4.
    assert bound(runs, "score", [2, 3], decimals=0).least == pytest.approx(t * deviation * sqrt(2 * (5 / 6) / 4))
    assert bound(runs, "score", [2], [1], decimals=0).least == pytest.approx(t * deviation * sqrt(1 / 2 + 1))
    assert bound(runs[runs["setting"] == "y"], "score", [1], decimals=0).least is None


def test_a_claim_holds_if_all_its_differences_are_told_apart() -> None:
    ten = Bound(10.0, decimals=0)
    assert [ten.judge(*margins) for margins in ((10.0,), (9.0,), (-9.0,), (-10.0,))] == [True, None, None, False]
    assert [ten.judge(*margins) for margins in ((11.0, 12.0), (11.0, 5.0), (5.0, -11.0))] == [True, None, False]
    assert Bound(0.0, decimals=0).judge(0.0) is False, "without any spread, the same is not more"
    assert Bound(None, decimals=0).judge(99.0) is None
    assert (ten.note(True), ten.note(None)) == ("", " Not told apart: means must differ by 10.")
