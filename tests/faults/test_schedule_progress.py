"""A schedule is asked about the progress remaining from 1 to 0 and never about what lies beyond the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stable_baselines3

from tests.environments import HiddenStateEnv, vector_environment
from tests.faults.models import ENGINES, logged, tiny_model

SCHEDULED = ("learning_rate", "clip_range", "clip_range_vf", "ent_coef", "vf_coef")


def _witness(value: float, asked: list[float]) -> Callable[[float], float]:
    def schedule(progress_remaining: float) -> float:
        asked.append(progress_remaining)
        return value

    return schedule


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("name", SCHEDULED)
def test_progress_stays_between_one_and_zero_when_the_last_rollout_overshoots(
    name: str, n_envs: int, engine: str
) -> None:
    asked: list[float] = []
    model = tiny_model(vector_environment(n_envs), engine=engine, n_steps=16, **{name: _witness(1e-3, asked)})
    model.learn(20)
    first_update = len(asked)
    model.learn(5, reset_num_timesteps=False)
    assert first_update > 0
    assert len(asked) > first_update
    assert all(0.0 <= progress <= 1.0 for progress in asked)
    assert asked[-1] == 0.0


def test_stock_ppo_asks_about_the_time_after_the_end() -> None:
    asked: list[float] = []
    model = tiny_model(HiddenStateEnv(), stable_baselines3.PPO, clip_range=_witness(0.2, asked))
    model.learn(10)
    assert asked == [1 - 16 / 10]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_linear_learning_rate_ends_at_zero_rather_than_climbing_the_loss(engine: str) -> None:
    # The defaults of PPO with a budget below one rollout: SB3 ends at a rate of -3.1e-4.
    model = tiny_model(HiddenStateEnv(), engine=engine, n_steps=2048, batch_size=2048, learning_rate=lambda p: p * 3e-4)
    before = {name: tensor.clone() for name, tensor in model.policy.state_dict().items()}
    model.learn(1000)
    assert model.policy.optimizer.param_groups[0]["lr"] == 0.0
    assert logged(model, "learning_rate") == 0.0
    # A rate of zero moves nothing.
    assert all(tensor.equal(before[name]) for name, tensor in model.policy.state_dict().items())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_envs", [1, 3])
def test_inside_the_budget_progress_is_what_sb3_computes(n_envs: int, engine: str) -> None:
    progress: dict[str, list[float]] = {"ours": [], "stock": []}
    models = (
        tiny_model(vector_environment(n_envs), clip_range=_witness(0.2, progress["ours"]), engine=engine),
        tiny_model(vector_environment(n_envs), stable_baselines3.PPO, clip_range=_witness(0.2, progress["stock"])),
    )
    for model in models:
        model.learn(96).learn(96, reset_num_timesteps=False)
    assert progress["ours"] == progress["stock"]
    assert progress["ours"][-1] == 0.0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SCHEDULED)
@pytest.mark.parametrize("wrong", [-1e-3, float("nan"), float("inf")])
def test_a_schedule_that_turns_bad_is_named_before_it_does_harm(name: str, wrong: float, engine: str) -> None:
    model = tiny_model(HiddenStateEnv(), engine=engine, **{name: lambda progress: 0.1 if progress > 0.6 else wrong})
    before = {key: tensor.clone() for key, tensor in model.policy.state_dict().items()}
    with pytest.raises(ValueError, match=rf"{name} returned {wrong} at progress_remaining=0\.5"):
        model.learn(32)
    assert all(tensor.equal(before[key]) for key, tensor in model.policy.state_dict().items())


@pytest.mark.parametrize("name", SCHEDULED)
@pytest.mark.parametrize("wrong", [-1.0, float("nan"), "fast", None])
def test_a_schedule_that_is_bad_from_the_start_is_named(name: str, wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        tiny_model(HiddenStateEnv(), **{name: lambda progress: wrong}).learn(16)
