"""Where parameters cannot agree to 1e-5, because rounding itself is magnified, the fast engine rounds no worse.

The first steps of a fresh Adam move every parameter by the learning rate times g / (|g| + ε), whatever the size of g.
Gradients that cancel almost to nothing, as those of SB3's tiny actor head and zero biases do at the beginning, are made
of rounding, and so is the direction that they then give. Either engine is compared with the same update in double
precision: it is as far from it as the two are from each other.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common import policies, preprocessing
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.core.records import Minibatch
from sb3_ppo_from_scratch.update.epochs import run_epochs
from sb3_ppo_from_scratch.update.reference import ReferenceEngine
from tests.parity.comparison import DEFAULTS, Case
from tests.parity.test_auto_engine import ATARI, Material, ServedBuffer, relative_error, updated_by

# By how much the typical error may exceed the reference engine's: 0.4 to 1.8 times were seen over a dozen seeds each.
FACTOR = 3.0


def fresh_material(case: Case, seed: int) -> Material:
    """A first rollout and the untouched policy and optimizer that it came from."""
    model = PPO(
        case.policy, case.vector_environment(), **{**DEFAULTS, **case.settings, "seed": seed}, engine="reference"
    )
    model.train = lambda: None  # type: ignore[method-assign]
    model.learn(model.n_steps * model.n_envs)
    settings = model._update_settings()
    epochs = [list(model.rollout_buffer.get(settings.batch_size)) for _ in range(settings.n_epochs)]
    return Material(model.policy, epochs, settings)


def preprocessed_in_double(obs: Any, space: spaces.Space[Any], normalize_images: bool = True) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: preprocessed_in_double(part, space[key], normalize_images) for key, part in obs.items()}
    if isinstance(space, spaces.Box):
        is_scaled = normalize_images and preprocessing.is_image_space(space)
        return obs.double() / 255.0 if is_scaled else obs.double()
    return preprocessing.preprocess_obs(obs, space, normalize_images).double()


def updated_in_double(given: Material, monkeypatch: pytest.MonkeyPatch) -> ActorCriticPolicy:
    """The reference engine's update, every operation of it in double precision."""
    policy = copy.deepcopy(given.policy).double()
    policy.optimizer.load_state_dict(policy.optimizer.state_dict())  # widens the moments along
    epochs = [
        [Minibatch(minibatch.observations, *(column.double() for column in minibatch[1:])) for minibatch in epoch]
        for epoch in given.epochs
    ]
    with monkeypatch.context() as patch:
        patch.setattr(policies, "preprocess_obs", preprocessed_in_double)
        run_epochs(ReferenceEngine(policy), ServedBuffer(epochs), given.settings)
    return policy


def worst_error(policy: ActorCriticPolicy, exact: ActorCriticPolicy) -> float:
    return max(
        relative_error(parameter.double(), exact.get_parameter(name)) for name, parameter in policy.named_parameters()
    )


def errors(case: Case, seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float]:
    """How far the auto engine and the reference engine are from double precision after a first update."""
    given = fresh_material(case, seed)
    exact = updated_in_double(given, monkeypatch)
    assert all(parameter.dtype == th.float64 for parameter in exact.parameters())
    auto, reference = (worst_error(updated_by(engine, given)[0], exact) for engine in ("auto", "reference"))
    return auto, reference


@pytest.mark.parametrize(
    "environment, policy, settings, n_seeds",
    [
        pytest.param({"action": "box"}, "MlpPolicy", {}, 6, id="vector"),
        pytest.param({"observation": "image", "action": "box"}, "MlpPolicy", {}, 6, id="pixels"),
        pytest.param({"observation": "image"}, "CnnPolicy", {}, 5, id="image"),
        pytest.param({"observation": "dict"}, "MultiInputPolicy", {}, 4, id="dict"),
        pytest.param({"observation": ATARI}, "CnnPolicy", {"n_steps": 8, "n_epochs": 2}, 3, id="atari"),
    ],
)
def test_from_a_fresh_optimizer_the_auto_engine_is_as_near_to_double_precision_as_the_reference(
    environment: dict[str, Any],
    policy: str,
    settings: dict[str, Any],
    n_seeds: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case({**environment, "time_limit": 5}, 2, policy, {"ent_coef": 0.01, **settings})
    auto, reference = np.log([errors(case, seed, monkeypatch) for seed in range(n_seeds)]).T
    assert np.exp((auto - reference).mean()) < FACTOR
    # An error of the mathematics would not be a matter of rounding: a coefficient off by a percent shows at 1e-3.
    assert np.exp(auto.max()) < 1e-3


def test_the_reference_engine_itself_misses_the_tolerance_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is why agreement to 1e-5 is asked for from a state that has left the beginning behind."""
    case = Case({"observation": "image", "action": "box", "time_limit": 5}, 2, "CnnPolicy", {"ent_coef": 0.01})
    _, reference = np.array([errors(case, seed, monkeypatch) for seed in range(3)]).T
    assert reference.max() > 1e-5
