"""Mean and variance of a generalized advantage estimate: in closed form, and over sampled episodes.

Owns the two ways to the same numbers; must not know which critics and which λ are of interest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.experiments.markov import Array, MarkovDecisionProcess
from sb3_ppo_from_scratch.core.advantages import compute_gae


class Moments(NamedTuple):
    """Of Â(s, a) when the episode goes on from s with action a.

    :param mean: [S, A]
    :param second: [S, A], E[Â²]
    """

    mean: Array
    second: Array


class Episodes(NamedTuple):
    """E episodes from the start state, played side by side; after its end, an episode stays where it is.

    :param states: [T, E]
    :param actions: [T, E]
    :param rewards: [T, E], zero after the end
    :param ended: [T, E] bool, whether the step began after the end
    """

    states: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]
    rewards: Array
    ended: npt.NDArray[np.bool_]


def exact_moments(
    process: MarkovDecisionProcess, policy: Array, critic: Array, gamma: float, gae_lambda: float
) -> Moments:
    """First and second moment of Â = δ + γλ Â', from the two linear systems that they satisfy.

    :param process: Markov, so that Â' depends on the past through the next state only
    :param policy: [S, A] probabilities of the actions
    :param critic: [S] predicted values, right or wrong; what it says of terminal states is not used
    :param gamma: discount factor γ
    :param gae_lambda: λ
    :return: zero at terminal states
    """
    live = ~process.terminal
    decay = gamma * gae_lambda
    onward = process.between_live_states(policy)
    identity = np.eye(process.n_states)
    deltas = process.rewards + gamma * critic * live - critic[:, None, None]  # [S, A, S']
    expected = process.transitions * live[:, None, None]

    mean_delta = np.einsum("sat,sat->sa", expected, deltas)
    of_state = np.linalg.solve(identity - decay * onward, np.einsum("sa,sa->s", policy, mean_delta))
    mean = mean_delta + decay * expected @ of_state

    squared = np.einsum("sat,sat->sa", expected, deltas**2 + 2 * decay * deltas * of_state)
    second_of_state = np.linalg.solve(identity - decay**2 * onward, np.einsum("sa,sa->s", policy, squared))
    return Moments(mean, squared + decay**2 * expected @ second_of_state)


def sampled_episodes(
    process: MarkovDecisionProcess, policy: Array, n_episodes: int, rng: np.random.Generator
) -> Episodes:
    """Play until every episode has ended.

    :param process: in which every episode ends
    :param policy: [S, A] probabilities of the actions
    :param n_episodes: E
    :param rng: to draw from
    """
    action_bounds = np.cumsum(policy, axis=1)
    state_bounds = np.cumsum(process.transitions, axis=2)
    state = np.full(n_episodes, process.start)
    steps = []
    while not (ended := process.terminal[state]).all():
        action = _drawn(action_bounds[state], rng)
        following = np.where(ended, state, _drawn(state_bounds[state, action], rng))
        reward = np.where(ended, 0.0, process.rewards[state, action, following])
        steps.append((state, action, reward, ended))
        state = following
    return Episodes(*(np.stack(column) for column in zip(*steps, strict=True)))


def first_estimates(
    process: MarkovDecisionProcess, episodes: Episodes, critic: Array, gamma: float, gae_lambda: float
) -> Array:
    """Â_0 of every episode, as PPO computes it.

    :param process: that was played
    :param episodes: from ``sampled_episodes``
    :param critic: [S] predicted values
    :param gamma: discount factor γ
    :param gae_lambda: λ
    :return: [E]
    """
    values = np.where(process.terminal, 0.0, critic)[episodes.states]
    all_ended = np.ones(values.shape[1], dtype=bool)
    advantages, _ = compute_gae(
        episodes.rewards, values, episodes.ended, np.zeros(values.shape[1]), all_ended, gamma, gae_lambda
    )
    return np.asarray(advantages[0], dtype=np.float64)


def _drawn(bounds: Array, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Indices whose cumulative probabilities are the rows of ``bounds``."""
    draws = rng.random(len(bounds))[:, None] * bounds[:, -1:]  # rounding may leave the last bound below 1
    return np.asarray((draws >= bounds).sum(axis=1))
