"""Bias and variance of generalized advantage estimation over λ, on a gridworld solved by dynamic programming.

Owns the command line, the judgement and the picture; must not know how a moment is computed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.arguments import at_least, output_folder
from benchmarks.experiments.gae.experiment import (
    BATCHES,
    CRITICS,
    EXACT,
    GAMMA,
    N_DRAWS,
    NOISY,
    POLICIES,
    SCALED,
    best_lambda,
    measurements,
    over_draws,
)
from benchmarks.experiments.outcome import Claim, Outcome, write_outcome
from benchmarks.experiments.pictures import COLORS, LINES, MARKERS, label, panels
from benchmarks.experiments.provenance import facts, made_by

_LINEAR_BELOW = 1e-4  # a bias, in the picture
_ZERO = 1e-10  # of a bias in closed form: rounding of sums of numbers of order 1
_SETTING = f"""\
A 4 × 4 gridworld (a step costs 0.01, the goal pays 1, the pit −1, one move in ten slips), a policy that moves at
random and one that takes the best action every other time, γ = {GAMMA}. Bias, variance and error of Â_0, the
estimate at the start of an episode, in closed form; {{episodes:,}} sampled episodes through this package's
`compute_gae` agree (z-scores of the means up to {{z:.1f}}). Bias is the root mean square over actions of E[Â_0 | a]
− A(s_0, a) without its mean over actions, which the policy gradient does not feel. The noise of the worst critic
has a standard deviation of 0.2 max |V|; its numbers are root mean squares (bias) and means over {N_DRAWS} draws of
it, not sampled. The best λ has the least squared error, bias² + variance given the action / N, of the mean over N
estimates of the same action, so that N is a number of episodes per action; it is looked up for N from 1 to
{BATCHES[-1]:,}."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line.

    :param parser: of this command
    """
    parser.add_argument("--episodes", type=at_least(2), default=50_000, help="sampled beside the closed form")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=output_folder, default="logs/gae", help="folder of table, picture and report")


def run(arguments: argparse.Namespace) -> None:
    """Measure, judge, draw.

    :param arguments: as declared by ``add_arguments``
    """
    made = made_by([facts()])
    table = measurements(arguments.episodes, arguments.seed)
    z_scores = (table["sampled_mean"] - table["mean"]).abs() / np.sqrt(table["variance"] / table["episodes"])
    setting = _SETTING.format(episodes=arguments.episodes, z=z_scores.max())
    means = over_draws(table)
    title = "Generalized advantage estimation: bias against variance"
    write_outcome(arguments.out, Outcome(title, setting, table, shown(means), claims(means), picture(means), made))


def claims(table: pd.DataFrame) -> tuple[Claim, ...]:
    """Hold what the documents say against the numbers; a claim has to hold for both policies.

    :param table: from ``over_draws``
    """
    return (
        _judged(table, "with an exact critic the bias is zero at every λ.", _exact_bias),
        _judged(
            table,
            "with the critic scaled to 0.7 V the bias stays near its value at λ = 0 until λ ≈ 0.8 (there 4.3e-3), then "
            "falls to exactly zero at λ = 1 (75–125 % count as near).",
            _scaled_bias,
        ),
        _judged(
            table,
            "the variance rises by about three orders of magnitude from λ = 0 to λ = 1 (300–3,000 count).",
            _variance_ratio,
        ),
        _judged(table, "with a corrupted critic (0.5 V + noise) bias falls monotonically in λ.", _falling_bias),
        _judged(table, "and variance rises.", _rising_variance),
        _judged(
            table,
            "the λ of the least squared error lies inside (0, 1) for wrong critics (more than half of the N count).",
            _inside,
        ),
        _judged(table, "and moves towards 1 as the critic gets worse (all N count).", _towards_one),
    )


Judge = Callable[[pd.DataFrame], tuple[str, bool]]


def _judged(table: pd.DataFrame, said: str, judge: Judge) -> Claim:
    found = {name: judge(table[table["policy"] == name]) for name in POLICIES}
    words = "; ".join(f"{name} policy: {text}" for name, (text, _) in found.items())
    return Claim(said, f"{words}.", all(holds for _, holds in found.values()))


def _of(rows: pd.DataFrame, critic: str) -> pd.DataFrame:
    return rows[rows["critic"] == critic].set_index("lambda")


def _exact_bias(rows: pd.DataFrame) -> tuple[str, bool]:
    most = _of(rows, EXACT)["bias"].max()
    return f"at most {most:.1g}", bool(most < _ZERO)


def _scaled_bias(rows: pd.DataFrame) -> tuple[str, bool]:
    bias = _of(rows, SCALED)["bias"]
    flat = bias[0.8] / bias[0.0]
    text = f"{bias[0.0]:.2g} at λ = 0, {bias[0.8]:.2g} ({flat:.0%}) at 0.8, {bias[1.0]:.1g} at 1"
    return text, bool(0.75 <= flat <= 1.25 and bias[1.0] < _ZERO)


def _variance_ratio(rows: pd.DataFrame) -> tuple[str, bool]:
    variance = _of(rows, EXACT)["variance"]
    ratio = variance[1.0] / variance[0.0]
    text = f"from {variance[0.0]:.2g} to {variance[1.0]:.2g} with the exact critic, a factor of {ratio:,.0f}"
    return text, bool(300 <= ratio <= 3_000)


def _falling_bias(rows: pd.DataFrame) -> tuple[str, bool]:
    bias = _of(rows, NOISY)["bias"]
    falls = bool((np.diff(bias) <= _ZERO).all())
    return f"{bias[0.0]:.2g} → {bias[1.0]:.1g}, {'' if falls else 'not '}in every step", falls


def _rising_variance(rows: pd.DataFrame) -> tuple[str, bool]:
    variance = _of(rows, NOISY)["variance"]
    rises = bool((np.diff(variance) >= 0).all())
    text = f"{variance[0.0]:.2g} → {variance[1.0]:.2g}, least at λ = {variance.idxmin():g}"
    return f"{text}, {'' if rises else 'not '}in every step", rises


def _best_lambdas(rows: pd.DataFrame) -> dict[str, list[float]]:
    """Of each critic, for each N."""
    return {name: [best_lambda(rows[rows["critic"] == name], batch) for batch in BATCHES] for name in CRITICS}


def _inside(rows: pd.DataFrame) -> tuple[str, bool]:
    best = _best_lambdas(rows)
    text = ", ".join(f"{' / '.join(f'{one:g}' for one in of_critic)} for {name}" for name, of_critic in best.items())
    n_inside = sum(0 < scaled < 1 and 0 < noisy < 1 for scaled, noisy in zip(best[SCALED], best[NOISY], strict=True))
    sizes = " / ".join(f"{batch:,}" for batch in BATCHES)
    text = f"with N = {sizes}, λ = {text}; inside for both wrong critics at {n_inside} of {len(BATCHES)}"
    return text, n_inside > len(BATCHES) / 2


def _towards_one(rows: pd.DataFrame) -> tuple[str, bool]:
    in_order = [
        exact <= scaled <= noisy and exact < noisy
        for exact, scaled, noisy in zip(*_best_lambdas(rows).values(), strict=True)
    ]
    return f"in this order at {sum(in_order)} of {len(BATCHES)} N", all(in_order)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Bias and variance at a few λ.

    :param table: from ``over_draws``
    :return: as text
    """
    columns = {"bias": "bias", "variance": "variance", "sampled_variance": "variance, sampled"}
    some = table[table["lambda"].isin((0.0, 0.5, 0.8, 0.9, 0.95, 1.0))]
    lines = [
        {
            "policy": row["policy"],
            "critic": row["critic"],
            "λ": f"{row['lambda']:g}",
            **{text: _number(row[key]) for key, text in columns.items()},
        }
        for _, row in some.iterrows()
    ]
    return pd.DataFrame(lines)


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2e}"


