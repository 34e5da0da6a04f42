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


FACTS = {"commit": "abcdefghij", "machine": "A Processor x 2", "python": "3.11", "torch": "2.9"}


def surrogate_runs(scores: dict[str, float], *, diverged: tuple[str, ...] = (NO_CLIP,)) -> pd.DataFrame:
    """Random play scores 10; a normalised score of 1 is 110."""
    best = max(scores.values())
    rows = [
        {
            "task": task,
            "setting": name,
            "seed": seed,
            "steps": 1000,
            "score": score,
            "diverged": name in diverged,
            **FACTS,
        }
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
    runs = surrogate_runs({name: 1 - score for name, score in PUBLISHED.items()}, diverged=())
    assert [claim.holds for claim in surrogates.outcome(runs).claims] == [False] * 7


def test_a_run_that_diverged_counts_as_random_play_if_it_had_scored_more() -> None:
    table = surrogates.normalised(surrogate_runs({NO_CLIP: 0.9, "clip-0.1": 0.8, "clip-0.3": -0.2}))
    by_setting = table.groupby("setting")["normalised"].mean()
    assert by_setting.to_dict() == pytest.approx({NO_CLIP: 0.0, "clip-0.1": 1.0, "clip-0.3": -0.25, RANDOM: 0.0})
    assert table.loc[table["setting"] == NO_CLIP, "score"].unique().tolist() == [110.0], "raw scores are kept"
    worse = surrogates.normalised(surrogate_runs({"clip-0.1": 0.8, NO_CLIP: -0.2}))
    assert worse.loc[worse["setting"] == NO_CLIP, "normalised"].unique() == pytest.approx(-0.25)


def test_differences_within_the_spread_of_seeds_are_not_told_apart() -> None:
    runs = surrogate_runs(PUBLISHED)
    noisy = runs.assign(score=runs["score"] + runs["seed"].map({0: -40.0, 1: 40.0}))
    claims = surrogates.outcome(noisy).claims
    assert [claim.holds for claim in claims[:4]] == [None] * 4
    assert " Not told apart: means must differ by 0." in claims[0].found


def test_one_seed_tells_nothing_apart() -> None:
    runs = surrogate_runs(PUBLISHED)
    claims = surrogates.outcome(runs[runs["seed"] == 0]).claims
    assert [claim.holds for claim in claims] == [*[None] * 6, True], "but for the order of the settings"
    assert claims[0].found.endswith("there is no spread between seeds to judge by.")


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
            "diverged": False,
            **FACTS,
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


def test_an_ablation_whose_seeds_differ_much() -> None:
    runs = lander_runs(AS_SAID | {"no-clip": 140.0})
    noisy = runs.assign(score=runs["score"] + 120.0 * runs["seed"])
    # s = 121 / √2 with 20 degrees of freedom, so that t s √(2 / 2) = 178.
    claims = ablation.outcome(noisy).claims
    assert [claim.holds for claim in claims] == [True, None, None, None, True, True]
    assert claims[2].found.endswith("a difference of +94. Not told apart: means must differ by 178.")
    assert "of 15 other details 1 cost 100 points or more, 0 of them told apart" in claims[5].found


def test_an_ablation_with_a_second_seed_for_some_settings() -> None:
    runs = lander_runs(AS_SAID | {"no-clip": 20.0})
    noisy = runs.assign(score=runs["score"] + 120.0 * runs["seed"])
    outcome = ablation.outcome(noisy[(noisy["seed"] == 0) | noisy["setting"].isin([ALL, *AS_SAID])])
    # s = 121 / √2 with 6 degrees of freedom, so that t s √(1/2 + 1/2) = 209 and t s √(1/2 + 1) = 256.
    assert "means must differ by 209 (2 seeds against 2); means must differ by 256 (2 seeds against 1)" in (
        " ".join(outcome.setting.split())
    )
    assert [claim.holds for claim in outcome.claims] == [True, None, None, None, True, True]
    assert "no-clip (-290)" in outcome.claims[5].found, "told apart, but one of fifteen"
    shown = outcome.shown.set_index("setting")
    assert (shown.loc[ALL, ablation.LANDER], shown.loc["no-clip", ablation.LANDER]) == ("310 ± 86", "20")


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
    legend = [text.get_text() for text in outcome.figure.legends[0].get_texts()]
    assert legend[:3] == ["one run", "all details", "mean with all details"]


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
    assert "at commit abcdefg, Python 3.11, torch 2.9, on A Processor x 2." in report
    assert f"]({PICTURE})" in report
    assert (out / PICTURE).read_bytes().startswith(b"\x89PNG")
