"""Bias and variance of Â_0 over λ, for an exact critic and for wrong ones.

Owns the critics, the grid of λ, and what counts as bias; must not know how a moment is computed or drawn.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.experiments.gae.moments import Moments, exact_moments, first_estimates, sampled_episodes
from benchmarks.experiments.markov import (
    Array,
    MarkovDecisionProcess,
    action_advantages,
    greedy_actions,
    gridworld,
    state_values,
)

GAMMA = 0.95
LAMBDAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99, 1.0)
EXACT, SCALED, NOISY = "exact", "0.7 V", "0.5 V + noise"
CRITICS = (EXACT, SCALED, NOISY)  # from good to bad
RANDOM, HALF_GREEDY = "random", "half greedy"
POLICIES = (RANDOM, HALF_GREEDY)
N_DRAWS = 50  # of the noise
BATCHES = (1, 100, 1_000, 10_000, 100_000)  # estimates of the same action that are averaged


def measurements(n_episodes: int, seed: int) -> pd.DataFrame:
    """Measure every critic at every λ on the gridworld, under each policy.

    :param n_episodes: sampled beside the closed form
    :param seed: of the episodes and of the noisy critic
    :return: one row for each policy, critic, draw of its noise and λ; sampled for the critics without noise
    """
    process = gridworld()
    tables = [_of_policy(process, name, policy, n_episodes, seed) for name, policy in policies(process).items()]
    return pd.concat(tables, ignore_index=True)


def policies(process: MarkovDecisionProcess) -> dict[str, Array]:
    """The policy that moves at random, as a new one does, and one that takes the best action every other time.

    :param process: to play
    :return: [S, A] probabilities each
    """
    uniform = np.full((process.n_states, process.n_actions), 1 / process.n_actions)
    greedy = np.eye(process.n_actions)[greedy_actions(process, GAMMA)]
    return {RANDOM: uniform, HALF_GREEDY: (uniform + greedy) / 2}


def _of_policy(process: MarkovDecisionProcess, name: str, policy: Array, n_episodes: int, seed: int) -> pd.DataFrame:
    values = state_values(process, policy, GAMMA)
    advantages = action_advantages(process, values, GAMMA)[process.start]
    weights = policy[process.start]
    episodes = sampled_episodes(process, policy, n_episodes, np.random.default_rng(seed))
    rows = []
    for critic_name, critics in _critics(values, np.random.default_rng(seed)).items():
        for draw, critic in enumerate(critics):
            for gae_lambda in LAMBDAS:
                row = _exact_row(
                    exact_moments(process, policy, critic, GAMMA, gae_lambda), process, advantages, weights
                )
                if len(critics) == 1:
                    sampled = first_estimates(process, episodes, critic, GAMMA, gae_lambda)
                    of_samples = (float(sampled.mean()), float(sampled.var(ddof=1)))
                    row |= dict(zip(("sampled_mean", "sampled_variance"), of_samples, strict=True))
                rows.append({"policy": name, "critic": critic_name, "draw": draw, "lambda": gae_lambda, **row})
    return pd.DataFrame(rows).assign(episodes=n_episodes)


def _exact_row(moments: Moments, process: MarkovDecisionProcess, truth: Array, weights: Array) -> dict[str, float]:
    mean, second = moments.mean[process.start], moments.second[process.start]
    return {
        "bias": centred_error(mean, truth, weights),
        "variance": float(weights @ second - (weights @ mean) ** 2),
        "variance_given_action": float(weights @ (second - mean**2)),
        "mean": float(weights @ mean),
    }


def over_draws(table: pd.DataFrame) -> pd.DataFrame:
    """The noisy critic's numbers, which are different for each draw of the noise, as one number for each λ.

    :param table: from ``measurements``
    :return: one row for each policy, critic and λ: bias as root mean square, the rest as mean over draws
    """
    squared = table.assign(bias=table["bias"] ** 2)
    means = squared.groupby(["policy", "critic", "lambda"], as_index=False, sort=False).mean()
    return means.assign(bias=np.sqrt(means["bias"])).drop(columns="draw")


def best_lambda(rows: pd.DataFrame, batch: int) -> float:
    """Where the squared error, bias² + variance given the action / batch, is least.

    :param rows: of one policy and critic, from ``over_draws``
    :param batch: estimates of the same action that are averaged
    """
    errors = rows["bias"] ** 2 + rows["variance_given_action"] / batch
    return float(rows["lambda"].loc[errors.idxmin()])


def centred_error(estimates: Array, truth: Array, weights: Array) -> float:
    """Root mean square of what is left of an error once its mean, a baseline that costs nothing, is taken off.

    :param estimates: [A]
    :param truth: [A]
    :param weights: [A], sum to 1
    """
    error = estimates - truth
    return float(np.sqrt(weights @ (error - weights @ error) ** 2))


def _critics(values: Array, rng: np.random.Generator) -> dict[str, list[Array]]:
    noise = rng.normal(scale=0.2 * float(np.abs(values).max()), size=(N_DRAWS, len(values)))
    return {EXACT: [values], SCALED: [0.7 * values], NOISY: [0.5 * values + one for one in noise]}
