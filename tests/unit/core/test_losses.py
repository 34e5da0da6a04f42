"""Claims about all losses but the clip's and the critic's: worked numbers, how each term is averaged and signed."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from hypothesis import given
from hypothesis import strategies as st

from sb3_ppo_from_scratch.core import losses, value_losses
from sb3_ppo_from_scratch.core.diagnostics import approx_kl
from sb3_ppo_from_scratch.core.distributions import categorical_entropy, categorical_kl, categorical_log_prob
from sb3_ppo_from_scratch.core.records import AdvantageStatistics
from tests.strategies import tensors

# The annotated batch: three samples of a bandit with actions A, B, C = 0, 1, 2 and the policies before and after.
ACTIONS = th.tensor([2, 0, 1])
ADVANTAGES = th.tensor([1.0, -1.0, 0.5])
UNIFORM = th.zeros(3, 3)
CANDIDATE = th.tensor([0.2, 0.3, 0.5]).log().expand(3, 3)
RATIO = (categorical_log_prob(CANDIDATE, ACTIONS) - categorical_log_prob(UNIFORM, ACTIONS)).exp()


def number(value: float) -> th.Tensor:
    return th.tensor([value], dtype=th.float64)


def test_policy_gradient_of_the_annotated_batch() -> None:
    logits = th.zeros(3, requires_grad=True)
    loss = losses.policy_gradient_loss(categorical_log_prob(logits.expand(3, 3), ACTIONS), ADVANTAGES)
    loss.backward()
    assert -loss.item() == pytest.approx(-0.183, abs=5e-4)
    assert logits.grad is not None
    # The loss descends where the objective climbs.
    assert (-logits.grad).tolist() == pytest.approx([-0.389, 0.111, 0.278], abs=5e-4)


def test_surrogate_of_the_annotated_step() -> None:
    assert -losses.surrogate_loss(RATIO, ADVANTAGES).item() == pytest.approx(0.45)


def test_surrogate_and_policy_gradient_have_the_same_slope_where_the_data_were_collected() -> None:
    slopes = []
    for loss_of in (losses.surrogate_loss, losses.policy_gradient_loss):
        log_prob = th.tensor([-0.5, -1.0, -2.0], requires_grad=True)
        old = log_prob.detach()
        loss = loss_of((log_prob - old).exp() if loss_of is losses.surrogate_loss else log_prob, ADVANTAGES)
        slopes.append(th.autograd.grad(loss, log_prob)[0])
    th.testing.assert_close(*slopes)


@pytest.mark.parametrize("kl_coef, expected", [(0.0, 0.450), (1.0, 0.380), (2.0, 0.310)])
def test_penalised_surrogate_of_the_annotated_step(kl_coef: float, expected: float) -> None:
    kl = categorical_kl(UNIFORM, CANDIDATE).mean()
    loss = losses.kl_penalised_surrogate_loss(RATIO, ADVANTAGES, kl, kl_coef)
    assert -loss.item() == pytest.approx(expected, abs=5e-4)


def test_slope_of_the_penalised_surrogate_in_worked_numbers() -> None:
    ratio, advantages = th.tensor([1.0, 1.5, 0.5]), th.tensor([2.0, 2.0, -1.0])
    # r·Â − β·(r − 1) with β = 2.
    assert losses.kl_penalised_surrogate_slope(ratio, advantages, 2.0).tolist() == [2.0, 2.0, 0.5]


@given(tensors(5, low=-2, high=2), tensors(5), st.sampled_from([0.0, 0.3, 3.0]))
def test_slope_of_the_penalised_surrogate_is_what_automatic_differentiation_gives(
    log_ratio: th.Tensor, advantages: th.Tensor, kl_coef: float
) -> None:
    log_ratio.requires_grad_()
    ratio = log_ratio.exp()
    loss = losses.kl_penalised_surrogate_loss(ratio, advantages, approx_kl(log_ratio, ratio), kl_coef)
    slope = losses.kl_penalised_surrogate_slope(ratio.detach(), advantages, kl_coef)
    th.testing.assert_close(-slope / 5, th.autograd.grad(loss, log_ratio)[0], rtol=1e-10, atol=1e-12)


@given(tensors(5, low=-2, high=2), tensors(5))
def test_without_a_penalty_the_slope_is_that_of_the_bare_surrogate(log_ratio: th.Tensor, advantages: th.Tensor) -> None:
    log_ratio.requires_grad_()
    loss = losses.surrogate_loss(log_ratio.exp(), advantages)
    slope = losses.kl_penalised_surrogate_slope(log_ratio.detach().exp(), advantages, 0.0)
    th.testing.assert_close(-slope / 5, th.autograd.grad(loss, log_ratio)[0], rtol=1e-12, atol=1e-15)


def test_whitening_by_the_rollout_takes_its_statistics_and_no_others() -> None:
    advantages = th.tensor([1.0, 2.0, 6.0], dtype=th.float64)
    whitened = losses.standardized_advantages(advantages, AdvantageStatistics(mean=2.0, std=4.0))
    assert whitened.tolist() == pytest.approx([-0.25, 0.0, 1.0])


def test_full_objective_of_the_annotated_sample() -> None:
    policy_loss = losses.clipped_surrogate_loss(RATIO[:1], ADVANTAGES[:1], clip_range=0.2)
    value_loss = value_losses.value_loss(number(0.5), number(0.0), number(0.81), None)
    entropy_loss = losses.entropy_loss(categorical_entropy(CANDIDATE[:1]), th.zeros(1))
    assert -policy_loss.item() == pytest.approx(1.2)
    assert value_loss.item() == pytest.approx(0.0961)
    assert -entropy_loss.item() == pytest.approx(1.030, abs=5e-4)
    total = losses.total_loss(policy_loss, value_loss, entropy_loss, vf_coef=1.0, ent_coef=0.01)
    assert -total.item() == pytest.approx(1.114, abs=5e-4)


@given(tensors(4), st.floats(0, 2), st.floats(0, 2))
def test_total_loss_weighs_each_term_by_its_own_coefficient(terms: th.Tensor, vf_coef: float, ent_coef: float) -> None:
    policy, value, entropy, _ = terms.requires_grad_()
    gradient = th.autograd.grad(losses.total_loss(policy, value, entropy, vf_coef, ent_coef), terms)[0]
    assert gradient.tolist() == [1.0, vf_coef, ent_coef, 0.0]


def test_entropy_loss_falls_as_entropy_rises() -> None:
    assert losses.entropy_loss(th.tensor([1.0, 3.0]), th.full((2,), th.nan)).item() == -2.0


def test_entropy_without_closed_form_is_estimated_from_the_samples() -> None:
    assert losses.entropy_loss(None, th.tensor([-1.0, -4.0])).item() == -2.5


@given(tensors(7))
def test_normalized_advantages_have_mean_zero_and_unbiased_deviation_one(advantages: th.Tensor) -> None:
    normalized = losses.normalized_advantages(advantages)
    assert normalized.mean().item() == pytest.approx(0.0, abs=1e-6)
    if advantages.std() > 1e-3:
        assert np.std(normalized.numpy(), ddof=1) == pytest.approx(1.0, abs=1e-4)
        # Rounding may make two neighbours equal, but never swaps them.
        assert (normalized[advantages.argsort()].diff() >= 0).all()


def test_two_advantages_normalise_to_the_unbiased_deviation() -> None:
    # The biased deviation would give (−1, 1).
    assert losses.normalized_advantages(th.tensor([3.0, 5.0])).tolist() == pytest.approx([-(0.5**0.5), 0.5**0.5])


def test_equal_advantages_normalise_to_zero() -> None:
    assert losses.normalized_advantages(th.full((4,), 7.0)).tolist() == [0.0] * 4


def test_a_single_advantage_is_returned_unchanged() -> None:
    assert losses.normalized_advantages(th.tensor([-3.9])).item() == pytest.approx(-3.9)
