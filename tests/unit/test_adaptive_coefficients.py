"""Claims about the state that follows the divergence: when it moves, what it does, and that it is never lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stable_baselines3
from stable_baselines3.common.save_util import load_from_zip_file

from sb3_ppo_from_scratch import PPO
from tests.environments import vector_environment
from tests.faults.measures import optimizer_rate
from tests.faults.models import ENGINES, logged
from tests.unit.duplicates import by_zip, every_duplicate
from tests.unit.engine_models import model_of, parameters

every_engine = pytest.mark.parametrize("engine", ENGINES)
# So fast that the policy leaves any of the small targets, and so slow that it reaches none of the large ones.
FAST, SLOW = {"learning_rate": 1e-2}, {"learning_rate": 1e-4}


def adapting(**settings: Any) -> Any:
    return model_of(**{"n_epochs": 3, "objective": "adaptive_kl", **settings})


@every_engine
@pytest.mark.parametrize(
    "speed, kl_target, factor", [(FAST, 1e-6, 2.0), (SLOW, 0.01, 0.5)], ids=["too_far", "too_near"]
)
def test_the_penalty_follows_the_divergence_after_each_update(
    engine: str, speed: dict[str, float], kl_target: float, factor: float
) -> None:
    model = adapting(engine=engine, kl_coef=0.5, kl_target=kl_target, **speed)
    for n_updates in range(1, 4):
        model.learn(32, reset_num_timesteps=False)
        # Logged is what the update used; the attribute is what the next will use.
        assert logged(model, "kl_coef") == 0.5 * factor ** (n_updates - 1)
        assert model.kl_coef == 0.5 * factor**n_updates


def test_near_its_target_the_penalty_stays() -> None:
    model = adapting(**FAST).learn(32)
    model.kl_target, model.kl_coef = logged(model, "approx_kl"), 3.0
    model._adapt_to(logged(model, "approx_kl"))
    assert model.kl_coef == 3.0


@every_engine
def test_a_fixed_penalty_stays_and_a_larger_one_holds_the_policy_back(engine: str) -> None:
    divergences = []
    for kl_coef in (0.0, 30.0):
        model = model_of(n_epochs=10, learning_rate=1e-2, objective="kl_penalty", kl_coef=kl_coef, engine=engine)
        model.learn(32)
        assert model.kl_coef == logged(model, "kl_coef") == kl_coef
        divergences.append(logged(model, "approx_kl"))
    assert divergences[1] < divergences[0] / 2


@every_engine
def test_without_a_penalty_the_objective_is_the_unclipped_one(engine: str) -> None:
    models = [
        model_of(n_epochs=4, engine=engine, objective="kl_penalty", kl_coef=0.0, **FAST).learn(64),
        model_of(n_epochs=4, engine=engine, objective="unclipped", **FAST).learn(64),
        model_of(n_epochs=4, engine=engine, clip_range=1e6, **FAST).learn(64),
    ]
    np.testing.assert_allclose(parameters(models[0]), parameters(models[1]), atol=1e-6)
    np.testing.assert_allclose(parameters(models[1]), parameters(models[2]), atol=1e-6)


@pytest.mark.parametrize("objective", ["clip", "unclipped"])
def test_objectives_without_a_penalty_neither_log_nor_move_it(objective: str) -> None:
    model = model_of(n_epochs=3, objective=objective, **FAST).learn(64)
    assert "train/kl_coef" not in model.logger.name_to_value
    assert model.kl_coef == 1.0


@every_engine
@pytest.mark.parametrize("objective", ["kl_penalty", "adaptive_kl", "unclipped"])
def test_target_kl_still_stops_an_update(engine: str, objective: str) -> None:
    targets = {"target_kl": 1e-4, "kl_target": 1e-4}
    model = model_of(n_epochs=8, objective=objective, engine=engine, **targets, **FAST).learn(32)
    assert 1 < model._n_updates < 8


@every_engine
@pytest.mark.parametrize(
    "rate, desired_kl, factor", [(1e-2, 1e-6, 1 / 1.5), (1e-4, 0.5, 1.5)], ids=["too_far", "too_near"]
)
def test_the_rate_follows_the_divergence_after_each_update(
    engine: str, rate: float, desired_kl: float, factor: float
) -> None:
    model = model_of(n_epochs=3, engine=engine, learning_rate=rate, desired_kl=desired_kl)
    for n_updates in range(3):
        model.learn(32, reset_num_timesteps=False)
        expected = pytest.approx(rate * factor**n_updates)
        assert optimizer_rate(model) == expected
        assert logged(model, "learning_rate") == expected
    assert model.learning_rate_factor == pytest.approx(factor**3)


def test_the_factor_multiplies_the_rate_that_is_assigned_but_not_beyond_the_bounds() -> None:
    model = model_of(n_epochs=3, learning_rate=1e-4, desired_kl=0.5).learn(64)
    assert model.learning_rate_factor == pytest.approx(2.25)
    model.learning_rate = 2e-4
    model.learn(32)
    assert optimizer_rate(model) == pytest.approx(2e-4 * 2.25)
    model.learning_rate = 6e-3
    model.learn(32)
    assert optimizer_rate(model) == 1e-2
    model.learning_rate = 0.0
    model.learn(32)
    assert optimizer_rate(model) == 0.0


def test_switched_off_the_factor_is_ignored() -> None:
    model = model_of(n_epochs=3, learning_rate=1e-3, desired_kl=0.5).learn(32)
    assert model.learning_rate_factor == pytest.approx(1.5)
    model.desired_kl = None
    model.learn(32)
    assert optimizer_rate(model) == logged(model, "learning_rate") == 1e-3
    assert model.learning_rate_factor == pytest.approx(1.5)


@every_duplicate
@every_engine
def test_a_duplicate_goes_on_with_both(engine: str, duplicate: Callable[[Any, Path], Any], tmp_path: Path) -> None:
    model = adapting(engine=engine, kl_coef=0.5, desired_kl=0.5, **SLOW).learn(64)
    copied = duplicate(model, tmp_path)
    assert (copied.kl_coef, copied.learning_rate_factor) == (0.125, model.learning_rate_factor)
    assert model.learning_rate_factor == pytest.approx(2.25)
    assert copied.learn(32).kl_coef == 0.0625


def test_an_override_at_load_replaces_one_and_keeps_the_other(tmp_path: Path) -> None:
    model = adapting(desired_kl=0.5, **SLOW).learn(64)
    loaded = by_zip(model, tmp_path, kl_coef=7.0)
    assert (loaded.kl_coef, loaded.learning_rate_factor) == (7.0, model.learning_rate_factor)
    assert logged(loaded.learn(32), "kl_coef") == 7.0
    assert by_zip(model, tmp_path, learning_rate_factor=1.0).learning_rate_factor == 1.0


def test_stock_loads_the_zip_and_what_stock_saved_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    model = adapting(desired_kl=0.5, **SLOW).learn(64)
    model.save(path)
    stock = stable_baselines3.PPO.load(path, vector_environment(2), device="cpu").learn(32)
    stock.save(path)
    data, _, _ = load_from_zip_file(path)
    assert data is not None
    loaded = PPO.load(path, env=vector_environment(2), device="cpu")
    # What stock carried along without knowing it is ours again.
    assert (loaded.objective, loaded.kl_coef) == ("adaptive_kl", model.kl_coef)
    stable_baselines3.PPO("MlpPolicy", vector_environment(2), n_steps=16, batch_size=16, device="cpu").save(path)
    assert (PPO.load(path).kl_coef, PPO.load(path).learning_rate_factor) == (1.0, 1.0)