def picture(table: pd.DataFrame) -> Figure:
    """Bias and variance over λ, and the λ that weighs them best.

    :param table: from ``over_draws``
    :return: not saved yet
    """
    figure, axes = panels(3, "Generalized advantage estimation at the start of an episode", n_rows=len(POLICIES))
    for policy, left, middle, right in zip(POLICIES, axes[::3], axes[1::3], axes[2::3], strict=True):
        for name, color, line, marker in zip(CRITICS, COLORS, LINES, MARKERS, strict=False):
            rows = table[(table["policy"] == policy) & (table["critic"] == name)]
            look: dict[str, Any] = {"color": color, "linestyle": line}
            left.plot(rows["lambda"], rows["bias"], marker=marker, markersize=4, label=f"critic: {name}", **look)
            middle.plot(rows["lambda"], rows["variance"], **look)
            middle.plot(rows["lambda"], rows["sampled_variance"], ".", color=color)
            right.plot(BATCHES, [best_lambda(rows, batch) for batch in BATCHES], marker=marker, markersize=5, **look)
        label(
            left,
            x="λ",
            y=f"bias of Â₀ (reward; log, linear below {_LINEAR_BELOW:g})",
            title=f"{policy} policy: bias",
        )
        label(
            middle,
            x="λ",
            y="variance of Â₀ (reward², log scale)",
            title=f"{policy} policy: variance (lines exact, dots sampled)",
        )
        label(
            right, x="N, episodes per action (log scale)", y="λ", title=f"{policy} policy: λ of the least squared error"
        )
        left.set_yscale("symlog", linthresh=_LINEAR_BELOW)
        left.set_ylim(bottom=-_LINEAR_BELOW / 4)  # so that a bias of zero lies above the frame
        middle.set_yscale("log")
        right.set_xscale("log")
        right.set_ylim(-0.05, 1.05)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure
