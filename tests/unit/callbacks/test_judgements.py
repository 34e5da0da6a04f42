"""Claims about the judgements: on either side of each limit, with the numbers of known good and bad runs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sb3_ppo_from_scratch.core.diagnostics import gradient_budget
from sb3_ppo_from_scratch.core.health import (
    Episodes,
    FirstMinibatch,
    GradientNorms,
    RolloutStatistics,
    Thresholds,
    UpdateOutcome,
)
from sb3_ppo_from_scratch.core.judgements import CAUSES, CERTAIN, Verdicts, entropy_share
from sb3_ppo_from_scratch.core.rollout_judgements import critic_verdicts, drift_verdicts, rollout_verdicts
from sb3_ppo_from_scratch.core.setting_judgements import horizon_verdicts, setting_verdicts
from sb3_ppo_from_scratch.core.update_judgements import gradient_verdicts, minibatch_verdicts, update_verdicts

LIMITS = Thresholds()
STATISTICS = RolloutStatistics(0.0, 1.0, 3.0, 1.0, 1.0, math.sqrt(2), 1.0, 0.9, True)
FIRST = FirstMinibatch(1.0, 1e-7, 0.0, 0.0, 0.0, 0.6, math.log(2), 0.87)
OUTCOME = UpdateOutcome(0.01, 0.01, 0.1)
NAN = math.nan


def gradients(actor: float, critic: float, shared_actor: float = 0.0, shared_critic: float = 0.0) -> GradientNorms:
    joint = math.hypot(actor, critic)
    return GradientNorms(actor, critic, joint, shared_actor, shared_critic, *gradient_budget(joint, 0.5, 3e-4))


def causes(verdicts: Verdicts) -> set[str]:
    return {cause for cause, finding in verdicts.items() if finding is not None}


def test_lunar_lander_with_raw_rewards_starves_its_actor() -> None:
    """The table of the seed document: norms 0.13 and 50 leave 0.01 of each step, a rate of 3e-6."""
    finding = gradient_verdicts(gradients(0.13, 50.0), 1.0, LIMITS)["joint_clipping"]
    assert finding is not None
    assert "0.01 of each step" in finding.observation
    assert "3.0e-06" in finding.observation
    assert "VecNormalize" in finding.remedy


@pytest.mark.parametrize(
    "norms, name",
    [
        ((0.10, 1.0), "LunarLander with normalised rewards"),
        ((0.294, 17.8), "CartPole with the zoo's settings"),
        ((50.0, 60.0), "not the critic's fault"),
    ],
)
def test_other_gradients_are_no_cause_for_alarm(norms: tuple[float, float], name: str) -> None:
    assert causes(gradient_verdicts(gradients(*norms), 1.0, LIMITS)) == set()


def test_a_critic_may_not_rule_the_shared_layers() -> None:
    """Pong's value loss pulls 20 to 30 times as hard on the features early on, and learns."""
    for critic, expected in ((2.0, set()), (6.0, {"shared_trunk"})):
        shared = gradients(0.3, critic, shared_actor=0.1, shared_critic=critic)
        assert causes(gradient_verdicts(shared, 1.0, LIMITS)) == expected
    assert "shared_trunk" not in gradient_verdicts(gradients(0.3, 6.0), 1.0, LIMITS)


def test_a_policy_without_a_gradient_is_dead_unless_nothing_calls_for_one() -> None:
    assert causes(gradient_verdicts(gradients(0.0, 1.0), 1.0, LIMITS)) == {"dead_policy"}
    assert causes(gradient_verdicts(gradients(0.0, 1.0), 0.0, LIMITS)) == set()


def test_numbers_that_are_none_are_found_before_anything_else() -> None:
    for number in (NAN, math.inf):
        assert causes(gradient_verdicts(gradients(number, 1.0), 1.0, LIMITS)) == {"not_finite"}
    assert causes(rollout_verdicts(STATISTICS._replace(is_finite=False, return_rms=NAN), LIMITS)) == {"not_finite"}


