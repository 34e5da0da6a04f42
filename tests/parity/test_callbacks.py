"""What surrounds training, callbacks above all, finds here what it finds in Stable-Baselines3."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stable_baselines3
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    EvalCallback,
    EveryNTimesteps,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnRewardThreshold,
)
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from sb3_ppo_from_scratch import PPO
from tests.environments import vector_environment
from tests.parity.comparison import DEFAULTS, Case, LogRecorder, frozen

ALGORITHMS = (stable_baselines3.PPO, PPO)
CASE = Case({"action": "box", "time_limit": 5}, n_envs=2)

OFFERED = {
    "self", "env", "callback", "rollout_buffer", "n_rollout_steps", "n_steps", "obs_tensor", "actions", "values",
    "log_probs", "clipped_actions", "new_obs", "rewards", "dones", "infos",
}  # fmt: skip
# Left over from SB3's loop over environments.
LEFTOVERS = {"idx", "done", "terminal_obs", "terminal_value"}
COMPARED = OFFERED - {"self", "env", "callback", "rollout_buffer"}


def new_model(algorithm: type[OnPolicyAlgorithm], case: Case = CASE, **settings: Any) -> OnPolicyAlgorithm:
    if algorithm is PPO:
        settings["engine"] = "reference"
    return algorithm(case.policy, case.vector_environment(), **{**DEFAULTS, **settings})


class Witness(BaseCallback):
    """Writes down what it is shown, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[str, set[str], Any]] = []

    def note(self, event: str) -> bool:
        seen = {name: self.locals[name] for name in COMPARED if name in self.locals}
        self.events.append((event, set(self.locals), frozen({**seen, "num_timesteps": self.num_timesteps})))
        return True

    def _on_training_start(self) -> None:
        self.note("training start")

    def _on_rollout_start(self) -> None:
        self.note("rollout start")

    def _on_step(self) -> bool:
        return self.note("step")

    def _on_rollout_end(self) -> None:
        self.note("rollout end")

    def _on_training_end(self) -> None:
        self.note("training end")


def without_clock(value: Any) -> Any:
    """Monitor puts the time into every finished episode."""
    if isinstance(value, dict):
        return {key: without_clock(part) for key, part in value.items() if key != "t"}
    if isinstance(value, list):
        return [without_clock(part) for part in value]
    return value


@pytest.fixture(scope="module")
def witnesses() -> dict[type[OnPolicyAlgorithm], Witness]:
    seen = {}
    for algorithm in ALGORITHMS:
        seen[algorithm] = Witness()
        new_model(algorithm).learn(64, callback=seen[algorithm])
    return seen


def test_callbacks_hear_the_same_events_and_see_the_same_values(
    witnesses: dict[type[OnPolicyAlgorithm], Witness],
) -> None:
    stock, ours = (witnesses[algorithm].events for algorithm in ALGORITHMS)
    assert [event for event, _, _ in ours] == [event for event, _, _ in stock]
    for (event, _, seen), (_, _, expected) in zip(ours, stock, strict=True):
        np.testing.assert_equal(without_clock(seen), without_clock(expected), err_msg=event)


def test_callbacks_find_every_local_name_that_stock_offers(
    witnesses: dict[type[OnPolicyAlgorithm], Witness],
) -> None:
    stock, ours = (witnesses[algorithm].events for algorithm in ALGORITHMS)
    for (event, names, _), (_, expected, _) in zip(ours, stock, strict=True):
        assert expected - LEFTOVERS - names == set(), event
    assert all(names >= OFFERED for event, names, _ in ours if event == "step")


def test_callbacks_find_the_model_the_environment_and_the_buffer() -> None:
    found: list[dict[str, Any]] = []

    def remember(local_names: dict[str, Any], _globals: dict[str, Any]) -> bool:
        found.append(dict(local_names))
        return True

    model = new_model(PPO).learn(32, callback=remember)
    assert len(found) == 16
    assert all(names["self"] is model for names in found)
    assert all(names["env"] is model.env for names in found)
    assert all(names["rollout_buffer"] is model.rollout_buffer for names in found)


def by_evaluation(folder: Path) -> EvalCallback:
    return EvalCallback(
        vector_environment(**CASE.environment),
        eval_freq=10,
        n_eval_episodes=2,
        log_path=str(folder),
        best_model_save_path=str(folder),
        verbose=0,
    )


