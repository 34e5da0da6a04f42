"""Bias and variance of generalized advantage estimation: a chain solved by hand, the closed form against samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.gae.command import claims
from benchmarks.experiments.gae.experiment import (
    BATCHES,
    CRITICS,
    POLICIES,
    best_lambda,
    centred_error,
    measurements,
    over_draws,
)
from benchmarks.experiments.gae.moments import exact_moments, first_estimates, sampled_episodes
from benchmarks.experiments.markov import (
    MarkovDecisionProcess,
    action_advantages,
    greedy_actions,
    gridworld,
    state_values,
)

GAMMA = 0.5


def a_chain() -> MarkovDecisionProcess:
    """From state 0, action 0 leads to state 1 and pays 1, action 1 ends with nothing; state 1 ends with 2."""
    transitions = np.zeros((3, 2, 3))
    rewards = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    transitions[1, :, 2] = transitions[2, :, 2] = 1.0
    rewards[0, 0, 1], rewards[1, :, 2] = 1.0, 2.0
    return MarkovDecisionProcess(transitions, rewards, np.array([False, False, True]), start=0)


EVENLY = np.full((3, 2), 0.5)


def test_values_and_advantages_of_the_chain() -> None:
    values = state_values(a_chain(), EVENLY, GAMMA)
    assert values == pytest.approx([0.5 * (1 + 0.5 * 2), 2.0, 0.0])
    assert action_advantages(a_chain(), values, GAMMA)[0] == pytest.approx([1.0, -1.0])
    assert greedy_actions(a_chain(), GAMMA)[0] == 0


@pytest.mark.parametrize(
    "critic,gae_lambda,estimates",
    [
        ([1.0, 2.0, 0.0], 0.0, [1.0, -1.0]),  # exact
        ([0.0, 0.0, 0.0], 0.0, [1.0, 0.0]),  # one reward
        ([0.0, 0.0, 0.0], 1.0, [2.0, 0.0]),  # the return 1 + 0.5 × 2
        ([0.0, 0.0, 0.0], 0.5, [1.5, 0.0]),  # 1 + 0.25 × 2
        ([3.0, 4.0, 9.0], 1.0, [-1.0, -3.0]),  # the return − 3; what the critic says of the end does not count
    ],
)
def test_moments_of_the_chain(critic: list[float], gae_lambda: float, estimates: list[float]) -> None:
    moments = exact_moments(a_chain(), EVENLY, np.array(critic), GAMMA, gae_lambda)
    assert moments.mean[0] == pytest.approx(estimates)
    assert moments.second[0] == pytest.approx(np.square(estimates)), "nothing is random once the action is chosen"


def test_a_variance_computed_by_hand() -> None:
    """A step that pays 1 and ends, or pays 0 and goes on, evenly: Â = 1 or Â', so E[Â²] = ½ + ½ γ² E[Â²]."""
    process = MarkovDecisionProcess(
        transitions=np.array([[[0.5, 0.5]], [[0.0, 1.0]]]),
        rewards=np.array([[[0.0, 1.0]], [[0.0, 0.0]]]),
        terminal=np.array([False, True]),
        start=0,
    )
    moments = exact_moments(process, np.ones((2, 1)), np.zeros(2), GAMMA, 1.0)
    assert moments.mean[0, 0] == pytest.approx(0.5 / (1 - 0.5 * GAMMA))
    assert moments.second[0, 0] == pytest.approx(0.5 / (1 - 0.5 * GAMMA**2))


def test_no_bias_at_lambda_one_whatever_the_critic_says() -> None:
    process = gridworld()
    policy = np.full((16, 4), 0.25)
    values = state_values(process, policy, 0.95)
    advantages = action_advantages(process, values, 0.95)
    critic = np.random.default_rng(0).normal(size=16)
    for state in np.flatnonzero(~process.terminal):
        mean = exact_moments(process, policy, critic, 0.95, 1.0).mean[state]
        assert centred_error(mean, advantages[state], policy[state]) == pytest.approx(0.0, abs=1e-12)
        assert (
            centred_error(
                exact_moments(process, policy, critic, 0.95, 0.5).mean[state], advantages[state], policy[state]
            )
            > 1e-3
        )


def test_centred_error_leaves_a_baseline_out() -> None:
    weights = np.array([0.5, 0.25, 0.25])
    truth = np.array([1.0, 2.0, 3.0])
    assert centred_error(truth + 7.0, truth, weights) == pytest.approx(0.0)
    assert centred_error(truth + np.array([0.0, 0.0, 4.0]), truth, weights) == pytest.approx(
        np.sqrt(0.75 * 1 + 0.25 * 9)
    )


