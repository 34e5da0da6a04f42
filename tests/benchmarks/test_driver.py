"""The driver and its sides: small, but through real processes."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.throughput import availability, command, interleave, storage
from benchmarks.throughput.cases import chosen_rows
from benchmarks.throughput.multiplication import matmul_flops
from benchmarks.throughput.records import Conditions, Row, RowResult, Side
from tests.benchmarks.runs import a_run, timed

CONDITIONS = Conditions(pairs=2, seed=3, device="cpu", threads=1)


def small_cartpole(*sides: Side) -> Row:
    (row,) = chosen_rows("D")
    sides = sides or row.sides[:2]
    return replace(row, sides=sides, comparisons=row.comparisons[:1], steps=2 * 8 * 32)


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_two_sides_take_turns_in_their_own_processes() -> None:
    row = small_cartpole()
    said: list[str] = []
    result = interleave.measure_row(row, CONDITIONS, said.append)
    assert result.error is None
    assert [len(result.segments[name]) for name in ("ours", "stock")] == [2, 2]
    assert all(one.steps == row.steps for segments in result.segments.values() for one in segments)
    assert all(one.seconds > 0 for segments in result.segments.values() for one in segments)
    for watched in result.looked_into.values():
        assert watched.shares is not None
        assert sum(watched.shares.values()) == pytest.approx(1.0)
        assert all(share > 0 for share in watched.shares.values())
    assert len(said) == interleave.n_turns(row, CONDITIONS)
    turns = [words.rpartition(": ")[2] for words in said if "turn" in words]
    assert turns == ["ours, turn 1", "stock, turn 1", "stock, turn 2", "ours, turn 2"]


def test_a_side_that_fails_says_why() -> None:
    row = small_cartpole(Side("ours", "ours", arguments={"gamma": 2.0}), Side("stock", "stock"))
    result = interleave.measure_row(row, CONDITIONS, lambda words: None)
    assert result.error is not None
    assert result.error.startswith("ours ended with 1")
    assert "gamma=2.0" in result.error


@pytest.fixture
def _no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(row: Row, conditions: Conditions, advance: object) -> RowResult:
        times = {side.name: timed(1.0, 1.0) for side in row.sides}
        return RowResult(row, times, error="stock ended with 1: no luck" if row.letter == "G" else None)

    monkeypatch.setattr(command, "measure_matmul", lambda conditions: {"fp32": 1e9})
    monkeypatch.setattr(command, "measure_row", measured)


@pytest.mark.usefixtures("_no_processes")
def test_the_command_saves_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    json, png = tmp_path / "run.json", tmp_path / "run.png"
    command.run(arguments("--only", "D", "--json", str(json), "--png", str(png), "--pairs", "2"))
    assert storage.load(json).conditions.pairs == 2
    assert png.exists()
    printed = capsys.readouterr().out
    assert "| D. CartPole-v1, 8 environments" in printed
    assert "--pairs 2: for a look only" in printed
    png.unlink()
    command.run(arguments("--redraw", str(json), "--png", str(png)))
    assert png.exists()
    assert "| D. CartPole-v1, 8 environments" in capsys.readouterr().out


@pytest.mark.usefixtures("_no_processes")
def test_a_missing_peer_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "find_spec", lambda name: None if name == "sbx" else object())
    run = a_run()
    command.measure_rows(chosen_rows("D"), run, tmp_path / "run.json")
    (line,) = run.rows[0].skipped
    assert "without SBX, sbx is not installed" in line
    assert "without SBX" in capsys.readouterr().err


@pytest.mark.usefixtures("_no_processes")
def test_a_row_that_fails_does_not_lose_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "find_spec", lambda name: object())
    paths = ("--json", str(tmp_path / "run.json"), "--png", str(tmp_path / "run.png"))
    with pytest.raises(SystemExit, match="Incomplete: G"):
        command.run(arguments("--only", "D,G", *paths))
    assert [bool(row.error) for row in storage.load(tmp_path / "run.json").rows] == [False, True]


def test_a_row_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SystemExit, match="no row 'Q'; choose from A,B"):
        command.run(arguments("--only", "Q"))


def test_matrix_multiplication_is_measured() -> None:
    flops = matmul_flops("cpu", size=16, seconds=0.0)
    assert set(flops) == {"fp32", "bf16"}
    assert all(one > 0 for one in flops.values())
