"""Claims about the clipped surrogate of ``core.losses`` and its slope: where it pushes, and where it stops."""

from __future__ import annotations

import pytest
import torch as th
from hypothesis import example, given
from hypothesis import strategies as st

from sb3_ppo_from_scratch.core import losses
from tests.strategies import tensors

EPSILON = 0.2
# Ratios to three decimals, both boundaries included: a product that is one rounding away from the boundary could
# tie with the clipped term, and no formula for the slope is meant to follow automatic differentiation there.
ratios = st.lists(st.integers(1, 3000) | st.sampled_from([800, 1000, 1200]), min_size=6, max_size=6).map(
    lambda thousandths: th.tensor(thousandths, dtype=th.float64) / 1000
)


def clipped_objective(ratio: float, advantage: float) -> float:
    return -float(losses.clipped_surrogate_loss(th.tensor([ratio]), th.tensor([advantage]), EPSILON))


def automatic_slope(ratio: th.Tensor, advantages: th.Tensor, clip_range: float) -> th.Tensor:
    """∂L^CLIP/∂r of each sample by automatic differentiation of the loss."""
    ratio = ratio.clone().requires_grad_()
    loss = losses.clipped_surrogate_loss(ratio, advantages, clip_range)
    return -len(ratio) * th.autograd.grad(loss, ratio)[0]


@pytest.mark.parametrize("ratio, expected", [(1.0, -2.0), (1.5, 0.0), (0.5, -1.0)])
def test_gradient_of_the_loss_by_the_log_probability(ratio: float, expected: float) -> None:
    old_log_prob = th.tensor([-1.5], dtype=th.float64)
    log_prob = (old_log_prob + th.tensor(ratio, dtype=th.float64).log()).requires_grad_()
    advantages = th.tensor([2.0], dtype=th.float64)
    losses.clipped_surrogate_loss((log_prob - old_log_prob).exp(), advantages, EPSILON).backward()
    assert log_prob.grad is not None
    assert log_prob.grad.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "advantage, ratio, expected",
    [
        pytest.param(2.0, 0.5, 1.0, id="good, has become rarer: pull it back"),
        pytest.param(2.0, 1.1, 2.2, id="good, inside: push it up"),
        pytest.param(2.0, 1.5, 0.0, id="good, has become commoner: stop"),
        pytest.param(-2.0, 1.5, -3.0, id="bad, has become commoner: pull it back"),
        pytest.param(-2.0, 1.1, -2.2, id="bad, inside: push it down"),
        pytest.param(-2.0, 0.5, 0.0, id="bad, has become rarer: stop"),
    ],
)
def test_six_regions_of_the_gradient_by_the_log_probability(advantage: float, ratio: float, expected: float) -> None:
    ratios, advantages = th.tensor([ratio]), th.tensor([advantage])
    # ∂r/∂log π = r
    assert (ratios * losses.clipped_surrogate_slope(ratios, advantages, EPSILON)).item() == pytest.approx(expected)
    assert (ratios * automatic_slope(ratios, advantages, EPSILON)).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    "ratio, good_value, good_slope, bad_value, bad_slope",
    [
        (0.6, 0.6, 1.0, -0.8, 0.0),
        (0.9, 0.9, 1.0, -0.9, -1.0),
        (1.0, 1.0, 1.0, -1.0, -1.0),
        (1.1, 1.1, 1.0, -1.1, -1.0),
        (1.4, 1.2, 0.0, -1.4, -1.0),
        (2.0, 1.2, 0.0, -2.0, -1.0),
    ],
)
def test_slope_table(ratio: float, good_value: float, good_slope: float, bad_value: float, bad_slope: float) -> None:
    ratios = th.tensor([ratio])
    for advantage, value, slope in ((1.0, good_value, good_slope), (-1.0, bad_value, bad_slope)):
        advantages = th.tensor([advantage])
        assert -losses.surrogate_loss(ratios, advantages).item() == pytest.approx(advantage * ratio)
        assert clipped_objective(ratio, advantage) == pytest.approx(value)
        assert losses.clipped_surrogate_slope(ratios, advantages, EPSILON).item() == slope
        assert automatic_slope(ratios, advantages, EPSILON).item() == slope


@given(ratios, tensors(6) | st.just(th.zeros(6, dtype=th.float64)), st.sampled_from([0.1, EPSILON, 0.3]))
@example(th.tensor([0.8, 1.2] * 3, dtype=th.float64), th.tensor([1.0, 1, 0, 0, -1, -1]).double(), EPSILON)
def test_slope_is_what_automatic_differentiation_gives(
    ratio: th.Tensor, advantages: th.Tensor, clip_range: float
) -> None:
    th.testing.assert_close(
        losses.clipped_surrogate_slope(ratio, advantages, clip_range),
        automatic_slope(ratio, advantages, clip_range),
        rtol=1e-12,
        atol=0.0,
    )


@pytest.mark.parametrize("advantage", [2.0, 0.0, -2.0])
@pytest.mark.parametrize("boundary", [1 - EPSILON, 1 + EPSILON])
@pytest.mark.parametrize("dtype", [th.float32, th.float64])
def test_slope_on_the_boundary_is_still_the_advantage(advantage: float, boundary: float, dtype: th.dtype) -> None:
    ratio, advantages = th.tensor([boundary], dtype=dtype), th.tensor([advantage], dtype=dtype)
    assert losses.clipped_surrogate_slope(ratio, advantages, EPSILON).item() == advantage
    assert automatic_slope(ratio, advantages, EPSILON).item() == advantage


@given(ratios, tensors(6))
def test_clipped_surrogate_is_a_pessimistic_bound(ratio: th.Tensor, advantages: th.Tensor) -> None:
    for sample in range(len(ratio)):
        one = slice(sample, sample + 1)
        clipped = -losses.clipped_surrogate_loss(ratio[one], advantages[one], EPSILON)
        unclipped = -losses.surrogate_loss(ratio[one], advantages[one])
        assert clipped <= unclipped
        if abs(ratio[sample] - 1) <= EPSILON:
            assert clipped == unclipped


@given(ratios, tensors(6))
def test_clipped_surrogate_is_the_mean_over_its_samples(ratio: th.Tensor, advantages: th.Tensor) -> None:
    each = [losses.clipped_surrogate_loss(r[None], a[None], EPSILON) for r, a in zip(ratio, advantages, strict=True)]
    whole = losses.clipped_surrogate_loss(ratio, advantages, EPSILON)
    th.testing.assert_close(whole, th.stack(each).mean(), rtol=1e-12, atol=1e-12)


def test_plain_surrogate_has_no_brake() -> None:
    """The objective that the clip replaces keeps rewarding ever larger ratios."""
    values = [-losses.surrogate_loss(th.tensor([r]), th.tensor([1.0])).item() for r in (2.0, 20.0, 200.0)]
    assert values == [2.0, 20.0, 200.0]
    assert [clipped_objective(r, 1.0) for r in (2.0, 20.0, 200.0)] == pytest.approx([1.2] * 3)
