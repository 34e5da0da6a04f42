"""Claims about the action families: worked numbers, sums over every action, SB3's and torch's own classes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch as th
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.distributions import (
    BernoulliDistribution,
    CategoricalDistribution,
    DiagGaussianDistribution,
    MultiCategoricalDistribution,
    SquashedDiagGaussianDistribution,
    StateDependentNoiseDistribution,
)
from torch.distributions import Categorical, kl_divergence

from sb3_ppo_from_scratch.core import distributions as d
from tests.strategies import tensors, whole_tensors

B, N_CHOICES, NVEC, N_BITS, N_DIMENSIONS, N_FEATURES = 5, 4, (2, 3), 3, 2, 3
UNIFORM = th.zeros(1, 3, dtype=th.float64)
CANDIDATE = th.tensor([[0.2, 0.3, 0.5]], dtype=th.float64).log()


def assert_same(actual: th.Tensor, expected: th.Tensor | None, tolerance: float = 1e-10) -> None:
    assert expected is not None
    th.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def test_entropy_of_the_candidate_policy() -> None:
    assert d.categorical_entropy(CANDIDATE).item() == pytest.approx(1.030, abs=5e-4)


def test_kl_from_the_uniform_to_the_candidate_policy() -> None:
    assert d.categorical_kl(UNIFORM, CANDIDATE).item() == pytest.approx(0.070, abs=5e-4)


def test_uniform_policy_gives_each_of_three_actions_a_third() -> None:
    log_prob = d.categorical_log_prob(UNIFORM.expand(3, 3), th.arange(3))
    assert log_prob.tolist() == pytest.approx([-1.0986] * 3, abs=5e-5)


def test_ratios_of_the_candidate_to_the_uniform_policy() -> None:
    actions = th.arange(3)
    log_ratio = d.categorical_log_prob(CANDIDATE.expand(3, 3), actions) - d.categorical_log_prob(
        UNIFORM.expand(3, 3), actions
    )
    assert log_ratio.exp().tolist() == pytest.approx([0.6, 0.9, 1.5])


@given(tensors(1, 3))
def test_baseline_identity_expected_score_is_zero(logits: th.Tensor) -> None:
    logits.requires_grad_()
    log_prob = d.categorical_log_prob(logits.expand(3, 3), th.arange(3))
    # Σ_a π(a)·∇log π(a), the probabilities held constant: what any baseline is multiplied by.
    (log_prob.exp().detach() * log_prob).sum().backward()
    assert logits.grad is not None
    assert_same(logits.grad, th.zeros(1, 3, dtype=th.float64), 1e-12)


@given(tensors(1, 3), st.integers(0, 2))
def test_score_of_a_softmax_policy_is_the_chosen_action_minus_the_probabilities(logits: th.Tensor, action: int) -> None:
    logits.requires_grad_()
    d.categorical_log_prob(logits, th.tensor([action])).sum().backward()
    assert logits.grad is not None
    expected = th.eye(3, dtype=th.float64)[action] - th.softmax(logits.detach(), dim=-1)[0]
    assert_same(logits.grad[0], expected)


def every_action(*sizes: int) -> th.Tensor:
    return th.tensor(list(itertools.product(*map(range, sizes))))


@given(tensors(1, 6))
def test_every_discrete_family_sums_to_one_and_has_the_entropy_of_its_sum(logits: th.Tensor) -> None:
    """Neither claim knows the formulas: all actions are enumerated."""
    families: list[tuple[Any, Any, th.Tensor]] = [
        (d.categorical_log_prob, d.categorical_entropy, th.arange(6)),
        (
            lambda z, a: d.multi_categorical_log_prob(z, a, (2, 4)),
            lambda z: d.multi_categorical_entropy(z, (2, 4)),
            every_action(2, 4),
        ),
        (d.bernoulli_log_prob, d.bernoulli_entropy, every_action(*[2] * 6)),
    ]
    for log_prob_of, entropy_of, actions in families:
        log_prob = log_prob_of(logits.expand(len(actions), 6), actions)
        assert log_prob.exp().sum().item() == pytest.approx(1.0, abs=1e-12)
        assert entropy_of(logits).item() == pytest.approx(-(log_prob.exp() * log_prob).sum().item(), abs=1e-12)


@given(tensors(B, N_CHOICES), whole_tensors(B, high=N_CHOICES - 1))
def test_categorical_is_stable_baselines3s(logits: th.Tensor, actions: th.Tensor) -> None:
    stock = CategoricalDistribution(N_CHOICES).proba_distribution(logits)
    assert_same(d.categorical_log_prob(logits, actions), stock.log_prob(actions))
    # Buffers store actions as floats.
    assert_same(d.categorical_log_prob(logits, actions.float()), stock.log_prob(actions))
    assert_same(d.categorical_entropy(logits), stock.entropy())


@given(tensors(B, sum(NVEC)), whole_tensors(B, len(NVEC), high=min(NVEC) - 1))
def test_multi_categorical_is_stable_baselines3s(logits: th.Tensor, actions: th.Tensor) -> None:
    stock = MultiCategoricalDistribution(list(NVEC)).proba_distribution(logits)
    assert_same(d.multi_categorical_log_prob(logits, actions, NVEC), stock.log_prob(actions))
    assert_same(d.multi_categorical_entropy(logits, NVEC), stock.entropy())


@given(tensors(B, N_BITS), whole_tensors(B, N_BITS, high=1))
def test_bernoulli_is_stable_baselines3s(logits: th.Tensor, actions: th.Tensor) -> None:
    stock = BernoulliDistribution(N_BITS).proba_distribution(logits)
    assert_same(d.bernoulli_log_prob(logits, actions), stock.log_prob(actions.double()))
    assert_same(d.bernoulli_entropy(logits), stock.entropy())


@given(tensors(B, N_DIMENSIONS), tensors(N_DIMENSIONS, low=-3, high=2), tensors(B, N_DIMENSIONS))
def test_gaussian_is_stable_baselines3s(mean: th.Tensor, log_std: th.Tensor, actions: th.Tensor) -> None:
    stock = DiagGaussianDistribution(N_DIMENSIONS).proba_distribution(mean, log_std)
    assert_same(d.gaussian_log_prob(mean, log_std, actions), stock.log_prob(actions))
    assert_same(d.gaussian_entropy(log_std.expand_as(mean)), stock.entropy())


@given(tensors(B, N_DIMENSIONS), tensors(N_DIMENSIONS, low=-3, high=2), tensors(B, N_DIMENSIONS, low=-1, high=1))
def test_squashed_gaussian_is_stable_baselines3s(mean: th.Tensor, log_std: th.Tensor, actions: th.Tensor) -> None:
    stock = SquashedDiagGaussianDistribution(N_DIMENSIONS).proba_distribution(mean, log_std)
    assert_same(d.squashed_gaussian_log_prob(mean, log_std, actions), stock.log_prob(actions), 1e-8)


@given(
    tensors(B, N_DIMENSIONS),
    tensors(N_FEATURES, N_DIMENSIONS, low=-3, high=1),
    tensors(B, N_FEATURES),
    tensors(B, N_DIMENSIONS),
)
def test_state_dependent_exploration_is_stable_baselines3s(
    mean: th.Tensor, log_std: th.Tensor, latent: th.Tensor, actions: th.Tensor
) -> None:
    stock = StateDependentNoiseDistribution(N_DIMENSIONS).proba_distribution(mean, log_std, latent)
    action_log_std = d.state_dependent_log_std(latent, log_std)
    assert_same(action_log_std.exp(), stock.distribution.stddev)
    assert_same(d.gaussian_log_prob(mean, action_log_std, actions), stock.log_prob(actions), 1e-9)
    assert_same(d.gaussian_entropy(action_log_std), stock.entropy())


@given(
    tensors(B, N_DIMENSIONS),
    tensors(N_FEATURES, N_DIMENSIONS, low=-3, high=1),
    tensors(B, N_FEATURES),
    # Nearer to ±1 SB3's gSDE computes the Jacobian from an action that it has moved inside.
    tensors(B, N_DIMENSIONS, low=-1 + 2**-10, high=1 - 2**-10),
)
def test_squashed_state_dependent_exploration_is_stable_baselines3s(
    mean: th.Tensor, log_std: th.Tensor, latent: th.Tensor, actions: th.Tensor
) -> None:
    stock = StateDependentNoiseDistribution(N_DIMENSIONS, squash_output=True)
    stock.proba_distribution(mean, log_std, latent)
    log_prob = d.squashed_gaussian_log_prob(mean, d.state_dependent_log_std(latent, log_std), actions)
    assert_same(log_prob, stock.log_prob(actions), 1e-8)


@given(tensors(B, N_CHOICES), tensors(B, N_CHOICES))
def test_categorical_kl_is_torchs_and_zero_only_from_a_policy_to_itself(logits: th.Tensor, others: th.Tensor) -> None:
    kl = d.categorical_kl(logits, others)
    assert_same(kl, kl_divergence(Categorical(logits=logits), Categorical(logits=others)))
    assert (kl >= -1e-12).all()
    assert_same(d.categorical_kl(logits, logits), th.zeros(B, dtype=th.float64), 1e-15)


def test_squashed_density_integrates_to_one() -> None:
    actions = th.linspace(-1, 1, 200_001, dtype=th.float64)[1:-1, None]
    mean, log_std = th.tensor([[0.3]], dtype=th.float64), th.tensor([-0.5], dtype=th.float64)
    density = d.squashed_gaussian_log_prob(mean, log_std, actions).exp()
    # The 10⁻⁶ in the Jacobian costs a little mass at the edges.
    assert th.trapezoid(density, actions[:, 0]).item() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("edge", [-1.0, 1.0])
def test_squashed_log_prob_of_a_saturated_action_is_finite(edge: float) -> None:
    action = th.full((1, 1), edge, requires_grad=True)
    mean = th.zeros(1, 1, requires_grad=True)
    d.squashed_gaussian_log_prob(mean, th.zeros(1), action).sum().backward()
    assert mean.grad is not None
    assert th.isfinite(mean.grad).all()


def test_huge_logits_neither_overflow_nor_turn_to_nan() -> None:
    logits = th.tensor([[1e4, -1e4, 0.0]])
    assert d.categorical_log_prob(logits, th.tensor([1])).item() == pytest.approx(-2e4)
    assert d.categorical_entropy(logits).item() == 0.0
    assert d.bernoulli_log_prob(logits, th.tensor([[1, 0, 1]])).item() == pytest.approx(-math.log(2))
    assert d.bernoulli_entropy(logits).item() == pytest.approx(math.log(2))
