"""The default engine computes what the reference engine computes, up to rounding, from the same minibatches.

Whole runs, for which the engine has to be given the same random numbers, are in test_auto_learning_run.py.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecNormalize

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.core.randomness import seeded_generators
from sb3_ppo_from_scratch.core.records import Minibatch, UpdateReport, UpdateSettings
from sb3_ppo_from_scratch.engines import ENGINES, build_engine
from sb3_ppo_from_scratch.update.epochs import run_epochs
from tests.parity.comparison import Case, trained_ours

# Summing a minibatch in another order moves these parameters by up to 2e-6. From a fresh optimizer it can be more,
# see test_rounding.py.
TOLERANCE = 1e-5
ATARI = spaces.Box(0, 255, (4, 84, 84), np.uint8)
OBSERVATIONS: dict[str, tuple[str | spaces.Box, str]] = {
    **{name: (name, "MlpPolicy") for name in ("vector", "discrete", "multi_discrete", "multi_binary")},
    "pixels": ("image", "MlpPolicy"),
    "image": ("image", "CnnPolicy"),
    "dict": ("dict", "MultiInputPolicy"),
    "dict_of_vectors": ("dict_of_vectors", "MultiInputPolicy"),
}
FAMILIES = ("discrete", "box", "multi_discrete", "multi_binary")


@dataclass(frozen=True)
class Material:
    """What one update starts from: a policy whose optimizer is warm, and every minibatch of every epoch."""

    policy: ActorCriticPolicy
    epochs: list[list[Minibatch]]
    settings: UpdateSettings


class ServedBuffer:
    """A buffer that serves, epoch after epoch, the minibatches it was given."""

    def __init__(self, epochs: list[list[Minibatch]]) -> None:
        self._epochs = iter(epochs)

    def get(self, batch_size: int) -> Iterator[Minibatch]:
        return iter(next(self._epochs))


def material(case: Case) -> Material:
    """The state after a short run, with the last rollout, now a little off-policy, to learn from again."""
    model = trained_ours(case).model
    assert isinstance(model, PPO)
    settings = model._update_settings()
    epochs = [list(model.rollout_buffer.get(settings.batch_size)) for _ in range(settings.n_epochs)]
    return Material(model.policy, epochs, settings)


def updated_by(engine: str, given: Material) -> tuple[ActorCriticPolicy, UpdateReport]:
    policy = copy.deepcopy(given.policy)
    updater = build_engine(engine, policy, seeded_generators(0, policy.device)).updater
    return policy, run_epochs(updater, ServedBuffer(given.epochs), given.settings)


def relative_error(value: th.Tensor, expected: th.Tensor) -> float:
    """Of the worst entry, in units of the tensor's largest: single entries may be as small as rounding itself."""
    scale = expected.abs().max().item()
    error = (value - expected).abs().max().item()
    return error / scale if scale > 0 else error


def excessive_errors(policy: ActorCriticPolicy, expected: ActorCriticPolicy) -> dict[str, float]:
    errors = {
        name: relative_error(parameter, expected.get_parameter(name)) for name, parameter in policy.named_parameters()
    }
    return {name: error for name, error in errors.items() if error > TOLERANCE}


