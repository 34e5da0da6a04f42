"""What is compared in `python -m benchmarks head-to-head`: tasks, algorithms and the published scores."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from benchmarks.head_to_head.algorithms import chosen_algorithms
from benchmarks.head_to_head.command import planned_runs
from benchmarks.head_to_head.references import REFERENCES, comparable
from benchmarks.head_to_head.tasks import TASK_SETS, TASKS, chosen_tasks

MARIO = "SuperMarioBros1-1-v0"


def test_atari49_are_the_games_of_the_paper_for_ten_million_steps() -> None:
    games = TASK_SETS["atari49"]
    assert len(games) == len({task.name for task in games}) == 49
    assert {task.steps for task in games} == {10_000_000}
    names = {task.name.removesuffix("NoFrameskip-v4") for task in games}
    assert {"Alien", "Pong", "Zaxxon", "MontezumaRevenge", "WizardOfWor"} <= names
    # Games of ALE that the paper does not have.
    assert names.isdisjoint({"Berzerk", "Defender", "Hero", "Phoenix", "Skiing", "Solaris", "Surround", "YarsRevenge"})


def test_every_task_but_mario_is_registered_and_every_task_has_a_reference() -> None:
    assert set(REFERENCES) == set(TASKS)
    import_module("rl_zoo3.exp_manager")  # registers them
    for name in TASKS.keys() - {MARIO}:
        assert gym.spec(name).id == name
    for references in REFERENCES.values():
        assert references
        assert all(np.isfinite(one.score) and one.source for one in references)


@pytest.mark.parametrize("game, scores", [("Pong", [20.989, 20.7, 20.36, 20.309]), ("Alien", [1850.3, 1744.76])])
def test_references_of_games(game: str, scores: list[float]) -> None:
    references = REFERENCES[f"{game}NoFrameskip-v4"]
    assert [one.score for one in references] == scores
    assert {one.steps for one in references} == {10_000_000}


def test_marios_published_scores_are_in_another_unit() -> None:
    for name in TASKS:
        assert (comparable(REFERENCES, name) == []) is (name == MARIO)
    assert len(REFERENCES[MARIO]) == 2
    assert all("rewards of its own" in one.source for one in REFERENCES[MARIO])


def test_tasks_by_name_and_by_set() -> None:
    assert [task.name for task in chosen_tasks("mujoco,CartPole-v1,Hopper-v5", None)] == [
        *("HalfCheetah-v5", "Hopper-v5", "CartPole-v1")
    ]
    assert [task.steps for task in chosen_tasks("PongNoFrameskip-v4", None)] == [1_500_000]
    assert {task.steps for task in chosen_tasks("atari,atari49", 7)} == {7}


@pytest.mark.parametrize(
    "names, steps, words",
    [
        ("CartPole-v1,Nothing-v0", None, "'Nothing-v0'"),
        (" , ", None, "at least one task"),
        ("atari,atari49", None, "BreakoutNoFrameskip-v4 is asked for with 1,000,000 and with 10,000,000"),
    ],
)
def test_unusable_tasks_are_refused(names: str, steps: int | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        chosen_tasks(names, steps)


def test_algorithms_by_name() -> None:
    assert [one.name for one in chosen_algorithms("sb3, ours,sb3")] == ["sb3", "ours"]
    for names, words in (("ours,ppo2", "'ppo2'"), ("", "''")):
        with pytest.raises(ValueError, match=words):
            chosen_algorithms(names)


def test_what_cannot_run_here_is_left_out_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.head_to_head.algorithms.find_spec", lambda name: None if name == "sbx" else name)
    plan = argparse.Namespace(
        tasks="CartPole-v1,PongNoFrameskip-v4",
        algos="trpo,sbx",
        seeds=[0, 1],
        steps=None,
        jobs=2,
        threads=3,
        device="cpu",
    )
    runs, lines = planned_runs(plan, tmp_path)
    assert [run.key for run in runs] == [("CartPole-v1", "trpo", 0), ("CartPole-v1", "trpo", 1)]
    assert {(run.steps, run.threads, run.jobs) for run in runs} == {(100_000, 3, 2)}
    assert lines[0] == ("CartPole-v1: without sbx, sbx is not installed (pip install 'sb3_ppo_from_scratch[sbx]').")
    assert lines[1] == "PongNoFrameskip-v4: without trpo, no hyperparameters for PongNoFrameskip-v4 in trpo.yml."
    plan.algos = "sbx"
    with pytest.raises(ValueError, match=r"(?s)\[sbx\].*Nothing is left to run"):
        planned_runs(plan, tmp_path)
