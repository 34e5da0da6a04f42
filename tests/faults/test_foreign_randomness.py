"""Whoever else draws random numbers during a training must not change what is learnt.

With stock PPO a stochastic evaluation, or a draw in a wrapper, gives other parameters at the end; the default engine
has generators of its own. The reference engine is SB3 bit for bit, this included.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_ppo_from_scratch import PPO
from tests.environments import HiddenStateEnv, vector_environment
from tests.faults.models import tiny_model
from tests.parity.cases import RestlessExtractor

N_STEPS = 96


@pytest.fixture(autouse=True)
def _global_state() -> Iterator[None]:
    state = random.getstate(), np.random.get_state(), th.get_rng_state()
    yield
    random.setstate(state[0])
    np.random.set_state(state[1])
    th.set_rng_state(state[2])


class DropoutPolicy(ActorCriticPolicy):
    """Draws while it learns, and cannot be recognised."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings, features_extractor_class=RestlessExtractor)

    def predict_values(self, obs: Any) -> th.Tensor:
        return super().predict_values(obs)


class DrawingWrapper(gym.Wrapper[Any, Any, Any, Any]):
    """Draws at every step without using it, as an augmentation or a random reward bonus would."""

    def __init__(self, env: gym.Env[Any, Any], draw: Callable[[], Any]) -> None:
        super().__init__(env)
        self._draw = draw

    def step(self, action: Any) -> Any:
        self._draw()
        return self.env.step(action)


class DrawingCallback(BaseCallback):
    def __init__(self, draw: Callable[[], Any]) -> None:
        super().__init__()
        self._draw = draw

    def _on_step(self) -> bool:
        self._draw()
        return True

    def _on_rollout_end(self) -> None:
        self._draw()  # between the rollout and the update that learns from it


MODELS: dict[str, dict[str, Any]] = {
    "categorical": {},
    "gaussian": {"action": "box"},
    "cnn": {"policy": "CnnPolicy", "observation": "image"},
    "multi_input": {"policy": "MultiInputPolicy", "observation": "dict_of_vectors", "action": "multi_binary"},
    "gsde": {"action": "box", "use_sde": True, "sde_sample_freq": 4},
    "unrecognised_with_dropout": {"policy": DropoutPolicy},
    "recognised_with_dropout": {"policy_kwargs": {"features_extractor_class": RestlessExtractor}},
}
DRAWS: dict[str, Callable[[], Any]] = {
    "numpy": lambda: np.random.rand(3),
    "torch": lambda: th.rand(3),
    "python": random.random,
    "reseeding": lambda: (np.random.seed(0), th.manual_seed(0), random.seed(0)),
}


def build(
    name: str = "categorical", algorithm: Any = PPO, wrapped: Callable[[], Any] | None = None, **more: Any
) -> Any:
    settings = {**MODELS[name], **more}
    spaces = {key: settings.pop(key) for key in ("observation", "action") if key in settings}
    env = (
        vector_environment(2, time_limit=5, **spaces)
        if wrapped is None
        else DummyVecEnv([lambda: DrawingWrapper(HiddenStateEnv(time_limit=5, **spaces), wrapped)] * 2)
    )
    return tiny_model(env, algorithm, **{"n_epochs": 2, "batch_size": 16, **settings})


def stochastic_evaluation(name: str) -> EvalCallback:
    spaces = {key: value for key, value in MODELS[name].items() if key in ("observation", "action")}
    env = vector_environment(1, time_limit=5, **spaces)
    return EvalCallback(env, eval_freq=4, n_eval_episodes=1, deterministic=False, verbose=0)


def trained_parameters(model: Any, callback: Any = None) -> th.Tensor:
    model.learn(N_STEPS, callback=callback)
    return th.nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()


@pytest.mark.parametrize("name", MODELS)
def test_a_stochastic_evaluation_does_not_change_what_is_learnt(name: str) -> None:
    undisturbed = trained_parameters(build(name))
    assert th.equal(trained_parameters(build(name), stochastic_evaluation(name)), undisturbed)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("name", MODELS)
def test_draws_in_a_callback_do_not_change_what_is_learnt(name: str, draw: Callable[[], Any]) -> None:
    undisturbed = trained_parameters(build(name))
    assert th.equal(trained_parameters(build(name), DrawingCallback(draw)), undisturbed)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("name", ["categorical", "unrecognised_with_dropout"])
def test_draws_in_a_wrapper_do_not_change_what_is_learnt(name: str, draw: Callable[[], Any]) -> None:
    undisturbed = trained_parameters(build(name, wrapped=lambda: None))
    assert th.equal(trained_parameters(build(name, wrapped=draw)), undisturbed)


@pytest.mark.parametrize("algorithm, settings", [(stable_baselines3.PPO, {}), (PPO, {"engine": "reference"})])
@pytest.mark.parametrize("disturbance", ["evaluation", "numpy", "torch"])
def test_with_stock_ppo_and_its_equal_they_do(algorithm: Any, settings: dict[str, Any], disturbance: str) -> None:
    undisturbed = trained_parameters(build(algorithm=algorithm, **settings))
    callback = (
        stochastic_evaluation("categorical") if disturbance == "evaluation" else DrawingCallback(DRAWS[disturbance])
    )
    disturbed = trained_parameters(build(algorithm=algorithm, **settings), callback)
    assert (disturbed - undisturbed).abs().max().item() > 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_training_leaves_the_global_generators_to_their_owners(name: str) -> None:
    model = build(name)
    before = random.getstate(), np.random.get_state()[1].copy(), th.get_rng_state()
    trained_parameters(model)
    assert random.getstate() == before[0]
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])
    assert th.equal(th.get_rng_state(), before[2])


@pytest.mark.parametrize("name", MODELS)
def test_without_a_seed_the_global_seeds_decide(name: str) -> None:
    def after_seeding(numpy_seed: int) -> th.Tensor:
        np.random.seed(numpy_seed)
        th.manual_seed(5)
        return trained_parameters(build(name, seed=None))

    assert th.equal(after_seeding(5), after_seeding(5))
    assert not th.equal(after_seeding(6), after_seeding(5))


@pytest.mark.parametrize("algorithm", [stable_baselines3.PPO, PPO])
def test_two_models_without_a_seed_do_not_explore_alike(algorithm: Any) -> None:
    """Else several unseeded trainings in one process would not be independent of one another."""
    models = [build(algorithm=algorithm, seed=None) for _ in range(2)]
    models[1].policy.load_state_dict(models[0].policy.state_dict())
    assert not th.equal(*map(trained_parameters, models))


@pytest.mark.parametrize("name", ["categorical", "gsde", "unrecognised_with_dropout"])
def test_seeding_a_model_anew_begins_its_sequences_anew(name: str) -> None:
    model = build(name)
    trained_parameters(model)
    clone = copy.deepcopy(model)
    for side, n_draws in ((model, 0), (clone, 3)):
        side._generators.numpy.random(n_draws)
        with side._generators.torch:
            th.rand(n_draws)
        side.set_random_seed(9)
    assert th.equal(trained_parameters(model), trained_parameters(clone))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("name", MODELS)
def test_a_copy_of_a_model_goes_on_as_the_original_does(name: str, duplicate: Callable[[Any], Any]) -> None:
    model = build(name)
    model.learn(N_STEPS)
    clone = duplicate(model)
    results = []
    for side in (model, clone):
        side.learn(N_STEPS, reset_num_timesteps=False)
        th.rand(3), np.random.rand(3)
        results.append(th.nn.utils.parameters_to_vector(side.policy.parameters()).detach())
    assert th.equal(*results)
