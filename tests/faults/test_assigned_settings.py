"""A hyperparameter that is assigned later counts from the next rollout, however it was assigned.

Each case measures what the setting does rather than what the attribute says.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from tests.environments import HiddenStateEnv
from tests.faults.measures import (
    Measure,
    advantages_are_whitened,
    bootstraps_of_last_rollout,
    coefficient,
    epochs_of_last_rollout,
    length_of_step,
    measured_gae_lambda,
    measured_gamma,
    optimizer_rate,
    penalty_weight,
    smallest_minibatch,
    updates_of_last_rollout,
    value_loss_ratio,
)
from tests.faults.models import ENGINES, Assign, logged, tiny_model

ROLLOUT = 16


@dataclass(frozen=True)
class Case:
    """One setting, how it is at construction, what it becomes, and what has to be seen then."""

    old: Any
    new: Any
    measure: Measure
    before: Any
    after: Any
    others: tuple[tuple[str, Any], ...] = ()


SGD = {"net_arch": [8], "optimizer_class": th.optim.SGD}
CASES: dict[str, Case] = {
    "gamma": Case(0.9, 0.5, measured_gamma, 0.9, 0.5, (("gae_lambda", 0.0),)),
    "gae_lambda": Case(0.9, 0.5, measured_gae_lambda, 0.9, 0.5),
    "learning_rate": Case(1e-3, 5e-3, optimizer_rate, 1e-3, 5e-3),
    "clip_range": Case(0.2, 0.3, lambda model: logged(model, "clip_range"), 0.2, 0.3),
    "clip_range_vf": Case(0.2, 0.3, lambda model: logged(model, "clip_range_vf"), 0.2, 0.3),
    "n_steps": Case(16, 24, lambda model: model.rollout_buffer.buffer_size, 16, 24, (("batch_size", 8),)),
    "batch_size": Case(16, 4, updates_of_last_rollout, 1, 4),
    "n_epochs": Case(1, 3, epochs_of_last_rollout, 1, 3),
    "ent_coef": Case(0.0, 0.25, coefficient("entropy_loss"), 0.0, 0.25),
    "vf_coef": Case(0.5, 0.125, coefficient("value_loss"), 0.5, 0.125),
    "max_grad_norm": Case(0.2, 0.1, length_of_step, 0.2, 0.1, (("learning_rate", 1.0), ("policy_kwargs", SGD))),
    "target_kl": Case(None, 1e-6, epochs_of_last_rollout, 5, 2, (("n_epochs", 5), ("learning_rate", 1e-2))),
    "normalize_advantage": Case(True, False, advantages_are_whitened, True, False),
    "objective": Case("clip", "kl_penalty", penalty_weight, 0.0, 2.0, (("kl_coef", 2.0),)),
    "kl_coef": Case(1.0, 4.0, penalty_weight, 1.0, 4.0, (("objective", "kl_penalty"),)),
    "value_loss": Case("mse", "half_mse", value_loss_ratio, 1.0, 0.5),
    "advantage_normalization": Case("minibatch", "none", advantages_are_whitened, True, False),
    "truncation": Case("bootstrap", "terminal", bootstraps_of_last_rollout, 4, 0),
    "engine": Case("auto", "reference", smallest_minibatch, 5, 1, (("batch_size", 5), ("n_steps", 16))),
}
SCHEDULED = ("learning_rate", "clip_range", "clip_range_vf", "ent_coef", "vf_coef")

pytestmark = pytest.mark.filterwarnings("ignore:batch_size=.* does not divide")


def _model(name: str, **settings: Any) -> Any:
    case = CASES[name]
    env = HiddenStateEnv(time_limit=4) if name == "truncation" else HiddenStateEnv()
    return tiny_model(env, **{**dict(case.others), name: case.old, **settings})


def _by_attribute(model: Any, name: str, value: Any) -> Any:
    setattr(model, name, value)
    return model.learn(2 * ROLLOUT, reset_num_timesteps=False)


def _by_load(model: Any, name: str, value: Any) -> Any:
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = type(model).load(file, env=model.get_env(), device="cpu", **{name: value})
    return loaded.learn(2 * ROLLOUT, reset_num_timesteps=False)


def _by_callback(model: Any, name: str, value: Any) -> Any:
    # In the middle of a rollout, then one more rollout from its start.
    model.learn(2 * ROLLOUT, reset_num_timesteps=False, callback=Assign(5, **{name: value}))
    return model.learn(1, reset_num_timesteps=False)


def _by_last_callback(model: Any, name: str, value: Any) -> Any:
    # In the last rollout of one call to learn; the next call is the next rollout.
    model.learn(ROLLOUT, reset_num_timesteps=False, callback=Assign(ROLLOUT, **{name: value}))
    return model.learn(1, reset_num_timesteps=False)


@pytest.mark.parametrize("assign", [_by_attribute, _by_load, _by_callback, _by_last_callback])
@pytest.mark.parametrize("name", CASES)
def test_an_assigned_setting_takes_effect(name: str, assign: Callable[[Any, str, Any], Any]) -> None:
    case = CASES[name]
    model = _model(name).learn(ROLLOUT)
    assert case.measure(model) == pytest.approx(case.before, rel=1e-2, abs=1e-4)
    model = assign(model, name, case.new)
    assert case.measure(model) == pytest.approx(case.after, rel=1e-2, abs=1e-4)


@pytest.mark.parametrize("name", [name for name in CASES if name != "engine"])
def test_the_reference_engine_takes_assigned_settings_too(name: str) -> None:
    model = _by_attribute(_model(name, engine="reference").learn(ROLLOUT), name, CASES[name].new)
    assert CASES[name].measure(model) == pytest.approx(CASES[name].after, rel=1e-2, abs=1e-4)


@pytest.mark.parametrize("assign", [_by_attribute, _by_load, _by_callback])
@pytest.mark.parametrize("name", SCHEDULED)
def test_an_assigned_schedule_takes_effect(name: str, assign: Callable[[Any, str, Any], Any]) -> None:
    case = CASES[name]
    model = assign(_model(name).learn(ROLLOUT), name, _constant_schedule)
    assert case.measure(model) == pytest.approx(0.0625, rel=1e-2)


def _constant_schedule(progress_remaining: float) -> float:
    return 0.0625


def test_value_clipping_can_be_switched_off_and_on() -> None:
    model = _model("clip_range_vf").learn(ROLLOUT)
    model.clip_range_vf = None
    model.logger.name_to_value.clear()
    model.learn(ROLLOUT)
    assert "train/clip_range_vf" not in model.logger.name_to_value
    model.clip_range_vf = 0.4
    assert logged(model.learn(ROLLOUT), "clip_range_vf") == 0.4


@pytest.mark.parametrize("value", [0.5, 0.0, 1.0])
def test_the_bootstrap_of_a_time_limit_uses_the_discount_of_its_rollout(value: float) -> None:
    # Assigned in mid-rollout: one rollout must not be discounted in two ways.
    model = tiny_model(HiddenStateEnv(episode_length=None, time_limit=4), gamma=0.9, gae_lambda=0.0)
    at_limits: list[float] = []

    def watch(local_variables: dict[str, Any], _: dict[str, Any]) -> bool:
        if local_variables["n_steps"] == 5:
            model.gamma = value
        terminal = local_variables["infos"][0].get("terminal_observation")
        if terminal is not None:
            at_limits.append(model.policy.predict_values(model.policy.obs_to_tensor(terminal)[0]).item())
        return True

    model.learn(ROLLOUT, callback=watch)
    bootstraps = model.rollout_buffer.bootstraps[3::4, 0]
    np.testing.assert_allclose(bootstraps, measured_gamma(model) * np.array(at_limits), rtol=1e-4)


def _pickled(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("later", [lambda model: model, copy.deepcopy, _pickled], ids=["same", "deepcopy", "pickle"])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_assigned_lr_schedule_stays_in_effect(later: Callable[[Any], Any], engine: str) -> None:
    # A common way around SB3, which ignores an assigned learning_rate.
    model = _model("learning_rate", engine=engine)
    model.lr_schedule = _constant_schedule
    model = later(model).learn(3 * ROLLOUT)
    assert optimizer_rate(model) == logged(model, "learning_rate") == 0.0625


def test_an_lr_schedule_assigned_by_a_callback_stays_in_effect() -> None:
    model = _model("learning_rate")
    model.learn(4 * ROLLOUT, callback=Assign(20, lr_schedule=_constant_schedule))
    assert optimizer_rate(model) == 0.0625


def test_a_learning_rate_assigned_after_an_lr_schedule_replaces_it() -> None:
    model = _model("learning_rate")
    model.lr_schedule = _constant_schedule
    model.learn(ROLLOUT)
    model.learning_rate = 2e-3
    assert optimizer_rate(model.learn(ROLLOUT)) == 2e-3


def test_switching_to_the_reference_engine_and_off_whitening_brings_back_the_cut_of_sb3() -> None:
    model = _model("engine").learn(ROLLOUT)
    model.engine, model.normalize_advantage = "reference", False
    assert smallest_minibatch(model.learn(ROLLOUT)) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_an_assigned_rollout_length_trains_like_a_constructed_one(engine: str) -> None:
    env = HiddenStateEnv(episode_length=None)
    model = tiny_model(env, engine=engine, n_steps=16, batch_size=8)
    model.n_steps = 24
    model.learn(72)
    assert model.num_timesteps == 72
    assert model.rollout_buffer.observations.shape == (24, 1, 4)
    other = tiny_model(HiddenStateEnv(episode_length=None), engine=engine, n_steps=24, batch_size=8).learn(72)
    parameters = other.policy.state_dict()
    assert all(tensor.equal(parameters[name]) for name, tensor in model.policy.state_dict().items())


@pytest.mark.parametrize("name", ["gamma", "learning_rate"])
def test_stock_ppo_ignores_what_is_assigned(name: str) -> None:
    model: OnPolicyAlgorithm = tiny_model(HiddenStateEnv(), stable_baselines3.PPO, **{name: CASES[name].old})
    setattr(model, name, CASES[name].new)
    model.learn(ROLLOUT)
    seen = model.rollout_buffer.gamma if name == "gamma" else optimizer_rate(model)
    assert seen == CASES[name].old
