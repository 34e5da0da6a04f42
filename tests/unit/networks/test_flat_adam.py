"""Claims about the optimizer step on flat parameters: torch's own Adam, its state included, and any other optimizer."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.networks.flat_parameters import FlatAdam, FlatParameters
from tests.unit.networks.policies import Setup

N_STEPS = 60
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adam": {},
    "adam_of_torch": {"optimizer_kwargs": {"eps": 1e-8}},
    "weight_decay": {"optimizer_kwargs": {"weight_decay": 0.1}},
    "decoupled_weight_decay": {"optimizer_kwargs": {"weight_decay": 0.1, "decoupled_weight_decay": True}},
    "other_betas": {"optimizer_kwargs": {"betas": (0.5, 0.9)}},
    "amsgrad": {"optimizer_kwargs": {"amsgrad": True}},
    "maximize": {"optimizer_kwargs": {"maximize": True}},
    "adamw": {"optimizer_class": th.optim.AdamW},
    "sgd_with_momentum": {"optimizer_class": th.optim.SGD, "optimizer_kwargs": {"momentum": 0.9}},
    "rmsprop": {"optimizer_class": th.optim.RMSprop},
}
every_optimizer = pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)


class Pair:
    """A policy stepped flat beside the same policy stepped by torch, along the same gradients."""

    def __init__(self, kwargs: dict[str, Any]) -> None:
        self.policy, self.stock = (Setup(action="box", kwargs=dict(kwargs)).build() for _ in range(2))
        self.flat = FlatParameters(self.policy.optimizer.param_groups[0]["params"])
        self.optimizer = FlatAdam(self.policy.optimizer, self.flat)
        self._generator = th.Generator().manual_seed(0)

    def update(self, n_steps: int, learning_rate: float = 1e-2) -> None:
        for policy in (self.policy, self.stock):
            policy.optimizer.param_groups[0]["lr"] = learning_rate
        self.flat.bind()
        self.optimizer.bind()
        for _ in range(n_steps):
            gradients = self._gradients()
            self.flat.gradients.copy_(gradients)
            self.optimizer.step()
            for parameter, gradient in zip(self.stock.parameters(), self.flat.split(gradients), strict=True):
                parameter.grad = gradient
            self.stock.optimizer.step()
        self.optimizer.publish()

    def _gradients(self) -> th.Tensor:
        gradients = th.randn(self.flat.values.numel(), generator=self._generator)
        gradients *= 10 ** th.empty_like(gradients).uniform_(-6, 1, generator=self._generator)
        gradients[::7] = 0.0
        return gradients

    def assert_same(self) -> None:
        for ours, theirs in zip(self.policy.parameters(), self.stock.parameters(), strict=True):
            th.testing.assert_close(ours, theirs, rtol=1e-6, atol=2e-6)


@every_optimizer
def test_many_steps_are_those_of_torch(optimizer: dict[str, Any]) -> None:
    pair = Pair(optimizer)
    for n_steps, learning_rate in ((N_STEPS, 1e-2), (N_STEPS, 1e-3)):  # a schedule lowers the rate in between
        pair.update(n_steps, learning_rate)
        pair.assert_same()


@every_optimizer
def test_the_state_is_that_of_torch(optimizer: dict[str, Any]) -> None:
    pair = Pair(optimizer)
    pair.update(N_STEPS)
    ours, theirs = pair.policy.optimizer.state_dict(), pair.stock.optimizer.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert ours["state"].keys() == theirs["state"].keys()
    for key, state in theirs["state"].items():
        assert ours["state"][key].keys() == state.keys()
        for name, expected in state.items():
            if expected is not None:
                th.testing.assert_close(ours["state"][key][name], expected, rtol=1e-5, atol=1e-6)


def test_every_parameter_counts_its_own_steps() -> None:
    pair = Pair({})
    pair.update(5)
    pair.update(3)
    steps = [state["step"] for state in pair.policy.optimizer.state.values()]
    assert [step.item() for step in steps] == [8.0] * len(list(pair.policy.parameters()))
    assert len({step.data_ptr() for step in steps}) == len(steps)


@pytest.mark.parametrize("n_before", [0, N_STEPS])
def test_a_loaded_state_replaces_the_moments(n_before: int) -> None:
    """Zero steps before: the state of an optimizer that has never stepped is empty, and says: begin anew."""
    pair, source = Pair({}), Pair({})
    pair.update(N_STEPS)
    if n_before:
        source.update(n_before)
    for policy in (pair.policy, pair.stock):
        policy.load_state_dict(source.policy.state_dict())
        policy.optimizer.load_state_dict(copy.deepcopy(source.policy.optimizer.state_dict()))
    pair.update(3)
    pair.assert_same()


def test_a_state_cleared_by_hand_begins_anew() -> None:
    pair = Pair({})
    pair.update(N_STEPS)
    for policy in (pair.policy, pair.stock):
        policy.optimizer.state.clear()
    pair.update(3)
    pair.assert_same()


def test_torch_itself_may_step_in_between() -> None:
    pair = Pair({})
    pair.update(5)
    for policy in (pair.policy, pair.stock):
        for index, parameter in enumerate(policy.parameters()):
            parameter.grad = th.full_like(parameter, 0.1 * index)
        policy.optimizer.step()
    pair.update(5)
    pair.assert_same()


def test_torch_goes_on_from_the_published_state() -> None:
    pair = Pair({})
    pair.update(N_STEPS)
    heir: ActorCriticPolicy = Setup(action="box").build(seed=1)
    heir.load_state_dict(pair.policy.state_dict())
    heir.optimizer.load_state_dict(pair.policy.optimizer.state_dict())
    for policy in (heir, pair.stock):
        for _ in range(5):
            for parameter in policy.parameters():
                parameter.grad = parameter.detach().sign()
            policy.optimizer.step()
    for ours, theirs in zip(heir.parameters(), pair.stock.parameters(), strict=True):
        th.testing.assert_close(ours, theirs, rtol=1e-6, atol=2e-6)
