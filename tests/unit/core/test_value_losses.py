"""Claims about the critic's losses: worked numbers, what clipping does to them, and slopes that are autograd's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch as th
from hypothesis import given
from hypothesis import strategies as st

from sb3_ppo_from_scratch.core.value_losses import (
    HALF_MEAN_SQUARED_ERROR,
    MEAN_HUBER,
    MEAN_SQUARED_ERROR,
    Criterion,
    larger_value_loss,
    larger_value_loss_slope,
    value_loss,
    value_loss_slope,
)
from tests.strategies import tensors

CRITERIA = {"mse": MEAN_SQUARED_ERROR, "half_mse": HALF_MEAN_SQUARED_ERROR, "huber": MEAN_HUBER}
every_criterion = pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
every_clip = pytest.mark.parametrize(
    "loss_of, slope_of",
    [(value_loss, value_loss_slope), (larger_value_loss, larger_value_loss_slope)],
    ids=["sb3", "openai"],
)


def number(value: float) -> th.Tensor:
    return th.tensor([value], dtype=th.float64)


@given(tensors(6), tensors(6))
def test_the_default_is_the_mean_squared_error_without_a_half(values: th.Tensor, returns: th.Tensor) -> None:
    loss = value_loss(values, th.zeros(6), returns, None)
    assert loss.item() == pytest.approx(np.mean((values.numpy() - returns.numpy()) ** 2))


@pytest.mark.parametrize(
    "name, error, loss, slope",
    [
        ("mse", 0.5, 0.25, 1.0),
        ("mse", -3.0, 9.0, -6.0),
        ("half_mse", 0.5, 0.125, 0.5),
        ("half_mse", -3.0, 4.5, -3.0),
        ("huber", 0.5, 0.125, 0.5),
        ("huber", 1.0, 0.5, 1.0),
        ("huber", -1.0, 0.5, -1.0),
        ("huber", 3.0, 2.5, 1.0),
        ("huber", -3.0, 2.5, -1.0),
        ("huber", 0.0, 0.0, 0.0),
    ],
)
@every_clip
def test_each_criterion_in_worked_numbers(
    loss_of: Callable[..., th.Tensor],
    slope_of: Callable[..., th.Tensor],
    name: str,
    error: float,
    loss: float,
    slope: float,
) -> None:
    arguments = (number(7.0 + error), number(0.0), number(7.0), None, CRITERIA[name])
    assert loss_of(*arguments).item() == loss
    assert slope_of(*arguments).item() == slope


@pytest.mark.parametrize(
    "value, expected, slope",
    [
        pytest.param(0.1, (100 - 0.1) ** 2, 2 * (0.1 - 100), id="within reach of the old value"),
        pytest.param(5.0, (100 - 0.2) ** 2, 0.0, id="beyond reach: no slope is left"),
        pytest.param(-5.0, (100 + 0.2) ** 2, 0.0, id="beyond reach on the wrong side: no slope either"),
    ],
)
def test_clipping_replaces_the_prediction(value: float, expected: float, slope: float) -> None:
    """A critic at 0 that has to reach 100 may move by 0.2 an update, as in SB3; OpenAI's larger loss differs."""
    values = number(value).requires_grad_()
    loss = value_loss(values, number(0.0), number(100.0), 0.2)
    assert loss.item() == pytest.approx(expected)
    assert th.autograd.grad(loss, values)[0].item() == pytest.approx(slope)


@pytest.mark.parametrize(
    "value, expected, slope",
    [
        pytest.param(0.1, (100 - 0.1) ** 2, 2 * (0.1 - 100), id="within reach of the old value"),
        pytest.param(5.0, (100 - 0.2) ** 2, 0.0, id="beyond reach: the clipped loss is the larger"),
        pytest.param(-5.0, (100 + 5) ** 2, 2 * (-5 - 100), id="beyond reach on the wrong side: it is pulled back"),
    ],
)
def test_the_larger_of_both_losses_counts(value: float, expected: float, slope: float) -> None:
    """The mark of OpenAI's habit: a prediction that has moved away from its target is not left there."""
    values = number(value).requires_grad_()
    loss = larger_value_loss(values, number(0.0), number(100.0), 0.2)
    assert loss.item() == pytest.approx(expected)
    assert th.autograd.grad(loss, values)[0].item() == pytest.approx(slope)


@every_criterion
@every_clip
@given(
    values=tensors(6), old_values=tensors(6), returns=tensors(6), clip_range_vf=st.none() | st.sampled_from([0.25, 1.0])
)
def test_the_slope_is_what_automatic_differentiation_gives(
    loss_of: Callable[..., th.Tensor],
    slope_of: Callable[..., th.Tensor],
    criterion: Criterion,
    values: th.Tensor,
    old_values: th.Tensor,
    returns: th.Tensor,
    clip_range_vf: float | None,
) -> None:
    # A quarter's grid puts samples on the boundaries themselves, makes equal losses, and keeps the sums exact.
    values, old_values, returns = ((tensor * 4).round() / 4 for tensor in (values, old_values, returns))
    values.requires_grad_()
    loss = loss_of(values, old_values, returns, clip_range_vf, criterion)
    slope = slope_of(values.detach(), old_values, returns, clip_range_vf, criterion)
    th.testing.assert_close(slope / len(values), th.autograd.grad(loss, values)[0], rtol=1e-12, atol=1e-15)


def test_where_both_losses_are_equal_the_slope_is_the_unclipped_one() -> None:
    # The prediction 2 and the clipped one 0.5 are as far from the target 1.25.
    arguments = (number(2.0).requires_grad_(), number(0.0), number(1.25), 0.5)
    slope = th.autograd.grad(larger_value_loss(*arguments), arguments[0])[0]
    assert slope.item() == larger_value_loss_slope(arguments[0].detach(), *arguments[1:]).item() == 1.5


@every_criterion
@given(values=tensors(6), old_values=tensors(6), returns=tensors(6))
def test_the_larger_loss_is_never_below_either(
    criterion: Criterion, values: th.Tensor, old_values: th.Tensor, returns: th.Tensor
) -> None:
    larger = larger_value_loss(values, old_values, returns, 0.25, criterion).item()
    for clip_range_vf in (None, 0.25):
        assert larger >= value_loss(values, old_values, returns, clip_range_vf, criterion).item() * (1 - 1e-12)


def test_clipping_can_make_the_loss_smaller_than_it_is() -> None:
    """The mark of SB3's habit: with the larger of both losses this would be 25."""
    arguments = (number(5.0), number(0.0), number(0.0), 0.2)
    assert value_loss(*arguments).item() == pytest.approx(0.04)
    assert larger_value_loss(*arguments).item() == 25.0
