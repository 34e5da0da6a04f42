"""Claims about policies that a user changes after construction: the engine follows, whatever it was before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from sb3_ppo_from_scratch.engines import ENGINES
from tests.unit.engine_models import (
    assert_acts_as_the_policy_itself,
    engine_of,
    learn_from,
    model_of,
    parameters,
    rolled_out,
)


def hook(policy: ActorCriticPolicy) -> None:
    policy.action_net.register_forward_hook(lambda module, inputs, output: 0.5 * output)


def hook_a_gradient(policy: ActorCriticPolicy) -> None:
    policy.action_net.weight.register_hook(lambda gradient: 0 * gradient)


def freeze(policy: ActorCriticPolicy) -> None:
    policy.mlp_extractor.policy_net.requires_grad_(False)


def override_on_the_instance(policy: ActorCriticPolicy) -> None:
    stock = policy.predict_values
    policy.predict_values = lambda obs: stock(obs) + 1  # type: ignore[method-assign]


def exchange_activations(policy: ActorCriticPolicy) -> None:
    for chain in (policy.mlp_extractor.policy_net, policy.mlp_extractor.value_net):
        chain[1] = nn.ReLU()


def exchange_the_optimizer(policy: ActorCriticPolicy) -> None:
    policy.optimizer = th.optim.SGD(policy.parameters(), lr=1e-2)


def exchange_a_layer(policy: ActorCriticPolicy) -> None:
    policy.action_net = nn.Linear(policy.action_net.in_features, policy.action_net.out_features)
    policy.optimizer = th.optim.Adam(policy.parameters(), lr=1e-2)


CHANGES = [
    hook,
    hook_a_gradient,
    freeze,
    override_on_the_instance,
    exchange_activations,
    exchange_the_optimizer,
    exchange_a_layer,
]


def changed_model(change: Callable[[ActorCriticPolicy], None], engine: str = "auto") -> Any:
    model = model_of(engine=engine, policy_kwargs={"net_arch": [8], "ortho_init": False})
    with th.random.fork_rng():
        th.manual_seed(1)
        change(model.policy)
    return model


@pytest.mark.parametrize("change", CHANGES)
def test_a_policy_changed_after_construction_acts_as_it_is_now(change: Callable[..., None]) -> None:
    assert_acts_as_the_policy_itself(changed_model(change))


@pytest.mark.parametrize("change", CHANGES)
def test_a_policy_changed_after_construction_learns_as_with_the_reference_engine(change: Callable[..., None]) -> None:
    models = [changed_model(change, engine) for engine in ENGINES]
    before = [parameters(model) for model in models]
    assert th.equal(*before)
    minibatches, _ = (rolled_out(model) for model in models)
    for model in models:
        learn_from(model, minibatches)
    assert not th.equal(parameters(models[1]), before[1])
    th.testing.assert_close(parameters(models[0]), parameters(models[1]), atol=1e-6, rtol=1e-5)


def test_a_hook_added_between_two_rollouts_counts_from_the_next_one() -> None:
    model = model_of().learn(32)
    assert "fused" in engine_of(model)
    hook(model.policy)
    assert_acts_as_the_policy_itself(model)
    assert engine_of(model) == "reference engine: a module of the policy has hooks"


def test_a_hook_taken_away_gives_the_fast_engine_back() -> None:
    model = model_of()
    handle = model.policy.action_net.register_forward_hook(lambda *_: None)
    model.learn(32)
    assert "reference engine" in engine_of(model)
    handle.remove()
    model.learn(32)
    assert "fused engine" in engine_of(model)
    assert_acts_as_the_policy_itself(model)


def test_another_engine_is_announced_when_it_takes_over_and_only_then(capsys: pytest.CaptureFixture[str]) -> None:
    model = model_of(verbose=1)
    capsys.readouterr()
    model.learn(64, log_interval=None)
    assert "Using" not in capsys.readouterr().out
    hook(model.policy)
    model.learn(128, log_interval=None)
    assert capsys.readouterr().out.count("Using the reference engine: a module of the policy has hooks") == 1
