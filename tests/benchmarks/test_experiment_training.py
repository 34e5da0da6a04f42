"""Experiments that train: runs in processes of their own, never redone, and refused when they do not fit."""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from benchmarks.experiments.ablation import settings as ablation
from benchmarks.experiments.surrogates import settings as surrogates
from benchmarks.experiments.surrogates.judgement import outcome as surrogates_outcome
from benchmarks.experiments.training import worker
from benchmarks.experiments.training.command import add_training_arguments, perform, planned_runs
from benchmarks.experiments.training.episodes import Episodes, play_at_random
from benchmarks.experiments.training.recipes import LinearDecay, Recipe
from benchmarks.experiments.training.runs import (
    Run,
    complete_results,
    finished_results,
    read_result,
    trained_tasks,
    write_result,
)
from benchmarks.experiments.training.schedule import do_runs
from benchmarks.files import locked
from sb3_ppo_from_scratch import PPO

SETTINGS = tuple(surrogates.RECIPES)


def a_run(setting: str = "random", steps: int = 40, task: str = "CartPole-v1") -> Run:
    return Run("surrogates", task, setting, seed=0, steps=steps)


def arguments(tmp_path: Path, *given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_training_arguments(parser, "surrogates", seeds="2", steps={"CartPole-v1": 40}, settings=SETTINGS)
    return parser.parse_args([*given, "--out", str(tmp_path)])


def test_a_recipe_but() -> None:
    recipe = Recipe(ppo={"gamma": 0.5}).but(n_envs=3, gamma=0.9, ent_coef=0.1)
    assert recipe == Recipe(n_envs=3, ppo={"gamma": 0.9, "ent_coef": 0.1})
    assert LinearDecay(0.4)(0.25) == pytest.approx(0.1)


@pytest.mark.parametrize("recipes", [surrogates.RECIPES, ablation.RECIPES], ids=["surrogates", "ablation"])
def test_every_recipe_makes_a_model(recipes: dict[str, Recipe]) -> None:
    for name, recipe in recipes.items():
        if not recipe.plays_at_random:
            model = PPO("MlpPolicy", make_vec_env("CartPole-v1", recipe.n_envs), device="cpu", **recipe.ppo)
            assert model.n_steps * model.n_envs == 2048, name


def test_recipes_say_what_their_names_say() -> None:
    recipes = surrogates.RECIPES
    assert [recipes[name].ppo["clip_range"] for name in surrogates.CLIPS] == [0.1, 0.2, 0.3]
    assert [recipes[name].ppo["kl_target"] for name in surrogates.ADAPTIVE] == [0.003, 0.01, 0.03]
    assert [recipes[name].ppo["kl_coef"] for name in surrogates.FIXED] == [0.3, 1, 3, 10]
    assert set(surrogates.PUBLISHED) == set(recipes) - {surrogates.RANDOM}
    raw = ablation.RECIPES[ablation.RAW_NO_VALUE_CLIP]
    assert (raw.norm_reward, raw.ppo["clip_range_vf"], raw.ppo["gamma"]) == (False, None, 0.999)
    with_all = ablation.RECIPES[ablation.ALL]
    assert len(
        {
            json.dumps(one.ppo, default=str) + str(one.norm_obs) + str(one.norm_reward) + str(one.n_envs)
            for one in ablation.RECIPES.values()
        }
    ) == len(ablation.RECIPES)
    assert (with_all.norm_obs, with_all.norm_reward) == (True, True)


def test_planned_runs(tmp_path: Path) -> None:
    runs = planned_runs(arguments(tmp_path, "--settings", "random,clip-0.2", "--seeds", "0,7"), "surrogates", SETTINGS)
    assert [(run.seed, run.setting) for run in runs] == [
        *((0, "random"), (0, "clip-0.2"), (7, "random"), (7, "clip-0.2"))
    ]
    assert len(planned_runs(arguments(tmp_path), "surrogates", SETTINGS)) == 2 * len(SETTINGS)


@pytest.mark.parametrize(
    "given,message",
    [
        (["--tasks", "Nowhere-v0"], "no environment 'Nowhere-v0' is registered"),
        (["--tasks", ","], "name at least one"),
        (["--tasks", "Pendulum-v1"], "no number of steps for Pendulum-v1; give --steps"),
        (["--settings", "clip-0.4"], "there is no 'clip-0.4'; choose from random, no-clip"),
    ],
)
def test_unusable_arguments(tmp_path: Path, given: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        planned_runs(arguments(tmp_path, *given), "surrogates", SETTINGS)


def test_a_finished_run_with_other_steps_is_refused(tmp_path: Path) -> None:
    run = a_run(steps=30)
    run.result(tmp_path).parent.mkdir(parents=True)
    write_result(tmp_path, run, {"score": 1.0})
    assert read_result(tmp_path, run) == {**vars(run), "score": 1.0}
    with pytest.raises(ValueError, match=r"was done with 30 steps, now it is to have 40: give the same --steps"):
        planned_runs(arguments(tmp_path, "--settings", "random", "--seeds", "1"), "surrogates", SETTINGS)


def test_runs_are_done_once_and_failures_do_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = a_run(steps=300), a_run("unknown")
    assert do_runs([bad, good], tmp_path, jobs=2) == [bad]
    said = capsys.readouterr().err
    assert "CartPole-v1, unknown, seed 0: ended with status 1." in said
    assert "KeyError: 'unknown'" in said
    result = read_result(tmp_path, good)
    assert result is not None
    assert 5 < result["score"] < 100
    assert result["all_episodes"] >= 3
    state = good.result(tmp_path).stat().st_mtime_ns
    assert do_runs([good], tmp_path, jobs=1) == []
    assert good.result(tmp_path).stat().st_mtime_ns == state


def test_a_run_that_another_invocation_does_is_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run()
    run.result(tmp_path).parent.mkdir(parents=True)
    with ThreadPoolExecutor(1) as pool:
        with locked(run.beside(tmp_path, ".lock"), wait=False) as held:
            assert held
            ours = pool.submit(do_runs, [run], tmp_path, 1)
            time.sleep(1.0)
            assert not ours.done()
            write_result(tmp_path, run, {"score": 1.0})
        assert ours.result(timeout=30) == []
    assert not run.beside(tmp_path, ".log").exists(), "no process of ours"
    assert "another invocation is at it" in capsys.readouterr().err


def finish(out: Path, run: Run, score: float) -> None:
    run.result(out).parent.mkdir(parents=True, exist_ok=True)
    write_result(out, run, {"score": score, "diverged": False, "commit": "abc"})


def test_only_tasks_and_seeds_with_every_setting_are_compared(tmp_path: Path) -> None:
    runs = [
        Run("surrogates", task, setting, seed, 40)
        for seed in (0, 1)
        for task in ("CartPole-v1", "Acrobot-v1")
        for setting in ("random", "no-clip")
    ]
    assert complete_results(tmp_path, runs).empty
    for run in runs:
        if (run.task, run.setting, run.seed) not in {("CartPole-v1", "no-clip", 0), ("Acrobot-v1", "random", 1)}:
            finish(tmp_path, run, float(run.seed))
    results = complete_results(tmp_path, runs)
    assert results[["task", "seed", "setting"]].to_numpy().tolist() == [
        ["Acrobot-v1", 0, "random"],
        ["Acrobot-v1", 0, "no-clip"],
        ["CartPole-v1", 1, "random"],
        ["CartPole-v1", 1, "no-clip"],
    ]
    assert trained_tasks(results) == "Acrobot-v1 (40 steps, 1 seed), CartPole-v1 (40 steps, 1 seed)"
    everything = finished_results(tmp_path, runs)
    assert len(everything) == 6
    assert trained_tasks(everything) == "Acrobot-v1 (40 steps, 1–2 seeds), CartPole-v1 (40 steps, 1–2 seeds)"


def test_a_report_on_what_is_finished_trains_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = arguments(tmp_path, "--settings", "random,no-clip", "--seeds", "2", "--report-only")
    for setting in ("random", "no-clip"):
        finish(tmp_path, a_run(setting), 1.0)
    monkeypatch.setattr("benchmarks.experiments.training.command.do_runs", None)
    perform(given, "surrogates", SETTINGS, surrogates_outcome)
    assert "CartPole-v1 (40 steps, 1 seed)" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_without_anything_to_compare_there_is_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments(tmp_path, "--settings", "random,no-clip", "--seeds", "1")
    finish(tmp_path, a_run("no-clip"), 1.0)
    monkeypatch.setattr("benchmarks.experiments.training.command.do_runs", lambda runs, *_: [runs[0]])
    monkeypatch.setattr("benchmarks.experiments.training.command.interrupt_when_terminated", lambda: None)
    with pytest.raises(SystemExit, match="Did not finish: CartPole-v1, random, seed 0"):
        perform(given, "surrogates", SETTINGS, surrogates_outcome)
    assert "No report: too few runs" in capsys.readouterr().out
    assert not (tmp_path / "report.md").exists()
    finish(tmp_path, a_run("random"), 0.0)
    with pytest.raises(SystemExit):
        perform(given, "surrogates", SETTINGS, surrogates_outcome)
    assert "at commit abc, " in (tmp_path / "report.md").read_text(encoding="utf-8")


class Scripted(gym.Env[np.ndarray[Any, Any], np.int64]):
    """Pays 3, then 100 if the first action was 1; otherwise a time limit ends it after two steps."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: np.int64) -> Any:
        self._steps += 1
        if self._steps == 1:
            self._lands = bool(action)
            return np.zeros(1, np.float32), 3.0, False, False, {}
        landed = self._steps == 2 and self._lands
        return np.zeros(1, np.float32), 100.0 if landed else 0.0, landed, not landed, {}


def test_how_episodes_end() -> None:
    env = VecNormalize(make_vec_env(Scripted, 2), norm_reward=True)
    episodes = Episodes()
    env.reset()
    for actions in ([1, 0], [0, 0]):
        _, rewards, _, infos = env.step(np.array(actions))
        episodes.note(env, rewards, infos)
    summary = episodes.summary()
    assert summary["score"] == pytest.approx((103 + 3) / 2), "raw, though rewards are normalised"
    assert (summary["timeouts"], summary["landings"], summary["length"]) == (0.5, 0.5, 2.0)
    assert (summary["episodes"], summary["all_episodes"]) == (2, 2)


def test_no_episode_at_all() -> None:
    with pytest.raises(RuntimeError, match="No episode ended: give more --steps"):
        Episodes().summary()


def test_random_play_ends_after_enough_episodes() -> None:
    env = VecNormalize(make_vec_env(Scripted, 1), norm_reward=False)
    assert play_at_random(env, 1_000, seed=0).n_all == 100
    assert play_at_random(env, 10, seed=0).n_all == 5


def test_a_policy_that_diverges_ends_the_run() -> None:
    env = VecNormalize(make_vec_env("CartPole-v1", 1))
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
    episodes = Episodes()
    assert worker.learn(model, 64, episodes)
    before = episodes.n_all
    with th.no_grad():
        next(iter(model.policy.parameters())).fill_(float("nan"))
    assert not worker.learn(model, 64, episodes)
    assert episodes.n_all == before > 0


def test_other_errors_are_errors() -> None:
    model = PPO("MlpPolicy", VecNormalize(make_vec_env("CartPole-v1", 1)), n_steps=32, batch_size=32, device="cpu")
    model.gamma = 2.0
    with pytest.raises(ValueError, match="gamma"):
        worker.learn(model, 64, Episodes())


def test_a_worker_does_what_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = a_run("clip-0.2", steps=100)
    monkeypatch.setattr(sys, "argv", ["worker", str(tmp_path), json.dumps(vars(run))])
    worker.main()
    result = read_result(tmp_path, run)
    assert result is not None
    assert result["diverged"] is False
    assert result["cpu_seconds"] > 0
    assert result["mujoco"]
    assert not list(tmp_path.rglob("*.part"))