CASES = [
    *(
        pytest.param(
            Case({"observation": space, "action": action, "time_limit": 5}, 3, policy, {"ent_coef": 0.01}),
            id=f"{action}_actions_{name}",
        )
        for name, (space, policy) in OBSERVATIONS.items()
        for action in FAMILIES
    ),
    *(
        pytest.param(
            Case({"observation": ATARI, "action": action}, 2, "CnnPolicy", {"ent_coef": 0.01, "n_steps": 8}),
            id=f"{action}_actions_atari",
        )
        for action in ("discrete", "box")
    ),
    pytest.param(Case({"action": "uneven_box", "time_limit": 5}, 4), id="uneven_box"),
    pytest.param(Case(n_envs=4, settings={"clip_range_vf": 0.05}), id="value_clipping"),
    pytest.param(Case(n_envs=4, settings={"normalize_advantage": False}), id="raw_advantages"),
    pytest.param(Case(n_envs=4, settings={"max_grad_norm": 0.01}), id="tight_gradient_norm"),
    *(
        pytest.param(
            Case({"action": action}, 4, settings={"objective": objective, "kl_coef": 3.0}), id=f"{objective}_{action}"
        )
        for objective in ("kl_penalty", "adaptive_kl", "unclipped")
        for action in FAMILIES
    ),
    *(
        pytest.param(
            Case(n_envs=4, settings={"value_clip": value_clip, "value_loss": value_loss, "clip_range_vf": 0.05}),
            id=f"{value_clip}_{value_loss}",
        )
        for value_clip in ("sb3", "openai")
        for value_loss in ("mse", "half_mse", "huber")
    ),
    pytest.param(Case(n_envs=4, settings={"advantage_normalization": "rollout"}), id="advantages_of_the_rollout"),
    pytest.param(
        Case(
            {"observation": "image", "action": "box"},
            2,
            "CnnPolicy",
            {"objective": "kl_penalty", "value_loss": "huber", "value_clip": "openai", "clip_range_vf": 0.05},
        ),
        id="options_in_torch",
    ),
    pytest.param(Case({"action": "box"}, 4, wrap=VecNormalize), id="vec_normalize"),
    *(
        pytest.param(
            Case(
                {"action": "uneven_box"},
                4,
                settings={
                    "use_sde": True,
                    "ent_coef": 0.01,
                    "policy_kwargs": policy_kwargs,
                },
            ),
            id=name,
        )
        for name, policy_kwargs in {
            "gsde": {},
            "gsde_one_deviation": {"full_std": False},
            "gsde_in_torch": {"activation_fn": th.nn.SiLU},
            "squashed_gsde": {"squash_output": True},
            "expln_gsde": {"use_expln": True},
        }.items()
    ),
    *(
        pytest.param(Case(n_envs=4, settings={"policy_kwargs": policy_kwargs}), id=name)
        for name, policy_kwargs in {
            "separate_networks": {"net_arch": {"pi": [16, 8], "vf": [12]}},
            "no_hidden_layer": {"net_arch": []},
            "relu": {"activation_fn": th.nn.ReLU},
            "plain_gradient_descent": {"optimizer_class": th.optim.SGD},
        }.items()
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_one_update_of_the_auto_engine_agrees_with_the_reference(case: Case) -> None:
    given = material(case)
    before = {name: parameter.clone() for name, parameter in given.policy.named_parameters()}
    expected, expected_report = updated_by("reference", given)
    policy, report = updated_by("auto", given)

    moved = {name: not th.equal(parameter, before[name]) for name, parameter in expected.named_parameters()}
    assert any(moved.values())
    assert excessive_errors(policy, expected) == {}
    assert numbers(report) == pytest.approx(numbers(expected_report), rel=1e-4, abs=1e-6, nan_ok=True)


def test_the_tolerance_leaves_no_room_for_a_coefficient_off_by_a_percent() -> None:
    given = material(Case(n_envs=4, settings={"ent_coef": 0.01, "clip_range": 0.02}))
    expected, _ = updated_by("reference", given)
    for name in ("ent_coef", "vf_coef", "clip_range", "max_grad_norm"):
        changed = replace(given.settings, **{name: 1.01 * getattr(given.settings, name)})
        policy, _ = updated_by("auto", replace(given, settings=changed))
        assert excessive_errors(policy, expected), name


def test_both_engines_stop_at_the_same_minibatch() -> None:
    given = material(Case(n_envs=4, settings={"target_kl": 1e-3}))
    _, expected_report = updated_by("reference", given)
    _, report = updated_by("auto", given)
    assert expected_report.stopping_kl is not None
    assert numbers(report) == pytest.approx(numbers(expected_report), rel=1e-4, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_update_reads_the_minibatches_and_leaves_them_alone(engine: str) -> None:
    given = material(Case({"action": "box"}, 4))
    untouched = copy.deepcopy(given.epochs)
    updated_by(engine, given)
    for epoch, untouched_epoch in zip(given.epochs, untouched, strict=True):
        for minibatch, expected in zip(epoch, untouched_epoch, strict=True):
            for tensor, expected_tensor in zip(minibatch, expected, strict=True):
                assert isinstance(tensor, th.Tensor)
                assert th.equal(tensor, expected_tensor)


def numbers(report: UpdateReport) -> dict[str, Any]:
    """What an update reports, the columns of all minibatches one by one."""
    scalars = {name: np.nan if value is None else value for name, value in vars(report).items() if np.ndim(value) == 0}
    columns = report.minibatches._asdict().items()
    return {**scalars, **{f"{name} {i}": value for name, column in columns for i, value in enumerate(column)}}
