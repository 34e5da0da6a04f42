"""Scores of "auto" and of stock PPO come from one distribution, as far as the seeds can tell.

The two sides have different seeds, since equal seeds could only compare bits. Scores are computed exactly from the
final policy, so that no evaluation noise hides a difference; the least difference that would have shown is asserted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch as th
from scipy import stats
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import IdentityEnv, IdentityEnvBox

from sb3_ppo_from_scratch import PPO

N_SEEDS = 8
SIGNIFICANCE = 0.05
Scores = np.ndarray[Any, Any]


def chance_of_the_right_action(model: Any) -> float:
    """Mean over the six states of π(state|state): 1/6 untrained."""
    with th.no_grad():
        return float(model.policy.get_distribution(th.arange(6)).distribution.probs.diagonal().mean())


def closeness_to_the_right_action(model: Any) -> float:
    """Minus the mean error of the mode over a grid of states: −0.5 untrained."""
    states = np.linspace(-1, 1, 41, dtype=np.float32)[:, None]
    actions, _ = model.predict(states, deterministic=True)
    return -float(np.abs(actions - states).mean())


# The environment, its score, the steps of training, the score before any, and the least shift to be detected.
TASKS: dict[str, tuple[Callable[[], gym.Env[Any, Any]], Callable[[Any], float], int, float, float]] = {
    "discrete": (lambda: IdentityEnv(6, ep_length=20), chance_of_the_right_action, 1024, 1 / 6, 0.015),
    "box": (lambda: IdentityEnvBox(eps=0.3, ep_length=20), closeness_to_the_right_action, 2048, -0.5, 0.02),
}


def scores(algorithm: Any, task: str, first_seed: int, **settings: Any) -> Scores:
    """The score of one model for each seed."""
    make_env, score, n_steps, _, _ = TASKS[task]
    results = []
    for seed in range(first_seed, first_seed + N_SEEDS):
        model = algorithm(
            "MlpPolicy",
            make_vec_env(make_env, n_envs=4, seed=seed),
            n_steps=32,
            batch_size=32,
            n_epochs=4,
            learning_rate=1e-3,
            gamma=0.0,
            policy_kwargs={"net_arch": [16]},
            seed=seed,
            device="cpu",
            **settings,
        )
        results.append(score(model.learn(n_steps)))
    return np.array(results)


def p_value(one: Scores, other: Scores) -> float:
    """How often a random split of all scores has means as far apart; every split is counted."""

    def difference(x: Scores, y: Scores, axis: int) -> Scores:
        return np.asarray(np.mean(x, axis=axis) - np.mean(y, axis=axis))

    result = stats.permutation_test((one, other), difference, n_resamples=np.inf, vectorized=True)
    return float(result.pvalue)


@pytest.mark.parametrize("task", TASKS)
def test_scores_are_those_of_stock_ppo_and_a_difference_would_have_shown(task: str) -> None:
    _, _, _, untrained, detectable = TASKS[task]
    ours = scores(PPO, task, first_seed=0, engine="auto")
    stock = scores(stable_baselines3.PPO, task, first_seed=100)
    assert p_value(ours, stock) > SIGNIFICANCE
    # A shift by less than a fifth of what training gained would not have gone unnoticed, either way.
    assert detectable < 0.2 * (stock.mean() - untrained)
    for shift in (-detectable, detectable):
        assert p_value(ours + shift, stock) < SIGNIFICANCE
