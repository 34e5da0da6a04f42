"""Kinds of values that the command lines have in common."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import COMMANDS, main
from benchmarks.arguments import at_least, output_folder, seed_list


@pytest.mark.parametrize("text, seeds", [("3", [0, 1, 2]), ("0,3,7", [0, 3, 7]), ("5,", [5]), ("2,2", [2])])
def test_seeds(text: str, seeds: list[int]) -> None:
    assert seed_list(text) == seeds


@pytest.mark.parametrize("text", ["0", "-1", "x", "", ",", "1.5"])
def test_unusable_seeds_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="such as 0,3,7"):
        seed_list(text)


def test_numbers_have_a_minimum() -> None:
    assert at_least(2)("2") == 2
    for text, words in (("1", "1: give at least 2"), ("two", "two: give a whole number"), ("2.5", "whole number")):
        with pytest.raises(argparse.ArgumentTypeError, match=words):
            at_least(2)(text)


def test_a_folder_may_be_missing_but_is_no_file(tmp_path: Path) -> None:
    assert output_folder(str(tmp_path)) == tmp_path
    assert output_folder(str(tmp_path / "new")) == tmp_path / "new"
    (tmp_path / "file").touch()
    with pytest.raises(argparse.ArgumentTypeError, match="is a file; give a folder"):
        output_folder(str(tmp_path / "file"))


UNUSABLE = {
    "train": ("--steps", "0"),
    "throughput": ("--pairs", "0"),
    "head-to-head": ("--jobs", "0"),
    "report": ("--out", __file__),
    "surrogates": ("--seeds", "0"),
    "ablation": ("--steps", "0"),
    "gradient-budget": ("--steps", "2047"),  # a rollout has 2048
    "gae": ("--episodes", "1"),  # one number has no variance
    "baseline": ("--episodes", "1"),
    "clip-fraction": ("--rollouts", "0"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_what_it_cannot_use(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    option, value = UNUSABLE[command]
    monkeypatch.setattr(sys, "argv", ["benchmarks", command, option, value])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert f"argument {option}: {value}: " in capsys.readouterr().err
