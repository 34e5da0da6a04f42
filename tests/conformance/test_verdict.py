"""Tests of the conformance runner's own judgement, on outcomes made up here."""

import subprocess
import sys
from pathlib import Path

from tests.conformance.verdict import not_passed, regressions, summary

REPOSITORY = Path(__file__).resolve().parents[2]
OURS = {"a": "passed", "b": "failed", "c": "skipped", "file.py": "failed"}


def test_summary_counts_each_outcome_and_names_the_absent_ones():
    assert summary({"a": "passed", "b": "passed", "c": "failed"}) == "2 passed, 0 skipped, 1 failed"


def test_everything_that_did_not_pass_is_repeated():
    assert not_passed(OURS) == ["b", "c", "file.py"]


def test_a_regression_is_what_only_stock_passes():
    assert regressions(OURS, {"b": "failed", "c": "skipped", "file.py": "failed"}) == []
    assert regressions(OURS, {"b": "passed", "c": "passed"}) == ["b", "c"]


def test_a_file_that_cannot_be_collected_loses_all_its_tests():
    assert regressions({"file.py": "failed"}, {"file.py::x": "passed"}) == ["file.py::x"]


def test_replacement_reaches_all_three_names():
    code = """
from tests.conformance.plugin import replace_ppo
replace_ppo()
import stable_baselines3, stable_baselines3.ppo.ppo, sb3_ppo_from_scratch
places = stable_baselines3, stable_baselines3.ppo, stable_baselines3.ppo.ppo
assert {place.PPO for place in places} == {sb3_ppo_from_scratch.PPO}
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)
