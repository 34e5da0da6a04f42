"""Models travel between Stable-Baselines3's PPO and this one, by file or in memory, and train on bit for bit."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.vec_env import VecEnv

from sb3_ppo_from_scratch import PPO, RolloutBuffer
from tests.parity.comparison import (
    DEFAULTS,
    Case,
    Run,
    continued,
    differences,
    random_state,
    restore_random_state,
    trained_ours,
    trained_stock,
)

Trainer = Callable[..., Run]

TRAINERS = pytest.mark.parametrize("saved_by", [trained_stock, trained_ours], ids=["from_stock", "from_ours"])
CASES = pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case(n_envs=2), id="vector"),
        pytest.param(Case({"observation": "dict_of_vectors", "action": "box"}, 2, "MultiInputPolicy"), id="dict"),
        pytest.param(Case({"observation": "channels_last_image"}, 1, "CnnPolicy"), id="image"),
        pytest.param(Case({"action": "uneven_box"}, 2, settings={"use_sde": True, "clip_range_vf": 0.2}), id="gsde"),
    ],
)


def saved(run: Run, folder: Path) -> Path:
    run.model.save(folder / "model.zip")
    return folder / "model.zip"


def loaded_by_both(path: Path, env: Callable[[], VecEnv], **settings: Any) -> tuple[OnPolicyAlgorithm, PPO]:
    stock = stable_baselines3.PPO.load(path, env(), device="cpu", **settings)
    return stock, PPO.load(path, env(), device="cpu", engine="reference", **settings)


def continued_alike(model: OnPolicyAlgorithm, other: OnPolicyAlgorithm) -> list[str]:
    """What differs after both have trained on for two rollouts, drawing the same random numbers."""
    state = random_state()
    run = continued(model, 2 * model.n_steps * model.n_envs)
    restore_random_state(state)
    return differences(run, continued(other, 2 * other.n_steps * other.n_envs))


def actions_of(model: OnPolicyAlgorithm, env: VecEnv) -> np.ndarray[Any, Any]:
    env.seed(7)
    return model.predict(env.reset(), deterministic=True)[0]


@CASES
@TRAINERS
def test_a_zip_trains_on_alike_in_both(saved_by: Trainer, case: Case, tmp_path: Path) -> None:
    run = saved_by(case)
    path = saved(run, tmp_path)
    stock, ours = loaded_by_both(path, case.vector_environment)
    assert stock.num_timesteps == ours.num_timesteps == run.model.num_timesteps > 0
    for model in (stock, ours):
        assert np.array_equal(actions_of(model, model.get_env()), actions_of(run.model, model.get_env()))
    assert isinstance(ours.rollout_buffer, RolloutBuffer)
    assert not isinstance(stock.rollout_buffer, RolloutBuffer)
    # Loading has seeded the generators for the one that loaded last; both have the same seed.
    stock.set_random_seed(DEFAULTS["seed"])
    ours.set_random_seed(DEFAULTS["seed"])
    assert continued_alike(stock, ours) == []


@TRAINERS
@pytest.mark.parametrize("n_envs", [1, 5])
def test_a_zip_trains_on_alike_with_another_number_of_environments(
    saved_by: Trainer, n_envs: int, tmp_path: Path
) -> None:
    path = saved(saved_by(Case(n_envs=2)), tmp_path)
    stock, ours = loaded_by_both(path, Case(n_envs=n_envs).vector_environment)
    assert ours.n_envs == ours.rollout_buffer.n_envs == n_envs
    assert continued_alike(stock, ours) == []


@TRAINERS
def test_a_zip_takes_custom_objects_alike(saved_by: Trainer, tmp_path: Path) -> None:
    path = saved(saved_by(Case(n_envs=2)), tmp_path)
    replacements = {"learning_rate": 1e-4, "lr_schedule": None, "clip_range": 0.05, "n_epochs": 2}
    stock, ours = loaded_by_both(path, Case(n_envs=2).vector_environment, custom_objects=replacements)
    assert ours.lr_schedule(1.0) == 1e-4
    assert ours.clip_range(1.0) == 0.05
    assert continued_alike(stock, ours) == []


@TRAINERS
def test_a_zip_loads_without_an_environment_to_predict(saved_by: Trainer, tmp_path: Path) -> None:
    run = saved_by(Case({"action": "box"}, 2))
    ours = PPO.load(saved(run, tmp_path))
    env = Case({"action": "box"}, 2).vector_environment()
    assert np.array_equal(actions_of(ours, env), actions_of(run.model, env))


def test_a_zip_that_went_through_both_still_loads_in_stock(tmp_path: Path) -> None:
    path = saved(trained_stock(Case(n_envs=2)), tmp_path)
    env = Case(n_envs=2).vector_environment
    PPO.load(path, env(), device="cpu").save(path)
    stock, ours = loaded_by_both(path, env)
    assert continued_alike(stock, ours) == []


@CASES
def test_our_zip_names_nothing_of_ours(case: Case, tmp_path: Path) -> None:
    path = saved(trained_ours(case), tmp_path)
    data, _, _ = load_from_zip_file(path)
    assert data is not None
    named = {key: type(value).__module__ for key, value in data.items()}
    named.update({key: value.__module__ for key, value in data.items() if isinstance(value, type)})
    assert [key for key, module in named.items() if module.startswith("sb3_ppo_from_scratch")] == []


@pytest.mark.parametrize("giver, taker", [(trained_stock, trained_ours), (trained_ours, trained_stock)])
@pytest.mark.parametrize("by_file", [False, True], ids=["from_memory", "from_file"])
def test_parameters_move_between_models(giver: Trainer, taker: Trainer, by_file: bool, tmp_path: Path) -> None:
    case = Case({"action": "box"}, 2)
    given = giver(case)
    model = taker(case, seed=11).model
    # Copied, because torch lets an optimizer go on writing to the state that it was given.
    parameters = [copy.deepcopy(given.model.get_parameters()) for _ in range(2)]
    model.set_parameters(str(saved(given, tmp_path)) if by_file else parameters[0])
    twin = giver(case, seed=11).model
    twin.set_parameters(parameters[1])
    assert th.equal(model.policy.state_dict()["log_std"], given.model.policy.state_dict()["log_std"])
    assert continued_alike(model, twin) == []


@TRAINERS
def test_a_policy_file_predicts_as_its_model(saved_by: Trainer, tmp_path: Path) -> None:
    case = Case({"action": "box"}, 2)
    model = saved_by(case).model
    model.policy.save(str(tmp_path / "policy.pt"))
    policy = ActorCriticPolicy.load(str(tmp_path / "policy.pt"))
    env = case.vector_environment()
    env.seed(7)
    observations = env.reset()
    assert np.array_equal(policy.predict(observations, deterministic=True)[0], actions_of(model, env))


def by_pickle(model: OnPolicyAlgorithm) -> OnPolicyAlgorithm:
    return pickle.loads(pickle.dumps(model))


def by_cloudpickle(model: OnPolicyAlgorithm) -> OnPolicyAlgorithm:
    return cloudpickle.loads(cloudpickle.dumps(model))


@pytest.mark.parametrize("duplicate", [by_pickle, by_cloudpickle, copy.deepcopy])
@pytest.mark.parametrize("settings", [{"clip_range_vf": 0.2}, {"use_sde": True}], ids=["gaussian", "gsde"])
def test_a_duplicate_in_memory_trains_on_as_the_original(
    duplicate: Callable[[OnPolicyAlgorithm], OnPolicyAlgorithm], settings: dict[str, Any]
) -> None:
    original = trained_ours(Case({"action": "box", "time_limit": 5}, 2, settings=settings)).model
    copied = duplicate(original)
    assert copied is not original
    assert isinstance(copied, PPO)
    assert continued_alike(original, copied) == []


def test_cloudpickle_keeps_a_schedule_written_as_a_lambda() -> None:
    original = trained_ours(Case(settings={"learning_rate": lambda progress: 1e-3 * progress})).model
    copied = by_cloudpickle(original)
    assert copied.lr_schedule(0.5) == 5e-4
    assert continued_alike(original, copied) == []


@pytest.mark.parametrize("algorithm", [stable_baselines3.PPO, PPO])
def test_a_deep_copy_made_before_training_trains_as_the_original(algorithm: type[OnPolicyAlgorithm]) -> None:
    original = algorithm("MlpPolicy", Case(n_envs=2).vector_environment(), **DEFAULTS)
    assert continued_alike(original, copy.deepcopy(original)) == []
