"""Claims about what the families sample: frequencies, moments, independence, and where the numbers come from."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from sb3_ppo_from_scratch.core.families import ActionFamily, Bernoulli, Categorical, Head, MultiCategorical
from sb3_ppo_from_scratch.core.gaussians import DiagonalGaussian, StateDependentGaussian

N_SAMPLES = 40_000
# Seeds are fixed: a test that passes once passes always, and a true sampler fails none of them but by bad luck.
LEAST_P = 1e-3
LOGITS = np.array([1.0, -0.5, 0.0, 2.0, -3.0], np.float32)


def rows(outputs: Any, n_rows: int = N_SAMPLES) -> Any:
    return np.tile(np.asarray(outputs, np.float32), (n_rows, 1))


def counts(actions: Any, sizes: tuple[int, ...]) -> Any:
    """How often each whole action occurred, in the order of ``itertools.product``."""
    numbers = np.ravel_multi_index(tuple(actions.astype(int).T), sizes)
    return np.bincount(numbers, minlength=int(np.prod(sizes)))


def test_a_categorical_is_sampled_as_often_as_its_probabilities_say() -> None:
    actions = Categorical().sample(Head(rows(LOGITS)), np.random.default_rng(0))
    assert actions.shape == (N_SAMPLES, 1)
    expected = special.softmax(LOGITS.astype(np.float64)) * N_SAMPLES
    assert stats.chisquare(counts(actions, (5,)), expected).pvalue > LEAST_P


def test_every_row_follows_its_own_parameters() -> None:
    outputs = np.concatenate([rows(LOGITS, N_SAMPLES // 2), rows(-LOGITS, N_SAMPLES // 2)])
    actions = Categorical().sample(Head(outputs), np.random.default_rng(1))
    for half, logits in zip(np.split(actions, 2), (LOGITS, -LOGITS), strict=True):
        expected = special.softmax(logits.astype(np.float64)) * len(half)
        assert stats.chisquare(counts(half, (5,)), expected).pvalue > LEAST_P


def test_rare_choices_are_as_rare_as_they_should_be() -> None:
    """One in ten thousand: the noise must reach far enough into its tail."""
    probability = 1e-4
    logits = rows(np.log([1 - probability, probability]), 400_000)
    n_rare = int(Categorical().sample(Head(logits), np.random.default_rng(2)).sum())
    assert stats.binomtest(n_rare, len(logits), probability).pvalue > LEAST_P


def test_dimensions_of_a_multi_categorical_are_independent() -> None:
    nvec = (2, 3)
    actions = MultiCategorical(nvec).sample(Head(rows(LOGITS)), np.random.default_rng(3))
    first, second = (special.softmax(part.astype(np.float64)) for part in (LOGITS[:2], LOGITS[2:]))
    expected = np.array([first[a] * second[b] for a, b in itertools.product(range(2), range(3))]) * N_SAMPLES
    assert stats.chisquare(counts(actions, nvec), expected).pvalue > LEAST_P


def test_bits_of_a_bernoulli_are_independent() -> None:
    logits = LOGITS[:3]
    actions = Bernoulli().sample(Head(rows(logits)), np.random.default_rng(4))
    probs = special.expit(logits.astype(np.float64))
    expected = [
        np.prod([p if bit else 1 - p for p, bit in zip(probs, bits, strict=True)]) * N_SAMPLES
        for bits in itertools.product(range(2), repeat=3)
    ]
    assert stats.chisquare(counts(actions, (2, 2, 2)), expected).pvalue > LEAST_P


def test_a_gaussian_has_its_mean_its_deviation_its_shape_and_no_correlation() -> None:
    mean, log_std = np.array([0.5, -3.0], np.float32), np.array([-1.0, 1.5], np.float32)
    actions = DiagonalGaussian().sample(Head(rows(mean), log_std), np.random.default_rng(5))
    assert actions.dtype == np.float32
    standardised = (actions - mean) / np.exp(log_std)
    for column in standardised.T:
        assert stats.kstest(column, "norm").pvalue > LEAST_P
        # Neighbouring rows are neighbouring environments.
        assert stats.pearsonr(column[:-1], column[1:]).pvalue > LEAST_P
    assert stats.pearsonr(*standardised.T).pvalue > LEAST_P


def test_the_noise_of_a_state_dependent_gaussian_is_its_matrix_times_the_features_of_its_row() -> None:
    head = Head(
        np.array([[1.0], [1.0]]),
        latent=np.array([[2.0, 3.0], [2.0, 3.0]]),
        exploration=np.array([[[1.0], [10.0]], [[100.0], [1000.0]]]),
    )
    actions = StateDependentGaussian(1e-6).sample(head, np.random.default_rng(6))
    assert actions.tolist() == [[1 + 2 * 1 + 3 * 10], [1 + 2 * 100 + 3 * 1000]]


FAMILIES: dict[str, tuple[ActionFamily, int]] = {
    "categorical": (Categorical(), 5),
    "multi_categorical": (MultiCategorical((2, 3)), 5),
    "bernoulli": (Bernoulli(), 5),
    "gaussian": (DiagonalGaussian(), 5),
}


@pytest.mark.parametrize("family, n_outputs", FAMILIES.values(), ids=FAMILIES)
def test_samples_depend_on_the_generator_alone(family: ActionFamily, n_outputs: int) -> None:
    head = Head(rows(LOGITS, 16), np.zeros(n_outputs, np.float32))

    def sampled(seed: int) -> Any:
        return family.sample(head, np.random.default_rng(seed))

    first = sampled(7)
    np.random.rand(3)
    np.testing.assert_array_equal(sampled(7), first)
    assert not np.array_equal(sampled(8), first)


@pytest.mark.parametrize("size", [50.0, 1e4, 1e30])
def test_a_choice_without_a_chance_is_never_sampled(size: float) -> None:
    generator = np.random.default_rng(0)
    logits = rows([-size, size, 0.0], 1000)
    assert (Categorical().sample(Head(logits), generator) == 1).all()
    bits = Bernoulli().sample(Head(logits), generator)
    assert (bits[:, 0] == 0).all()
    assert (bits[:, 1] == 1).all()
    assert 0 < bits[:, 2].mean() < 1
