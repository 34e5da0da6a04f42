"""Scores of training runs on the papers' scales, and verdicts from given numbers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from benchmarks.experiments.ablation import judgement as ablation
from benchmarks.experiments.ablation.settings import (
    ALL,
    NO_VALUE_CLIP,
    RAW_NO_BUDGET,
    RAW_NO_VALUE_CLIP,
    RAW_REWARDS,
    RECIPES,
    SHORT_HORIZON,
)
from benchmarks.experiments.outcome import PICTURE, REPORT, TABLE, Claim, verdict, write_outcome
from benchmarks.experiments.surrogates import judgement as surrogates
from benchmarks.experiments.surrogates.settings import NO_CLIP, PUBLISHED, RANDOM

TASKS = ("HalfCheetah-v5", "Hopper-v5")


def surrogate_runs(scores: dict[str, float]) -> pd.DataFrame:
    """Random play scores 10; a normalised score of 1 is 110."""
    best = max(scores.values())
    rows = [
        {"task": task, "setting": name, "seed": seed, "steps": 1000, "score": score, "diverged": name == NO_CLIP}
        for task in TASKS
        for seed in (0, 1)
        for name, score in {RANDOM: 10.0, **{name: 10 + 100 * x / best for name, x in scores.items()}}.items()
    ]
    return pd.DataFrame(rows)


def test_the_papers_scale() -> None:
    table = surrogates.normalised(surrogate_runs({"clip-0.2": 0.8, NO_CLIP: -0.4}))
    by_setting = table.groupby("setting")["normalised"].mean()
    assert by_setting.to_dict() == pytest.approx({"clip-0.2": 1.0, NO_CLIP: -0.5, RANDOM: 0.0})


def test_a_task_without_a_scale() -> None:
    runs = surrogate_runs({"clip-0.2": 0.8})
    assert surrogates.normalised(runs[runs["setting"] != RANDOM])["normalised"].isna().all()
    worse = runs.assign(score=runs["score"].where(runs["setting"] == RANDOM, -5.0))
    assert surrogates.normalised(worse)["normalised"].isna().all()
    assert [claim.holds for claim in surrogates.outcome(worse).claims] == [None]


def test_the_papers_own_numbers_hold() -> None:
    outcome = surrogates.outcome(surrogate_runs(PUBLISHED))
    assert [claim.holds for claim in outcome.claims] == [True] * 7
    assert "correlation of our scores with Table 1 is 1.00" in outcome.claims[-1].found
    assert "no-clip 4" in outcome.setting
    row = outcome.shown.set_index("setting").loc["clip-0.2"]
    assert (row["normalised"], row["paper"], row["Hopper-v5"]) == ("1.00 [1.00, 1.00]", "0.82", "110")


def test_numbers_the_other_way_round_do_not() -> None:
    claims = surrogates.outcome(surrogate_runs({name: 1 - score for name, score in PUBLISHED.items()})).claims
    assert [claim.holds for claim in claims] == [False] * 7


def test_without_half_cheetah_there_is_nothing_to_say_of_it() -> None:
    runs = surrogate_runs(PUBLISHED)
    claims = surrogates.outcome(runs[runs["task"] != "HalfCheetah-v5"]).claims
    assert claims[5].holds is None


def lander_runs(changes: dict[str, float], *, hovering: float = 0.9) -> pd.DataFrame:
    scores = {**dict.fromkeys(RECIPES, 250.0), **changes}
    rows = [
        {
            "task": ablation.LANDER,
            "setting": name,
            "seed": seed,
            "steps": 1000,
            "score": score + seed,
            "timeouts": hovering if name == SHORT_HORIZON else 0.1,
            "landings": 0.0 if name == SHORT_HORIZON else 0.8,
        }
        for name, score in scores.items()
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows)


AS_SAID = {
    RAW_REWARDS: -52.0,
    RAW_NO_VALUE_CLIP: 100.0,
    RAW_NO_BUDGET: 240.0,
    NO_VALUE_CLIP: 156.0,
    SHORT_HORIZON: 90.0,
}


def test_an_ablation_as_the_document_tells_it() -> None:
    outcome = ablation.outcome(lander_runs(AS_SAID))
    assert [claim.holds for claim in outcome.claims] == [True] * 6
    assert "a difference of +94" in outcome.claims[2].found
    assert "90% of episodes timed out, 0% landed" in outcome.claims[4].found
    row = outcome.shown.set_index("setting").loc[RAW_REWARDS]
    assert (row[ablation.LANDER], row["timed out"]) == ("-52 ± 1", "10%")


def test_an_ablation_that_contradicts_it() -> None:
    others = dict.fromkeys(("one-epoch", "no-clip", "raw-observations", "one-environment", "shared-trunk"), 0.0)
    runs = lander_runs({RAW_REWARDS: 300.0, NO_VALUE_CLIP: 260.0, RAW_NO_VALUE_CLIP: 200.0, **others}, hovering=0.2)
    claims = ablation.outcome(runs).claims
    assert [claim.holds for claim in claims] == [False] * 6
    assert "one-epoch (-250)" in claims[5].found


def test_an_ablation_of_something_else_is_not_judged() -> None:
    runs = lander_runs(AS_SAID)
    outcome = ablation.outcome(runs[runs["setting"] == ALL].assign(task="Hopper-v5"))
    assert [claim.holds for claim in outcome.claims] == [None] * 6
    assert verdict(outcome.claims).startswith("0 of 0 claims held here. 6 could not be judged.")


def test_two_tasks_with_gaps() -> None:
    runs = lander_runs(AS_SAID)
    other = runs[runs["setting"] == ALL].assign(task="Hopper-v5", score=7.0)
    outcome = ablation.outcome(pd.concat([runs, other]))
    shown = outcome.shown.set_index("setting")
    assert (shown.loc[ALL, "Hopper-v5"], shown.loc[RAW_REWARDS, "Hopper-v5"]) == ("7 ± 0", "–")
    assert len(outcome.figure.axes) == 2


def test_the_verdict_counts() -> None:
    claims = (Claim("a.", "b.", True), Claim("c.", "d.", False), Claim("e.", "f.", None))
    assert verdict(claims).splitlines() == [
        "1 of 2 claims held here. 1 could not be judged.",
        "",
        "- **Held.** Said: a. Found: b.",
        "- **Did not hold.** Said: c. Found: d.",
        "- **Not judged.** Said: e. Found: f.",
    ]


def test_files_of_an_outcome(tmp_path: Path) -> None:
    outcome = surrogates.outcome(surrogate_runs(PUBLISHED))
    out = tmp_path / "a" / "b"
    write_outcome(out, outcome)
    assert sorted(path.name for path in out.iterdir()) == sorted((TABLE, PICTURE, REPORT))
    assert pd.read_csv(out / TABLE)["normalised"].max() == pytest.approx(1.0)
    report = (out / REPORT).read_text(encoding="utf-8")
    assert "7 of 7 claims held here." in report
    assert f"]({PICTURE})" in report
    assert (out / PICTURE).read_bytes().startswith(b"\x89PNG")