def test_a_gridworld_that_slips() -> None:
    process = gridworld(size=4, slip=0.2)
    assert process.transitions.sum(axis=2) == pytest.approx(np.ones((16, 4)))
    up, right = process.transitions[0, 0], process.transitions[0, 1]
    assert up[0] == pytest.approx(0.8 + 2 * 0.05), "walls above and to the left"
    assert right[1] == pytest.approx(0.85)
    assert np.flatnonzero(process.terminal).tolist() == [10, 15]
    assert process.rewards[11, 2, 15] == pytest.approx(0.99)
    assert process.rewards[9, 1, 10] == pytest.approx(-1.01)


def test_samples_agree_with_the_closed_form() -> None:
    table = measurements(n_episodes=4_000, seed=1).dropna()
    assert table["critic"].unique().tolist() == list(CRITICS[:2])
    standard_errors = np.sqrt(table["variance"] / table["episodes"])
    assert (np.abs(table["sampled_mean"] - table["mean"]) < 4 * standard_errors).all()
    assert table["sampled_variance"].to_numpy() == pytest.approx(table["variance"].to_numpy(), rel=0.3)
    exact = table[table["critic"] == CRITICS[0]]
    for _, rows in exact.groupby("policy"):
        assert (np.diff(rows["variance"]) > 0).all(), "an exact critic only loses by a longer look"


def test_episodes_stay_where_they_ended() -> None:
    process = gridworld()
    episodes = sampled_episodes(process, np.full((16, 4), 0.25), 20, np.random.default_rng(0))
    assert (episodes.states[0] == process.start).all()
    assert (episodes.rewards[episodes.ended] == 0).all()
    assert (episodes.ended == process.terminal[episodes.states]).all()
    returns = (episodes.rewards * 0.9 ** np.arange(len(episodes.rewards))[:, None]).sum(axis=0)
    critic = np.arange(16.0) + 3.0
    assert first_estimates(process, episodes, critic, 0.9, 1.0) == pytest.approx(returns - critic[process.start])


def test_the_best_lambda_weighs_bias_against_noise() -> None:
    rows = pd.DataFrame(
        {"lambda": [0.0, 0.5, 1.0], "bias": [3.0, 1.0, 0.0], "variance_given_action": [0.0, 10.0, 40.0]}
    )
    # 9, 1 + 10 / N, 40 / N
    assert [best_lambda(rows, batch) for batch in (1, 2, 10, 100)] == [0.0, 0.5, 0.5, 1.0]


def a_table(change: Callable[[pd.DataFrame], object] = lambda table: None) -> pd.DataFrame:
    table = over_draws(measurements(n_episodes=10, seed=0))
    change(table)
    return table


def test_claims_follow_the_numbers() -> None:
    def spoil(table: pd.DataFrame) -> None:
        table.loc[table["policy"] == POLICIES[1], "bias"] = 0.5
        table.loc[table["lambda"] == 1.0, "variance"] = 1e9

    assert [claim.holds for claim in claims(a_table())[:4]] == [True, False, True, True]
    spoiled = claims(a_table(spoil))
    assert [claim.holds for claim in spoiled[:4]] == [False, False, False, True]
    assert "half greedy policy: at most 0.5" in spoiled[0].found


@pytest.mark.parametrize(
    "scaled, noisy, inside, towards_one",
    [
        ([0.0, 0.1, 0.5, 0.5, 1.0], [0.1, 0.2, 0.9, 1.0, 1.0], False, True),
        ([0.1, 0.1, 0.5, 0.5, 1.0], [0.1, 0.2, 0.9, 0.9, 1.0], True, True),
        ([0.1, 0.1, 0.5, 0.5, 0.9], [0.1, 0.2, 0.9, 0.4, 0.9], True, False),
    ],
)
def test_verdicts_on_the_best_lambda(
    scaled: list[float], noisy: list[float], inside: bool, towards_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = dict(zip(CRITICS, ([0.0] * 5, scaled, noisy), strict=True))
    monkeypatch.setattr(
        "benchmarks.experiments.gae.command.best_lambda",
        lambda rows, batch: best[rows["critic"].iloc[0]][BATCHES.index(batch)],
    )
    judged = claims(a_table())[5:]
    assert [claim.holds for claim in judged] == [inside, towards_one]
    assert f"{' / '.join(f'{one:g}' for one in scaled)} for 0.7 V" in judged[0].found