@pytest.mark.parametrize(
    "changes, is_found", [({}, False), ({"return_rms": 201.0}, True), ({"return_std": 1e-5}, True)]
)
def test_returns_may_be_neither_huge_nor_tiny(changes: dict[str, Any], is_found: bool) -> None:
    assert ("reward_scale" in causes(rollout_verdicts(STATISTICS._replace(**changes), LIMITS))) is is_found


@pytest.mark.parametrize(
    "first, now, is_found",
    [(1.0, 29.0, False), (1.0, 31.0, True), (0.0, 9.0, False), (0.0, 11.0, True), (100.0, 200.0, False)],
)
@pytest.mark.parametrize("quantity", ["reward_rms", "return_rms"])
def test_rewards_and_returns_may_grow_thirtyfold(quantity: str, first: float, now: float, is_found: bool) -> None:
    changes: list[dict[str, Any]] = [{"reward_rms": 1.0, "return_rms": 1.0, quantity: rms} for rms in (first, now)]
    before, after = (STATISTICS._replace(**change) for change in changes)
    assert bool(causes(drift_verdicts(after, [before, before], LIMITS))) is is_found


@pytest.mark.parametrize(
    "explained, mean, is_found",
    [
        pytest.param([0.9, 0.9], 0.0, False, id="good"),
        pytest.param([0.1, 0.2], 0.0, True, id="bad"),
        pytest.param([NAN, 0.9], 0.0, False, id="nothing to explain, and good"),
        pytest.param([0.1, 0.2], 20.0, False, id="bad at explaining next to nothing"),
    ],
)
def test_a_critic_is_judged_by_what_matters(explained: list[float], mean: float, is_found: bool) -> None:
    rollouts = [
        STATISTICS._replace(
            explained_variance=share, return_std=std, return_mean=mean, return_rms=math.hypot(mean, std)
        )
        for share in explained
        for std in [0.0 if math.isnan(share) else 1.0]
    ]
    assert causes(critic_verdicts(rollouts, LIMITS)) == ({"explained_variance"} if is_found else set())


def test_rollouts_that_vary_count_for_more() -> None:
    """(4 × 0.1 + 1 × 0.9) / 5 = 0.26 of the variance is explained."""
    rollouts = [
        STATISTICS._replace(explained_variance=share, return_std=std, return_rms=std)
        for share, std in ((0.1, 2.0), (0.9, 1.0))
    ]
    finding = critic_verdicts(rollouts, LIMITS)["explained_variance"]
    assert finding is not None
    assert "explains 0.26" in finding.observation


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({}, set()),
        ({"ratio_deviation": 0.02}, {"log_probabilities"}),
        ({"ratio_deviation": NAN}, {"log_probabilities"}),
        ({"entropy_share": 0.02}, {"entropy_collapse"}),
        ({"entropy_share": NAN}, set()),
    ],
)
def test_the_first_minibatch(changes: dict[str, float], expected: set[str]) -> None:
    assert causes(minibatch_verdicts(FIRST._replace(**changes), STATISTICS, 0.01, LIMITS)) == expected


def test_a_solved_task_may_be_played_in_one_way_only() -> None:
    """Advantages of a thousandth of the returns: there is nothing left to gain."""
    collapsed, solved = FIRST._replace(entropy_share=0.001), STATISTICS._replace(advantage_std=0.001)
    assert causes(minibatch_verdicts(collapsed, solved, 0.01, LIMITS)) == set()


def test_where_nothing_was_ever_paid_the_critic_is_not_to_blame() -> None:
    rollouts = [STATISTICS._replace(explained_variance=-3.0, reward_rms=0.0)] * 2
    assert causes(critic_verdicts(rollouts, LIMITS)) == set()
    assert causes(critic_verdicts([*rollouts, STATISTICS._replace(explained_variance=-3.0)], LIMITS)) != set()


