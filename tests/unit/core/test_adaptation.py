"""Claims about the coefficients that follow the divergence: worked numbers on both sides of every threshold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3_ppo_from_scratch.core.adaptation import (
    KL_COEF_BOUNDS,
    LEARNING_RATE_BOUNDS,
    adapted_kl_coef,
    adapted_learning_rate,
    scaled_learning_rate,
)

kls = st.floats(0, 10)


@pytest.mark.parametrize(
    "kl, expected",
    [
        pytest.param(0.0, 1.5, id="far below: halved"),
        pytest.param(0.0199, 1.5, id="just below two thirds of the target: halved"),
        pytest.param(0.0201, 3.0, id="just above: kept"),
        pytest.param(0.03, 3.0, id="on target: kept"),
        pytest.param(0.0449, 3.0, id="just below one and a half times the target: kept"),
        pytest.param(0.0451, 6.0, id="just above: doubled"),
        pytest.param(math.inf, 6.0, id="diverged: doubled"),
        pytest.param(math.nan, 3.0, id="unknown: kept"),
    ],
)
def test_the_penalty_halves_and_doubles_as_the_paper_says(kl: float, expected: float) -> None:
    assert adapted_kl_coef(3.0, kl, kl_target=0.03) == expected


@pytest.mark.parametrize(
    "kl, expected",
    [
        pytest.param(0.0, 3e-4, id="nothing measured: kept"),
        pytest.param(1e-9, 4.5e-4, id="far below: faster"),
        pytest.param(0.0049, 4.5e-4, id="just below half: faster"),
        pytest.param(0.0051, 3e-4, id="just above half: kept"),
        pytest.param(0.0199, 3e-4, id="just below twice: kept"),
        pytest.param(0.0201, 2e-4, id="just above twice: slower"),
        pytest.param(math.nan, 3e-4, id="unknown: kept"),
    ],
)
def test_the_rate_moves_by_half_as_rsl_rl_says(kl: float, expected: float) -> None:
    assert adapted_learning_rate(3e-4, kl, desired_kl=0.01) == pytest.approx(expected)


def test_both_stay_within_their_bounds_and_come_back() -> None:
    kl_coef, rate = 1.0, 3e-4
    for _ in range(100):
        kl_coef, rate = adapted_kl_coef(kl_coef, 0.0, 0.01), adapted_learning_rate(rate, 1.0, 0.01)
    assert (kl_coef, rate) == (KL_COEF_BOUNDS[0], LEARNING_RATE_BOUNDS[0])
    for _ in range(100):
        kl_coef, rate = adapted_kl_coef(kl_coef, 1.0, 0.01), adapted_learning_rate(rate, 1e-6, 0.01)
    assert (kl_coef, rate) == (KL_COEF_BOUNDS[1], LEARNING_RATE_BOUNDS[1])


@pytest.mark.parametrize(
    "rate, factor, expected",
    [(3e-4, 2.0, 6e-4), (3e-4, 1e3, 1e-2), (3e-4, 1e-3, 1e-5), (0.5, 2.0, 0.5), (1e-7, 0.1, 1e-7), (0.0, 9.0, 0.0)],
)
def test_a_factor_leads_beyond_no_bound_that_the_rate_itself_keeps(rate: float, factor: float, expected: float) -> None:
    assert scaled_learning_rate(rate, factor) == pytest.approx(expected)


@given(st.sampled_from([1e-7, 1e-5, 3e-4, 1e-2, 0.5]), kls)
def test_the_rate_is_never_pushed_against_the_rule(rate: float, kl: float) -> None:
    adapted = adapted_learning_rate(rate, kl, 0.01)
    assert adapted <= rate if kl > 0.02 else adapted >= rate
