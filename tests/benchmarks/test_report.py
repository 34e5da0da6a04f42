"""The tables and the picture of a finished run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt

from benchmarks.throughput.picture import draw_ratios
from benchmarks.throughput.report import markdown, notes, ratio_table, report, share_table
from tests.benchmarks.runs import a_finished_run, a_run


def test_ratio_table() -> None:
    table = ratio_table(a_finished_run())
    speed, memory = table.to_dict("records")
    assert speed == {
        "work": "X. some work",
        "against": "stock / other",
        "target": "≥ 2",
        "median": "3.00",
        "min": "1.50",
        "max": "5.00",
        "ours": "1,000 fps",
        "theirs": "333 fps",
        "met": "yes",
    }
    assert (memory["target"], memory["median"], memory["ours"], memory["theirs"], memory["met"]) == (
        "≤ 0.35",
        "0.30",
        "3 MiB",
        "10 MiB",
        "yes",
    )


def test_share_table() -> None:
    ours, stock = share_table(a_finished_run()).to_dict("records")
    assert (ours["side"], ours["environment"], ours["update"]) == ("ours", "25%", "40%")
    assert ours["of matmul limit"] == "50%"
    assert stock["of matmul limit"] == "12%"


def test_notes_tell_what_is_missing() -> None:
    lines = notes(a_finished_run())
    assert "X. some work: without SBX, no SBX." in lines
    assert "X. some work: the observations served are the same on every side." in lines
    assert "X. some work: incomplete. ValueError: a bad one" in lines


def test_different_outcomes_are_told() -> None:
    run = a_finished_run()
    run.rows[1].segments["stock"][0] = run.rows[1].segments["stock"][0].__class__(1, 1.0, outcome="other")
    assert any("NOT THE SAME" in line for line in notes(run))


def test_report_names_conditions_and_command() -> None:
    text = report(a_finished_run())
    for words in ("A Processor", "seed 7", "torch 2.0", "fp32 2 GFLOP/s", "python -m benchmarks throughput --only X"):
        assert words in text
    assert "jax" not in text, "what is not installed has no version"


def test_markdown_is_aligned() -> None:
    assert markdown(pd.DataFrame({"a": ["1", "22"], "long": ["x", "y"]})).splitlines() == [
        "| a  | long |",
        "|----|------|",
        "| 1  | x    |",
        "| 22 | y    |",
    ]


def test_an_empty_run_can_be_reported_and_drawn(tmp_path: Path) -> None:
    assert "A Processor" in report(a_run())
    draw_ratios(a_run(), tmp_path / "empty.png")
    assert (tmp_path / "empty.png").exists()


def test_picture(tmp_path: Path) -> None:
    draw_ratios(a_finished_run(), tmp_path / "new folder" / "ratios.png")
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["ratios.png"]
    height, width, _ = plt.imread(tmp_path / "new folder" / "ratios.png").shape
    assert width > 1000
    assert height > 200
