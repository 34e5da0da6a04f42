"""Scores of the fast engine, the reference engine and bf16 come from one distribution, over forty seeds.

Any two sides have different seeds, so that a seed's luck with its first weights cannot hide or feign a difference.
What the test could have seen is computed from the scores themselves, asserted and printed (``pytest -m slow -s``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pytest
import torch as th
from gymnasium import spaces
from scipy import stats
from stable_baselines3.common.env_util import make_vec_env

from sb3_ppo_from_scratch import PPO
from tests.cartpole import cartpole_model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:precision='bf16' is slower:UserWarning")]

SIGNIFICANCE = 0.05
POWER = 0.8
N_RESAMPLES = 9_999
SIDES: dict[str, dict[str, Any]] = {
    "auto": {"engine": "auto"},
    "reference": {"engine": "reference"},
    "bf16": {"precision": "bf16"},
}
Scores = npt.NDArray[np.float64]


class LampEnv(gym.Env[npt.NDArray[np.uint8], int]):
    """One of nine fields of a picture is lit, and the action that names it is rewarded. Sixteen pictures an episode."""

    N_FIELDS = 9

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 255, (1, 36, 36), np.uint8)
        self.action_space = spaces.Discrete(self.N_FIELDS)
        self._lit, self._n_steps = 0, 0

    @classmethod
    def picture(cls, lit: int) -> npt.NDArray[np.uint8]:
        pixels = np.full((1, 36, 36), 40, np.uint8)
        row, column = divmod(lit, 3)
        pixels[0, 12 * row : 12 * row + 12, 12 * column : 12 * column + 12] = 200
        return pixels

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed)
        self._n_steps = 0
        return self._next(), {}

    def step(self, action: int) -> tuple[npt.NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        reward = float(action == self._lit)
        self._n_steps += 1
        return self._next(), reward, False, self._n_steps == 16, {}

    def _next(self) -> npt.NDArray[np.uint8]:
        self._lit = int(self.np_random.integers(self.N_FIELDS))
        return self.picture(self._lit)


def chance_of_the_lit_field(seed: int, settings: dict[str, Any]) -> float:
    """Mean over the nine pictures of π(lit field | picture) after training, without evaluation noise."""
    model = PPO(
        "CnnPolicy",
        make_vec_env(LampEnv, n_envs=4, seed=seed),
        n_steps=32,
        batch_size=32,
        n_epochs=4,
        gamma=0.0,
        policy_kwargs={"features_extractor_kwargs": {"features_dim": 32}},
        seed=seed,
        device="cpu",
        **settings,
    ).learn(2048)
    pictures = th.as_tensor(np.stack([LampEnv.picture(lit) for lit in range(LampEnv.N_FIELDS)]))
    with th.no_grad():
        return float(model.policy.get_distribution(pictures).distribution.probs.diagonal().mean())


def area_under_the_learning_curve(seed: int, settings: dict[str, Any]) -> float:
    """Mean, over the steps of the training, of the return of the episode that the step belongs to, at most 195.

    From there on CartPole counts as solved; beyond, the longest episodes alone would make the score a matter of luck.
    """
    returns: list[float] = []

    def keep_returns(local_variables: dict[str, Any], _: dict[str, Any]) -> bool:
        returns.extend(info["episode"]["r"] for info in local_variables["infos"] if "episode" in info)
        return True

    cartpole_model(PPO, seed, **settings).learn(20_000, callback=keep_returns)
    # An episode of CartPole returns its length, so that lengths weigh returns.
    return float(np.average(np.minimum(returns, 195.0), weights=returns))


@dataclass(frozen=True)
class Task:
    """What is trained and scored.

    :param score: of one seed under settings of PPO
    :param n_seeds: of each side
    :param untrained: the score of a policy that has learnt nothing
    :param detectable: the least difference of means, as a share of what training gains, that must be seen
    """

    score: Callable[[int, dict[str, Any]], float]
    n_seeds: int
    untrained: float
    detectable: float


TASKS = {
    "cartpole": Task(area_under_the_learning_curve, n_seeds=40, untrained=30.0, detectable=0.15),
    "pictures": Task(chance_of_the_lit_field, n_seeds=40, untrained=1 / 9, detectable=0.15),
}
# Which task is learnt by which side, and by which other one it is judged.
COMPARISONS = [("cartpole", "auto", "reference"), ("pictures", "auto", "reference"), ("pictures", "bf16", "auto")]


@cache
def scores(task: str, side: str) -> Scores:
    first_seed = 1000 * list(SIDES).index(side)
    seeds = range(first_seed, first_seed + TASKS[task].n_seeds)
    return np.array([TASKS[task].score(seed, SIDES[side]) for seed in seeds])


def p_value(one: Scores, other: Scores) -> float:
    """How often a random split of all scores has means as far apart."""

    def difference(x: Scores, y: Scores, axis: int) -> Scores:
        return np.asarray(np.mean(x, axis=axis) - np.mean(y, axis=axis))

    result = stats.permutation_test(
        (one, other), difference, n_resamples=N_RESAMPLES, vectorized=True, rng=np.random.default_rng(0)
    )
    return float(result.pvalue)


def minimum_detectable_effect(one: Scores, other: Scores) -> float:
    """The difference of means that a test of this size sees four times in five, given the spread of the scores."""
    standard_error = np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    return float(standard_error * (stats.norm.ppf(1 - SIGNIFICANCE / 2) + stats.norm.ppf(POWER)))


@pytest.mark.parametrize("task, side, judge", COMPARISONS)
def test_scores_of_two_sides_do_not_differ_and_a_difference_would_have_shown(task: str, side: str, judge: str) -> None:
    ours, reference = scores(task, side), scores(task, judge)
    effect = minimum_detectable_effect(ours, reference)
    p, gain = p_value(ours, reference), reference.mean() - TASKS[task].untrained
    shape_p = float(stats.ks_2samp(ours, reference).pvalue)
    print(
        f"\n{task}: {side} {ours.mean():.4g} ± {ours.std(ddof=1):.3g}, {judge} {reference.mean():.4g} ± "
        f"{reference.std(ddof=1):.3g}, {len(ours)} seeds each, p = {p:.3f}, shape p = "
        f"{shape_p:.3f}; a difference of {effect:.3g} "
        f"({effect / gain:.0%} of what training gains) shows with probability {POWER}"
    )
    assert p > SIGNIFICANCE
    # Means alone would not tell a side that either triumphs or fails.
    assert shape_p > 0.2 * SIGNIFICANCE
    assert effect < TASKS[task].detectable * gain
    # Moved by that much either way, one side at least is found out, and by more, in both directions.
    assert min(p_value(ours + shift, reference) for shift in (-effect, effect)) < SIGNIFICANCE
    assert max(p_value(ours + shift, reference) for shift in (-2 * effect, 2 * effect)) < SIGNIFICANCE


@pytest.mark.parametrize("task, side", sorted({(task, side) for task, *sides in COMPARISONS for side in sides}))
def test_training_gains_more_than_the_scores_spread(task: str, side: str) -> None:
    """Scores of a task that nobody learns, or everybody masters at once, would tell nothing."""
    of_side = scores(task, side)
    assert of_side.mean() - TASKS[task].untrained > 2 * of_side.std(ddof=1)
