"""The variance of the policy gradient: weightings and statistics by hand, the equations against Gymnasium's."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
import torch as th

from benchmarks.experiments.baseline.cart_pole import (
    MAX_STEPS,
    Episode,
    next_states,
    policy_network,
    rewards_to_go,
    sampled_episodes,
)
from benchmarks.experiments.baseline.command import claims, measurements, picture, shown
from benchmarks.experiments.baseline.gradients import (
    CONSTANT,
    EPISODE_MEAN,
    RAW,
    STANDARDISED,
    WEIGHTINGS,
    episode_gradients,
    estimator,
    half_trained_policy,
    weightings,
)


def test_rewards_to_go() -> None:
    assert rewards_to_go(3, gamma=0.5) == pytest.approx([1.75, 1.5, 1.0])


def test_weightings() -> None:
    weights = weightings(np.array([1.0, 2.0, 6.0]), 2.5)
    assert weights[RAW] == pytest.approx([1.0, 2.0, 6.0])
    assert weights[CONSTANT] == pytest.approx([-1.5, -0.5, 3.5])
    assert weights[EPISODE_MEAN] == pytest.approx([-2.0, -1.0, 3.0])
    assert weights[STANDARDISED] == pytest.approx(np.array([-2.0, -1.0, 3.0]) / 7**0.5)
    assert weightings(np.array([1.0]), 0.0)[STANDARDISED] == pytest.approx([0.0])


def test_estimator() -> None:
    of_two = estimator(np.array([[1.0, 1.0], [3.0, 1.0]]))  # mean (2, 1), variances 2 and 0
    assert of_two == pytest.approx((2.0, 5**0.5, (5 / 2) ** 0.5, ((5 - 2 / 2) / 2) ** 0.5))
    assert estimator(np.array([[1.0], [-1.0]])).true_ratio == 0.0, "no more than noise leaves"


def test_noise_alone_has_a_ratio_but_no_true_one() -> None:
    noise = np.random.default_rng(0).normal(size=(400, 50))
    found = estimator(noise)
    assert found.ratio == pytest.approx(400**-0.5, rel=0.2)
    assert found.true_ratio < 0.6 * found.ratio


def test_gradients_are_those_of_the_weighted_log_probabilities() -> None:
    th.manual_seed(0)
    policy = policy_network()
    (episode,) = sampled_episodes(policy, 1, np.random.default_rng(0))
    found = episode_gradients(policy, [episode], baseline=4.0)
    for name, weights in weightings(rewards_to_go(len(episode.actions)), 4.0).items():
        policy.zero_grad()
        loss = th.zeros(())
        for state, action, weight in zip(episode.states, episode.actions, weights, strict=True):
            distribution = th.distributions.Categorical(logits=policy(th.as_tensor(state)))
            log_prob: th.Tensor = distribution.log_prob(th.as_tensor(action))  # type: ignore[no-untyped-call]
            loss = loss - log_prob * float(weight)
        loss.backward()  # type: ignore[no-untyped-call]
        expected = th.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])
        assert found[name][0] == pytest.approx(expected.numpy(), rel=1e-3, abs=1e-4)


def test_equations_are_gymnasiums() -> None:
    env = gym.make("CartPole-v1").unwrapped
    state, _ = env.reset(seed=3)
    for action in (1, 1, 0, 1, 0, 0):
        ours = next_states(np.asarray(state, dtype=np.float64)[None], np.array([action]))[0]
        state = env.step(action)[0]
        assert ours == pytest.approx(state, rel=1e-5, abs=1e-6)


def test_episodes_end_when_the_pole_falls() -> None:
    policy = policy_network()
    with th.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        list(policy.parameters())[-1].copy_(th.tensor([-50.0, 50.0]))  # always right
    episodes = sampled_episodes(policy, 3, np.random.default_rng(0))
    for episode in episodes:
        assert (episode.actions == 1).all()
        assert len(episode.states) == len(episode.actions) < 15
        ended = next_states(episode.states[-1:].astype(np.float64), episode.actions[-1:])[0]
        assert abs(ended[2]) > np.deg2rad(12)
        assert (np.abs(episode.states[:, 2]) <= np.deg2rad(12) + 1e-6).all()
    assert isinstance(episodes[0], Episode)


def test_a_policy_that_is_never_good_enough() -> None:
    with pytest.raises(RuntimeError, match="Seed 0: no 501 steps"):
        half_trained_policy(0, 501.0, _Hopeless())


class _Hopeless(np.random.Generator):
    """Starts every episode fallen over, so that the attempts are short."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def uniform(self, *_: object, size: tuple[int, int]) -> np.ndarray:  # type: ignore[override]
        return np.full(size, 1.0)


def test_measurements_are_reproducible() -> None:
    table = measurements([0], 4, 12.0)
    assert table["weighting"].tolist() == list(WEIGHTINGS)
    assert (table["mean_length"] <= MAX_STEPS).all()
    pd.testing.assert_frame_equal(table, measurements([0], 4, 12.0))
    assert shown(table)["policy"].tolist() == ["0"] * 4 + ["mean"] * 4
    assert shown(table)["mean length"].nunique() == 1
    assert len(picture(table).axes) == 2


def a_table(ratios: dict[str, float], variances: dict[str, float]) -> pd.DataFrame:
    rows = [
        {"seed": seed, "weighting": name, "variance": variances[name] * (1 + seed), "true_ratio": ratios[name]}
        for seed in (0, 1)
        for name in WEIGHTINGS
    ]
    return pd.DataFrame(rows)


def test_the_documents_numbers_hold() -> None:
    ratios = {RAW: 0.143, CONSTANT: 0.222, EPISODE_MEAN: 0.140, STANDARDISED: 0.148}
    variances = {RAW: 4397940.5, CONSTANT: 1080077.6, EPISODE_MEAN: 1043069.0, STANDARDISED: 1666.7}
    judged = claims(a_table(ratios, variances))
    assert [claim.holds for claim in judged] == [True] * 4
    assert "factor of 4.1" in judged[0].found
    assert judged[1].found.startswith("× 1.55 (")
    assert "by itself, it holds for 2 of 2 policies" in judged[1].found


def test_other_numbers_do_not() -> None:
    ratios = {RAW: 0.1, CONSTANT: 0.1, EPISODE_MEAN: 0.2, STANDARDISED: 0.2}
    variances = {RAW: 10.0, CONSTANT: 9.0, EPISODE_MEAN: 9.0, STANDARDISED: 1.0}
    assert [claim.holds for claim in claims(a_table(ratios, variances))] == [False] * 4


def test_a_claim_must_hold_for_most_policies_as_well() -> None:
    """Ratios raised sevenfold for one of three policies, not for the others: the geometric mean is 1.9."""
    ratios = dict.fromkeys(WEIGHTINGS, 0.1)
    table = pd.concat([a_table(ratios, dict.fromkeys(WEIGHTINGS, 10.0)).assign(seed=seed) for seed in (0, 1, 2)])
    table = table.drop_duplicates(["seed", "weighting"])
    table.loc[(table["seed"] == 2) & (table["weighting"] == CONSTANT), "true_ratio"] = 0.7
    raised = claims(table)[1]
    assert raised.holds is False
    assert raised.found == "× 1.91 (above 1.1 counts as raised); by itself, it holds for 1 of 3 policies."


def test_a_half_trained_policy_lasts_as_long_as_asked_for() -> None:
    policy, _ = half_trained_policy(0, 60.0, np.random.default_rng(0))
    lengths = [len(one.actions) for one in sampled_episodes(policy, 400, np.random.default_rng(1))]
    assert 50 < np.mean(lengths) < 120
