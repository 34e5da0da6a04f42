"""Claims about the flat vector of parameters: nothing that a user of the policy can see changes, only its memory."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.networks.flat_parameters import FlatParameters
from tests.unit.networks.policies import Setup, as_tensors, assert_close, cnn, multi_input

SETUPS = {"mlp": Setup(action="box"), "cnn": cnn(), "multi_input": multi_input(action="box")}
every_setup = pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)


def flat(policy: ActorCriticPolicy) -> FlatParameters:
    return FlatParameters(policy.optimizer.param_groups[0]["params"])


def outline(policy: ActorCriticPolicy) -> list[tuple[Any, ...]]:
    return [
        (name, parameter.shape, parameter.stride(), parameter.dtype, parameter.requires_grad, parameter.is_leaf)
        for name, parameter in policy.named_parameters()
    ]


def is_bound(policy: ActorCriticPolicy, vector: FlatParameters) -> bool:
    """Whether a write into the flat vectors arrives at every parameter and gradient."""
    marked = [th.rand_like(vector.values) for _ in range(2)]
    vector.values.copy_(marked[0])
    vector.gradients.copy_(marked[1])
    parameters = policy.optimizer.param_groups[0]["params"]
    values = th.cat([parameter.detach().flatten() for parameter in parameters])
    slopes = th.cat([parameter.grad.flatten() for parameter in parameters])
    return th.equal(values, marked[0]) and th.equal(slopes, marked[1])


@every_setup
def test_names_shapes_strides_and_values_stay_what_they_were(setup: Setup) -> None:
    policy, untouched = setup.build(), setup.build()
    parameters = list(policy.parameters())
    flat(policy)
    assert outline(policy) == outline(untouched)
    assert [id(parameter) for parameter in policy.parameters()] == [id(parameter) for parameter in parameters]
    for (name, value), (other_name, expected) in zip(
        policy.state_dict().items(), untouched.state_dict().items(), strict=True
    ):
        assert name == other_name
        assert value.is_contiguous()
        assert th.equal(value, expected)
    observations = as_tensors(setup.observations(3))
    # To rounding: a convolution may sum in another order where its weights begin at another address.
    assert_close(policy.predict_values(observations), untouched.predict_values(observations))


@every_setup
def test_every_parameter_and_gradient_is_a_view_of_one_vector(setup: Setup) -> None:
    policy = setup.build()
    vector = flat(policy)
    assert vector.values.numel() == sum(parameter.numel() for parameter in policy.parameters())
    assert is_bound(policy, vector)
    shapes = [piece.shape for piece in vector.split(vector.values)]
    assert shapes == [parameter.shape for parameter in policy.optimizer.param_groups[0]["params"]]


def load_state_dict(policy: ActorCriticPolicy, source: ActorCriticPolicy) -> None:
    policy.load_state_dict(source.state_dict())


def load_by_assignment(policy: ActorCriticPolicy, source: ActorCriticPolicy) -> None:
    # As strategies for huge models do: the parameters' memory is exchanged, not written to.
    for parameter, other in zip(policy.parameters(), source.parameters(), strict=True):
        parameter.data = other.detach().clone()


def move_away_and_back(policy: ActorCriticPolicy, source: ActorCriticPolicy) -> None:
    policy.load_state_dict(source.state_dict())
    policy.to(th.float64).to(th.float32)


def forget_gradients(policy: ActorCriticPolicy, source: ActorCriticPolicy) -> None:
    policy.load_state_dict(source.state_dict())
    policy.optimizer.zero_grad(set_to_none=True)


CHANGES: list[Callable[..., None]] = [load_state_dict, load_by_assignment, move_away_and_back, forget_gradients]


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_from_outside_binding_keeps_the_new_values(change: Callable[..., None]) -> None:
    policy, source = SETUPS["mlp"].build(), SETUPS["mlp"].build(seed=1)
    vector = flat(policy)
    change(policy, source)
    vector.bind()
    for parameter, expected in zip(policy.parameters(), source.parameters(), strict=True):
        assert th.equal(parameter, expected)
    assert is_bound(policy, vector)


def saved_and_loaded(policy: ActorCriticPolicy) -> ActorCriticPolicy:
    file = io.BytesIO()
    th.save(policy.state_dict(), file)
    file.seek(0)
    other = SETUPS["mlp"].build(seed=1)
    other.load_state_dict(th.load(file))
    return other


@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy)), saved_and_loaded],
    ids=["deepcopy", "pickle", "saved_file"],
)
def test_a_copy_has_the_same_values_in_memory_of_its_own(duplicate: Callable[..., ActorCriticPolicy]) -> None:
    policy = SETUPS["mlp"].build()
    vector = flat(policy)
    expected = [parameter.detach().clone() for parameter in policy.parameters()]
    other = duplicate(policy)
    vector.values.fill_(7.0)
    for parameter, value in zip(other.parameters(), expected, strict=True):
        assert th.equal(parameter, value)


def test_a_saved_file_is_no_longer_than_before() -> None:
    """Every parameter is a view of the whole vector, which must be written once, not once for each."""
    sizes = []
    for make_flat in (lambda policy: None, flat):
        policy, file = SETUPS["mlp"].build(), io.BytesIO()
        make_flat(policy)
        th.save({"state": policy.state_dict()}, file)
        sizes.append(len(file.getvalue()))
    assert sizes[1] <= 1.05 * sizes[0]


@pytest.mark.parametrize("size", [1e-3, 0.5, 0.50001, 3.0, 1e6])
@pytest.mark.parametrize("max_grad_norm", [0.5, float("inf")])
def test_gradients_are_clipped_as_torch_clips_them(size: float, max_grad_norm: float) -> None:
    policy, stock = SETUPS["mlp"].build(), SETUPS["mlp"].build()
    vector = flat(policy)
    direction = th.randn(vector.values.numel(), generator=th.Generator().manual_seed(0))
    vector.gradients.copy_(direction * size / direction.norm())
    for parameter, gradient in zip(stock.parameters(), vector.split(vector.gradients.clone()), strict=True):
        parameter.grad = gradient
    th.nn.utils.clip_grad_norm_(stock.parameters(), max_grad_norm)
    vector.clip_gradients(max_grad_norm)
    for ours, theirs in zip(policy.parameters(), stock.parameters(), strict=True):
        th.testing.assert_close(ours.grad, theirs.grad, rtol=2e-6, atol=0.0)
    assert vector.gradients.norm().item() <= max_grad_norm * (1 + 1e-6)


@pytest.mark.parametrize("max_grad_norm", [0.5, float("inf")])
def test_without_gradients_there_is_nothing_to_clip(max_grad_norm: float) -> None:
    vector = flat(SETUPS["mlp"].build())
    vector.clip_gradients(max_grad_norm)
    assert not vector.gradients.any()
