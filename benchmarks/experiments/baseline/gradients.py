"""The policy gradient of single episodes under four weightings, and what it says of them all.

Owns the weightings, the half-trained policy and the statistics; must not know seeds, tables or verdicts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch as th

from benchmarks.experiments.baseline.cart_pole import Array, Episode, policy_network, rewards_to_go, sampled_episodes

RAW, CONSTANT, EPISODE_MEAN, STANDARDISED = "raw", "constant baseline", "episode mean", "standardised"
WEIGHTINGS = (RAW, CONSTANT, EPISODE_MEAN, STANDARDISED)
_LEARNING_RATE = 1e-2
_MAX_EPISODES, _MAX_ATTEMPTS = 400, 10
PROBES = 50  # fresh episodes from which a policy's length and the constant baseline are measured


class Estimator(NamedTuple):
    """What a set of gradients says.

    :param variance: of one gradient, summed over parameters
    :param signal: norm of the mean gradient
    :param ratio: signal / √variance, of which 1/√n is left even where there is no signal
    :param true_ratio: likewise, of the signal without what noise adds to it; 0 if nothing is left
    """

    variance: float
    signal: float
    ratio: float
    true_ratio: float


def half_trained_policy(seed: int, target_length: float, rng: np.random.Generator) -> tuple[th.nn.Sequential, int]:
    """REINFORCE with standardised rewards-to-go until fresh episodes, not trained on, are long enough on average.

    Where that unlearns what it had learned, which it does with some weights, it begins anew with others.

    :param seed: of the initial weights
    :param target_length: steps
    :param rng: for the episodes
    :return: the policy, and how many episodes it took
    :raises RuntimeError: if it does not get there
    """
    for attempt in range(_MAX_ATTEMPTS):
        policy = _new_policy(seed, attempt)
        if (count := _train(policy, target_length, rng)) is not None:
            return policy, count
    raise RuntimeError(
        f"Seed {seed}: no {target_length:g} steps an episode in {_MAX_ATTEMPTS} attempts of {_MAX_EPISODES} episodes; "
        "give other --seeds or a smaller --length."
    )


def _new_policy(seed: int, attempt: int) -> th.nn.Sequential:
    with th.random.fork_rng(devices=[]):
        th.manual_seed(int(np.random.SeedSequence([seed, attempt]).generate_state(1)[0]))
        return policy_network()


def _train(policy: th.nn.Sequential, target_length: float, rng: np.random.Generator) -> int | None:
    """Episodes that it took; None if they were not enough."""
    optimizer = th.optim.Adam(policy.parameters(), lr=_LEARNING_RATE)
    for count in range(1, _MAX_EPISODES + 1):
        (episode,) = sampled_episodes(policy, 1, rng)
        weights = th.as_tensor(_standardised(rewards_to_go(len(episode.actions))), dtype=th.float32)
        optimizer.zero_grad()
        (-(_log_probs(policy, episode) * weights).sum()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if mean_length(sampled_episodes(policy, PROBES, rng)) >= target_length:
            return count
    return None


def mean_length(episodes: list[Episode]) -> float:
    """Steps an episode.

    :param episodes: at least one
    """
    return float(np.mean([len(one.actions) for one in episodes]))


def constant_baseline(policy: th.nn.Sequential, rng: np.random.Generator) -> float:
    """Mean reward-to-go, measured on episodes of its own.

    :param policy: that plays
    :param rng: for the episodes
    """
    episodes = sampled_episodes(policy, PROBES, rng)
    return float(np.mean([rewards_to_go(len(one.actions)).mean() for one in episodes]))


def episode_gradients(policy: th.nn.Sequential, episodes: list[Episode], baseline: float) -> dict[str, Array]:
    """The gradient of each episode under each weighting.

    :param policy: that played them
    :param episodes: n of them
    :param baseline: the constant one
    :return: by weighting [n, parameters], of −Σ_t log π(a_t|s_t) w_t
    """
    parameters = list(policy.parameters())
    gradients: dict[str, list[Array]] = {name: [] for name in WEIGHTINGS}
    for episode in episodes:
        log_probs = _log_probs(policy, episode)
        for name, weights in weightings(rewards_to_go(len(episode.actions)), baseline).items():
            loss = -(log_probs * th.as_tensor(weights, dtype=th.float32)).sum()
            parts = th.autograd.grad(loss, parameters, retain_graph=True)
            gradients[name].append(th.cat([part.flatten() for part in parts]).double().numpy())
    return {name: np.stack(rows) for name, rows in gradients.items()}


def weightings(to_go: Array, baseline: float) -> dict[str, Array]:
    """What the log-probabilities of an episode are weighted with.

    :param to_go: [L] rewards-to-go
    :param baseline: the constant one
    :return: [L] each
    """
    return {
        RAW: to_go,
        CONSTANT: to_go - baseline,
        EPISODE_MEAN: to_go - to_go.mean(),
        STANDARDISED: _standardised(to_go),
    }


def estimator(gradients: Array) -> Estimator:
    """Variance against signal.

    E‖mean of n‖² = ‖true mean‖² + variance / n, so that the true signal is estimated by taking variance / n off.

    :param gradients: [n, parameters]
    """
    variance = float(gradients.var(axis=0, ddof=1).sum())
    signal = float(np.linalg.norm(gradients.mean(axis=0)))
    true_square = max(signal**2 - variance / len(gradients), 0.0)
    return Estimator(variance, signal, signal / variance**0.5, (true_square / variance) ** 0.5)


def _standardised(to_go: Array) -> Array:
    deviation = to_go.std(ddof=1) if len(to_go) > 1 else 0.0
    return np.asarray((to_go - to_go.mean()) / (deviation + 1e-8))


def _log_probs(policy: th.nn.Sequential, episode: Episode) -> th.Tensor:
    logits = policy(th.as_tensor(episode.states))
    chosen = th.as_tensor(episode.actions)[:, None]
    return th.log_softmax(logits, dim=1).gather(1, chosen)[:, 0]
