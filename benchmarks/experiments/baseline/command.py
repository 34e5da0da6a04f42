"""Variance and signal-to-noise ratio of the policy gradient on cart-pole under four weightings of the same episodes.

Owns the command line, the judgement and the picture; must not know how a gradient is computed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.arguments import SEEDS_HELP, at_least, output_folder, seed_list
from benchmarks.experiments.baseline.cart_pole import sampled_episodes
from benchmarks.experiments.baseline.gradients import (
    CONSTANT,
    EPISODE_MEAN,
    PROBES,
    RAW,
    STANDARDISED,
    WEIGHTINGS,
    constant_baseline,
    episode_gradients,
    estimator,
    half_trained_policy,
    mean_length,
)
from benchmarks.experiments.outcome import Claim, Outcome, write_outcome
from benchmarks.experiments.pictures import COLORS, MARKERS, label, panels
from benchmarks.experiments.provenance import facts, made_by

_DOCUMENT = {RAW: 0.143, CONSTANT: 0.222, EPISODE_MEAN: 0.140, STANDARDISED: 0.148}
_SAME = 1.1  # two ratios closer than this count as the same
_SETTING = """\
The document's cart-pole and policy (4–32–2, tanh), its REINFORCE (Adam 0.01, γ = 0.99, standardised rewards-to-go),
but stopped when {probes} fresh episodes, not trained on, last {length:g} steps on average (took {trained} episodes),
for after its 150 episodes some policies are perfect and others poor; {seeds} of them, {episodes:,} episodes each.
`ratio` is the document's ‖mean gradient‖ / √variance, in which noise alone leaves 1/√n = {floor:.3f}; `true ratio`
takes that off, and is what the verdicts are about. A claim holds if it does for the geometric means, over policies, of
the quotients of a weighting and the raw one, and for more than half of the policies by themselves."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line.

    :param parser: of this command
    """
    parser.add_argument(
        "--episodes", type=at_least(2), default=1_000, help="whose gradients are compared, for each policy"
    )
    parser.add_argument("--length", type=float, default=250.0, help="steps an episode that make a half-trained policy")
    parser.add_argument("--seeds", type=seed_list, default="5", help=f"of policies: {SEEDS_HELP}")
    parser.add_argument(
        "--out", type=output_folder, default="logs/baseline", help="folder of table, picture and report"
    )


def run(arguments: argparse.Namespace) -> None:
    """Measure, judge, draw.

    :param arguments: as declared by ``add_arguments``
    :raises SystemExit: for arguments that cannot be used
    """
    made = made_by([facts()])
    if not 1 <= arguments.length <= 500:
        raise SystemExit(f"--length {arguments.length:g}: episodes have 1 to 500 steps.")
    table = measurements(arguments.seeds, arguments.episodes, arguments.length)
    setting = _SETTING.format(
        length=arguments.length,
        trained=f"{table['trained_episodes'].min()}–{table['trained_episodes'].max()}",
        probes=PROBES,
        seeds=len(arguments.seeds),
        episodes=arguments.episodes,
        floor=arguments.episodes**-0.5,
    )
    title = "A baseline for the policy gradient: variance against signal"
    write_outcome(arguments.out, Outcome(title, setting, table, shown(table), claims(table), picture(table), made))


def measurements(seeds: list[int], n_episodes: int, target_length: float) -> pd.DataFrame:
    """Train a policy for each seed and weigh the same episodes in four ways.

    :param seeds: of the policies
    :param n_episodes: whose gradients are compared
    :param target_length: steps an episode at which training stops
    :return: one row for each seed and weighting
    """
    rows = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        policy, trained = half_trained_policy(seed, target_length, rng)
        constant = constant_baseline(policy, rng)
        episodes = sampled_episodes(policy, n_episodes, rng)
        common = {
            "seed": seed,
            "trained_episodes": trained,
            "episodes": n_episodes,
            "mean_length": mean_length(episodes),
            "baseline": constant,
        }
        for name, gradients in episode_gradients(policy, episodes, constant).items():
            rows.append({**common, "weighting": name, **estimator(gradients)._asdict()})
    return pd.DataFrame(rows)


def claims(table: pd.DataFrame) -> tuple[Claim, ...]:
    """Hold what the document says against the numbers.

    :param table: from ``measurements``
    """
    quotients = {
        name: pd.DataFrame(
            {"drop": 1 / _quotients(table, "variance", name), "gain": _quotients(table, "true_ratio", name)}
        )
        for name in WEIGHTINGS
    }
    constant, own_mean, standardised = (quotients[name] for name in (CONSTANT, EPISODE_MEAN, STANDARDISED))
    return (
        _claim(
            "a constant baseline cuts the variance fourfold.",
            constant,
            lambda of: f"by a factor of {of['drop']:.1f} (2–8 count as fourfold)",
            lambda of: 2 <= of["drop"] <= 8,
        ),
        _claim(
            "it raises the signal-to-noise ratio by half again (0.143 → 0.222, × 1.55).",
            constant,
            lambda of: f"× {of['gain']:.2f} (above {_SAME} counts as raised)",
            lambda of: of["gain"] > _SAME,
        ),
        _claim(
            "the episode's own mean cuts the variance as much as the constant, yet its ratio is no better than raw "
            "(0.140 against 0.143).",
            own_mean.assign(drop_constant=constant["drop"]),
            lambda of: (
                f"variance divided by {of['drop']:.1f} (constant: {of['drop_constant']:.1f}), ratio × "
                f"{of['gain']:.2f} (up to {_SAME} counts as no better, half to twice the constant's as the same)"
            ),
            lambda of: of["gain"] <= _SAME and 0.5 <= of["drop"] / of["drop_constant"] <= 2,
        ),
        _claim(
            "standardising divides the variance by 2,600 and leaves the ratio as it was (0.148 against 0.143).",
            standardised,
            lambda of: (
                f"variance divided by {of['drop']:,.0f} (above 1,000 counts), ratio × {of['gain']:.2f} "
                f"({1 / _SAME:.2f}–{_SAME} counts as unchanged)"
            ),
            lambda of: of["drop"] > 1_000 and 1 / _SAME <= of["gain"] <= _SAME,
        ),
    )


def _claim(
    said: str,
    quotients: pd.DataFrame,
    found: Callable[[pd.Series[float]], str],
    criterion: Callable[[pd.Series[float]], bool],
) -> Claim:
    """Of the geometric means over policies, and of each policy."""
    means = np.exp(np.log(quotients).mean())
    n_holding = sum(bool(criterion(of_policy)) for _, of_policy in quotients.iterrows())
    words = f"{found(means)}; by itself, it holds for {n_holding} of {len(quotients)} policies."
    return Claim(said, words, bool(criterion(means)) and n_holding > len(quotients) / 2)


def _quotients(table: pd.DataFrame, column: str, name: str) -> pd.Series[float]:
    """Of a weighting and the raw one, by seed; where noise covers all signal, as little as can be seen counts."""
    by_weighting = table.pivot(index="seed", columns="weighting", values=column).clip(lower=1e-3)
    return by_weighting[name] / by_weighting[RAW]


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Every policy, then means over policies beside the document's ratios.

    :param table: from ``measurements``
    :return: as text
    """
    numbers = ["mean_length", "variance", "signal", "ratio", "true_ratio"]
    means = table.groupby("weighting", sort=False, as_index=False)[numbers].mean()
    lines = [
        {
            "policy": row.get("seed", "mean"),
            "mean length": f"{row['mean_length']:.0f}",
            "weighting": row["weighting"],
            "variance": f"{row['variance']:,.0f}",
            "‖mean gradient‖": f"{row['signal']:,.2f}",
            "ratio": f"{row['ratio']:.3f}",
            "true ratio": f"{row['true_ratio']:.3f}",
            "document's ratio": "" if "seed" in row else f"{_DOCUMENT[row['weighting']]:.3f}",
        }
        for rows in (table, means)
        for _, row in rows.iterrows()
    ]
    return pd.DataFrame(lines).astype(str)