def test_evaluations_come_out_as_in_stock(tmp_path: Path) -> None:
    results = []
    for name, algorithm in zip(("stock", "ours"), ALGORITHMS, strict=True):
        new_model(algorithm).learn(64, callback=by_evaluation(tmp_path / name))
        with np.load(tmp_path / name / "evaluations.npz") as evaluations:
            results.append({key: evaluations[key].tolist() for key in evaluations})
    assert results[0] == results[1]
    assert len(results[1]["timesteps"]) == 3
    assert isinstance(PPO.load(tmp_path / "ours" / "best_model.zip"), PPO)


def test_checkpoints_have_the_names_of_stock_and_load(tmp_path: Path) -> None:
    for name, algorithm in zip(("stock", "ours"), ALGORITHMS, strict=True):
        new_model(algorithm).learn(64, callback=CheckpointCallback(10, str(tmp_path / name), name_prefix="walk"))
    names = sorted(path.name for path in (tmp_path / "ours").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "stock").iterdir())
    assert names == ["walk_20_steps.zip", "walk_40_steps.zip", "walk_60_steps.zip"]
    assert PPO.load(tmp_path / "ours" / names[0]).num_timesteps == 20


def after_three_episodes() -> BaseCallback:
    return StopTrainingOnMaxEpisodes(max_episodes=3)


def at_any_reward() -> BaseCallback:
    env = vector_environment(**CASE.environment)
    at_once = StopTrainingOnRewardThreshold(reward_threshold=-1e6)
    return EvalCallback(env, callback_on_new_best=at_once, eval_freq=20, n_eval_episodes=1, verbose=0)


class Stop(BaseCallback):
    def _on_step(self) -> bool:
        return False


def after_forty_steps() -> BaseCallback:
    return CallbackList([EveryNTimesteps(n_steps=40, callback=Stop())])


@pytest.mark.parametrize(
    "stop, n_steps, n_updates",
    [(after_three_episodes, 30, 0), (at_any_reward, 40, 3), (after_forty_steps, 40, 3)],
)
def test_a_callback_stops_training_at_the_same_step(
    stop: Callable[[], BaseCallback], n_steps: int, n_updates: int
) -> None:
    for algorithm in ALGORITHMS:
        model = new_model(algorithm).learn(640, callback=stop())
        assert (model.num_timesteps, model._n_updates) == (n_steps, n_updates)


@pytest.mark.parametrize("log_interval", [2, None])
def test_the_log_is_dumped_at_the_same_rollouts(log_interval: int | None) -> None:
    steps = []
    for algorithm in ALGORITHMS:
        recorder = LogRecorder()
        model = new_model(algorithm)
        model.set_logger(Logger(None, [recorder]))
        model.learn(160, log_interval=log_interval)
        steps.append([step for step, _ in recorder.dumps])
    assert steps[0] == steps[1] == ([] if log_interval is None else [64, 128])


@pytest.mark.filterwarnings("ignore:rich is experimental")
def test_a_progress_bar_counts_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    model = new_model(PPO).learn(64, progress_bar=True)
    assert model.num_timesteps == 64
    shown = "".join(capsys.readouterr())
    assert "64/64" in shown


def test_the_tensorboard_folder_is_named_as_in_stock(tmp_path: Path) -> None:
    for _ in range(2):
        new_model(PPO, tensorboard_log=str(tmp_path)).learn(32)
    new_model(PPO, tensorboard_log=str(tmp_path)).learn(32, tb_log_name="walk")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["PPO_1", "PPO_2", "walk_1"]


def test_the_early_stop_is_announced_in_the_words_of_stock(capsys: pytest.CaptureFixture[str]) -> None:
    announced = []
    for algorithm in ALGORITHMS:
        new_model(algorithm, target_kl=1e-3, verbose=1).learn(64, log_interval=None)
        lines = capsys.readouterr().out.splitlines()
        announced.append([line for line in lines if line.startswith("Early stopping")])
    assert announced[0] == announced[1] != []


@pytest.mark.parametrize("method", ["__init__", "learn", "load", "save", "predict"])
def test_a_method_takes_the_arguments_of_stock(method: str) -> None:
    ours, stock = (dict(inspect.signature(getattr(a, method)).parameters) for a in (PPO, stable_baselines3.PPO))
    extras = [ours.pop(name) for name in list(ours) if name not in stock]
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [(p.name, p.kind, p.default) for p in stock.values()]
    assert all(extra.kind is inspect.Parameter.KEYWORD_ONLY for extra in extras)
    assert all(extra.default is not inspect.Parameter.empty for extra in extras)


def test_policies_have_the_short_names_of_stock() -> None:
    assert PPO.policy_aliases == stable_baselines3.PPO.policy_aliases