@pytest.mark.parametrize(
    "changes, target_kl, expected",
    [
        ({}, None, set()),
        ({"approx_kl": 0.06}, None, {"kl"}),
        ({"approx_kl_k1": 0.06}, None, {"kl"}),
        ({"approx_kl": 0.06}, 0.04, set()),
        ({"approx_kl": 0.03}, 0.01, {"kl"}),
        ({"clip_fraction": 0.31}, None, {"clip_fraction_high"}),
        ({"clip_fraction": 0.0}, None, {"clip_fraction_low"}),
        ({"approx_kl": NAN, "approx_kl_k1": NAN, "clip_fraction": NAN}, None, set()),
    ],
)
def test_the_outcome_of_an_update(changes: dict[str, float], target_kl: float | None, expected: set[str]) -> None:
    outcome = OUTCOME._replace(**changes)
    assert causes(judged(outcome, target_kl)) == expected
    assert set(judged(outcome, target_kl, high=False, low=False)) == {"kl"}


def judged(outcome: UpdateOutcome, target: float | None = None, *, high: bool = True, low: bool = True) -> Verdicts:
    return update_verdicts(outcome, target, judges_high_clipping=high, judges_low_clipping=low, limits=LIMITS)


def test_updates_may_be_tiny_where_they_are_meant_to_be() -> None:
    assert causes(judged(OUTCOME._replace(clip_fraction=0.0), low=False)) == set()
    assert causes(judged(OUTCOME._replace(clip_fraction=0.4), low=False)) == {"clip_fraction_high"}


@pytest.mark.parametrize(
    "gamma, length, last, is_found",
    [
        pytest.param(0.99, 400.0, 0.3, True, id="LunarLander: the landing is out of sight"),
        pytest.param(0.999, 400.0, 0.3, False, id="LunarLander as it is solved"),
        pytest.param(0.98, 500.0, 0.002, False, id="CartPole: each step pays"),
        pytest.param(0.99, 3000.0, 0.05, False, id="Pong: twenty points and more"),
        pytest.param(0.99, 20000.0, NAN, True, id="longer than can be"),
        pytest.param(0.99, NAN, NAN, False, id="no episode has ended"),
        pytest.param(1.0, 400.0, 1.0, False, id="undiscounted"),
    ],
)
def test_a_horizon_has_to_reach_the_rewards(gamma: float, length: float, last: float, is_found: bool) -> None:
    assert causes(horizon_verdicts(Episodes(length, last), gamma, LIMITS)) == (
        {"discount_horizon"} if is_found else set()
    )


@pytest.mark.parametrize("length, gamma", [(400.0, "0.9975"), (25_000.0, "0.99996"), (3.0, "0.6667")])
def test_the_remedy_never_says_that_gamma_should_be_1(length: float, gamma: str) -> None:
    finding = horizon_verdicts(Episodes(length, 1.0), 0.0, Thresholds(max_horizons=1.0))["discount_horizon"]
    assert finding is not None
    assert f"Raise gamma to {gamma} or so" in finding.remedy


@pytest.mark.parametrize(
    "settings, expected",
    [
        ((0.99, None, 1, True), set()),
        ((0.99, None, 4, False), set()),
        ((0.99, None, 4, True), {"frame_skip"}),
        ((0.99, 0.99, 1, False), set()),
        ((0.99, 0.999, 1, False), {"normalization_gamma"}),
    ],
)
def test_settings_that_contradict_each_other(settings: Any, expected: set[str]) -> None:
    assert causes(setting_verdicts(*settings)) == expected


@pytest.mark.parametrize(
    "entropy, largest, n_continuous, share",
    [
        (math.log(2), math.log(4), 0, 0.5),
        (math.log(2), 2 * math.log(2), 2, 1 / math.sqrt(2)),
        # A normal distribution of the deviation 1 within bounds of ±1 is wider than them.
        (0.5 * math.log(2 * math.pi * math.e), math.log(2), 1, 2.0664),
    ],
)
def test_the_share_of_the_room_that_is_explored(
    entropy: float, largest: float, n_continuous: int, share: float
) -> None:
    assert entropy_share(entropy, largest, n_continuous) == pytest.approx(share, rel=1e-4)
    assert math.isnan(entropy_share(0.0, 0.0, 0))


def test_every_cause_is_known_by_name() -> None:
    assert set(CAUSES) >= CERTAIN


@pytest.mark.parametrize("value", [-1.0, NAN, "much", True])
def test_a_limit_is_a_number(value: Any) -> None:
    with pytest.raises(ValueError, match="max_kl="):
        Thresholds(max_kl=value)
