"""Claims about perceptrons in NumPy: forward and backward passes against torch's, in double precision."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch as th
from torch import nn

from sb3_ppo_from_scratch.networks import mlp
from tests.unit.networks.policies import assert_close

ACTIVATIONS: dict[str, nn.Module] = {
    "tanh": nn.Tanh(),
    "relu": nn.ReLU(),
    "leaky_relu": nn.LeakyReLU(0.25),
    "elu": nn.ELU(alpha=0.5),
}
WITHOUT_COUNTERPART: dict[str, nn.Module] = {
    "silu": nn.SiLU(),
    "gelu": nn.GELU(),
    "sigmoid": nn.Sigmoid(),
    "dropout": nn.Dropout(0.1),
    # Their output does not tell their slope.
    "folding_leaky_relu": nn.LeakyReLU(-0.5),
    "steep_leaky_relu": nn.LeakyReLU(2.0),
    "flat_elu": nn.ELU(alpha=0.0),
    "falling_elu": nn.ELU(alpha=-1.0),
}


class OwnTanh(nn.Tanh):
    """A subclass may compute anything."""


def chain(activation: nn.Module, *sizes: int) -> nn.Sequential:
    with th.random.fork_rng():
        th.manual_seed(0)
        modules: list[nn.Module] = []
        for n_inputs, n_outputs in pairwise(sizes):
            modules += [nn.Linear(n_inputs, n_outputs), activation]
        return nn.Sequential(*modules[:-1]).double()  # the last layer is linear


def arrays_of(parameter: th.Tensor) -> tuple[Any, Any]:
    if parameter.grad is None:
        parameter.grad = th.full_like(parameter, th.nan)  # to be overwritten, not added to
    return parameter.detach().numpy(), parameter.grad.numpy()


def inputs(n: int, size: int) -> Any:
    return np.random.default_rng(0).normal(size=(n, size)) * 2


@pytest.mark.parametrize("sizes", [(3, 2), (3, 5, 2), (4, 6, 5, 3)], ids=["no_hidden", "one_hidden", "two_hidden"])
@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
@pytest.mark.parametrize("n_rows", [1, 7])
def test_both_passes_are_torchs(activation: nn.Module, sizes: tuple[int, ...], n_rows: int) -> None:
    modules = chain(activation, *sizes)
    x, gradient = inputs(n_rows, sizes[0]), inputs(n_rows, sizes[-1])
    expected = modules(th.from_numpy(x))
    expected_gradients = th.autograd.grad(expected, list(modules.parameters()), th.from_numpy(gradient))

    layers = mlp.layers_of(list(modules), arrays_of)
    assert layers is not None
    outputs = mlp.forward(layers, x)
    mlp.backward(layers, outputs, gradient)
    assert_close(outputs[-1], expected, 1e-12)
    for parameter, expected_gradient in zip(modules.parameters(), expected_gradients, strict=True):
        assert parameter.grad is not None
        assert_close(parameter.grad, expected_gradient, 1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_activations_and_slopes_are_torchs_at_and_around_their_kinks(activation: nn.Module) -> None:
    points = np.array([-1e4, -50.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 50.0, 1e4])
    leaf = th.from_numpy(points).requires_grad_()
    expected = activation(leaf)
    slope = th.autograd.grad(expected.sum(), leaf)[0]
    ours = mlp.activation_of(activation)
    assert ours is not None
    output = ours.function(points.copy())
    assert_close(output, expected, 1e-12)
    np.testing.assert_allclose(ours.slope(output) * np.ones(9), slope.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_single_precision_stays_single_precision(activation: nn.Module) -> None:
    modules = chain(activation, 3, 4, 2).float()
    layers = mlp.layers_of(list(modules), arrays_of)
    assert layers is not None
    outputs = mlp.forward(layers, inputs(5, 3).astype(np.float32))
    assert {array.dtype for array in outputs} == {np.dtype(np.float32)}
    # NumPy refuses to write a result of double precision into these.
    mlp.backward(layers, outputs, inputs(5, 2).astype(np.float32))


def test_inputs_and_the_incoming_gradient_are_left_alone() -> None:
    layers = mlp.layers_of(list(chain(nn.ReLU(), 3, 4, 2)), arrays_of)
    assert layers is not None
    x, gradient = inputs(5, 3), inputs(5, 2)
    outputs = mlp.forward(layers, x)
    mlp.backward(layers, outputs, gradient)
    np.testing.assert_array_equal(x, inputs(5, 3))
    np.testing.assert_array_equal(gradient, inputs(5, 2))


@pytest.mark.parametrize("activation", WITHOUT_COUNTERPART.values(), ids=WITHOUT_COUNTERPART)
def test_an_activation_without_a_counterpart_is_said_to_have_none(activation: nn.Module) -> None:
    assert mlp.activation_of(activation) is None
    assert mlp.layers_of(list(chain(activation, 3, 4, 2)), arrays_of) is None


@pytest.mark.parametrize(
    "modules",
    [
        pytest.param([nn.Linear(3, 2, bias=False)], id="no_bias"),
        pytest.param([nn.Tanh(), nn.Linear(3, 2)], id="activation_first"),
        pytest.param([nn.Linear(3, 3), nn.Tanh(), nn.ReLU()], id="two_activations"),
        pytest.param([nn.Linear(3, 3), OwnTanh()], id="a_users_subclass"),
        pytest.param([nn.Sequential(nn.Linear(3, 3))], id="nested"),
    ],
)
def test_another_chain_has_no_counterpart(modules: list[nn.Module]) -> None:
    assert mlp.layers_of(modules, arrays_of) is None