def picture(table: pd.DataFrame) -> Figure:
    """Variance and ratio of every policy.

    :param table: from ``measurements``
    :return: not saved yet
    """
    figure, axes = panels(2, "The same episodes of half-trained cart-pole policies, weighted in four ways")
    for panel, column in zip(axes, ("variance", "true_ratio"), strict=True):
        for place, (name, color, marker) in enumerate(zip(WEIGHTINGS, COLORS, MARKERS, strict=False)):
            values = table.loc[table["weighting"] == name, column]
            spread = place + np.linspace(-0.15, 0.15, len(values)) if len(values) > 1 else [place]
            panel.plot(spread, values, marker, color=color, markersize=5, alpha=0.8)
            panel.plot([place - 0.3, place + 0.3], [values.mean()] * 2, color=color, linewidth=2)
        panel.set_xticks(range(len(WEIGHTINGS)), [name.replace(" ", "\n") for name in WEIGHTINGS])
    left, right = axes
    right.plot(range(4), [_DOCUMENT[name] for name in WEIGHTINGS], "kx", label="document: ratio, noise included")
    label(left, x="weight of ∇log π", y="variance of one episode's gradient (log scale)", title="variance")
    left.set_yscale("log")
    label(right, x="weight of ∇log π", y="true ratio: ‖mean gradient‖ / √variance", title="signal-to-noise ratio")
    right.set_ylim(bottom=0)
    right.legend(loc="lower right", fontsize=8, frameon=False)
    return figure
