"""Claims about the diagnostics: worked numbers, signs, and equality with SB3 where it has the same quantity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch as th
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from stable_baselines3.common.utils import explained_variance as stock_explained_variance

from sb3_ppo_from_scratch.core.diagnostics import (
    approx_kl,
    approx_kl_k1,
    clip_fraction,
    explained_variance,
    gradient_budget,
)
from sb3_ppo_from_scratch.core.distributions import categorical_kl
from tests.strategies import tensors

# The candidate's probabilities over the uniform policy's, for each of the three actions.
ANNOTATED_RATIO = th.tensor([0.6, 0.9, 1.5], dtype=th.float64)
numbers = hnp.arrays(np.float32, 8, elements=st.floats(-100, 100, width=32, allow_subnormal=False))


@pytest.mark.parametrize("estimate", [approx_kl, approx_kl_k1])
def test_both_estimates_are_exact_where_every_action_is_sampled_as_often_as_it_is_likely(estimate: Any) -> None:
    """Each action of the uniform policy once: the mean is the expectation, and that is the divergence."""
    assert estimate(ANNOTATED_RATIO.log()).item() == pytest.approx(0.070, abs=5e-4)


@given(tensors(1, 3), tensors(1, 3))
def test_both_estimates_are_unbiased(logits: th.Tensor, other_logits: th.Tensor) -> None:
    old, log_ratio = logits.softmax(-1)[0], (other_logits.log_softmax(-1) - logits.log_softmax(-1))[0]
    exact = categorical_kl(logits, other_logits).item()
    for estimate in (approx_kl, approx_kl_k1):
        expectation = sum(p * estimate(log_ratio[a : a + 1]) for a, p in enumerate(old))
        assert float(expectation) == pytest.approx(exact, abs=1e-10)


@given(tensors(5))
def test_k3_is_never_negative(log_ratio: th.Tensor) -> None:
    for sample in log_ratio:
        assert approx_kl(sample[None]).item() >= -1e-15


def test_k1_may_be_negative_where_k3_is_not() -> None:
    log_ratio = th.tensor([0.3, 0.1, -0.2])
    assert approx_kl_k1(log_ratio).item() == pytest.approx(-0.2 / 3)
    assert approx_kl(log_ratio).item() > 0


def test_an_unchanged_policy_shows_no_divergence_and_no_clipping() -> None:
    log_ratio = th.zeros(64)
    assert approx_kl(log_ratio).item() == approx_kl_k1(log_ratio).item() == 0.0
    assert clip_fraction(log_ratio.exp(), 0.2).item() == 0.0


@pytest.mark.parametrize("clip_range, expected", [(0.05, 1.0), (0.2, 2 / 3), (0.45, 1 / 3), (0.6, 0.0)])
def test_clip_fraction_counts_the_samples_beyond_either_side(clip_range: float, expected: float) -> None:
    assert clip_fraction(ANNOTATED_RATIO, clip_range).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    "predictions, targets, expected",
    [
        pytest.param([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 1.0, id="perfect"),
        pytest.param([6.0, 7.0, 8.0], [1.0, 2.0, 3.0], 1.0, id="off by a constant is perfect too"),
        pytest.param([5.0, 5.0, 5.0], [1.0, 2.0, 3.0], 0.0, id="a constant explains nothing"),
        pytest.param([3.0, 2.0, 1.0], [1.0, 2.0, 3.0], -3.0, id="worse than nothing"),
    ],
)
def test_explained_variance_of_plain_cases(predictions: list[float], targets: list[float], expected: float) -> None:
    assert explained_variance(np.array(predictions), np.array(targets)) == expected


def test_explained_variance_of_targets_that_do_not_vary_is_nan() -> None:
    assert math.isnan(explained_variance(np.array([1.0, 2.0]), np.array([4.0, 4.0])))


@given(numbers, numbers)
def test_explained_variance_equals_stable_baselines3_bit_for_bit(
    predictions: npt.NDArray[Any], targets: npt.NDArray[Any]
) -> None:
    ours, stocks = explained_variance(predictions, targets), stock_explained_variance(predictions, targets)
    np.testing.assert_array_equal(ours, stocks)


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((3, 1), (3,)), ((3,), (3, 1)), ((3, 2), (3, 2)), ((), ())])
def test_explained_variance_refuses_shapes_that_disagree(shapes: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match=r"predictions .* and targets .* must share one shape"):
        explained_variance(np.zeros(shapes[0]), np.zeros(shapes[1]))


@pytest.mark.parametrize(
    "actor_norm, critic_norm, factor, effective",
    [
        pytest.param(0.13, 50.0, 0.01, 3e-6, id="raw rewards"),
        pytest.param(0.10, 1.0, 0.50, 1.5e-4, id="normalised rewards"),
    ],
)
def test_critic_eats_the_gradient_budget_of_the_actor(
    actor_norm: float, critic_norm: float, factor: float, effective: float
) -> None:
    alone = gradient_budget(critic_norm, max_grad_norm=0.5, learning_rate=3e-4)
    assert alone.clip_factor == pytest.approx(factor)
    assert alone.effective_learning_rate == pytest.approx(effective)
    # The actor's own share of the joint norm hardly matters.
    jointly = gradient_budget(math.hypot(actor_norm, critic_norm), max_grad_norm=0.5, learning_rate=3e-4)
    assert jointly.clip_factor == pytest.approx(factor, rel=0.006)
    assert jointly.effective_learning_rate == pytest.approx(effective, rel=0.006)


@given(tensors(6), st.floats(0.01, 20))
def test_gradient_budget_is_what_torch_leaves_of_a_gradient(gradient: th.Tensor, max_grad_norm: float) -> None:
    parameter = th.nn.Parameter(th.zeros(6, dtype=th.float64))
    parameter.grad = gradient.clone()
    norm = th.nn.utils.clip_grad_norm_([parameter], max_grad_norm).item()
    factor, effective = gradient_budget(norm, max_grad_norm, learning_rate=2.0)
    assert 0 < factor <= 1
    assert effective == 2 * factor
    # torch divides by the norm plus 10⁻⁶, which matters only for the smallest of norms.
    np.testing.assert_allclose(parameter.grad, factor * gradient, rtol=2e-4)
