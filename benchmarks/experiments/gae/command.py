"""Bias and variance of generalized advantage estimation over λ, on a gridworld solved by dynamic programming.

Owns the command line, the judgement and the picture; must not know how a moment is computed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.arguments import at_least, output_folder
from benchmarks.experiments.gae.experiment import (
    BATCH,
    CRITICS,
    EXACT,
    GAMMA,
    N_DRAWS,
    NOISY,
    POLICIES,
    SCALED,
    measurements,
    over_draws,
)
from benchmarks.experiments.outcome import Claim, Outcome, write_outcome
from benchmarks.experiments.pictures import COLORS, LINES, label, panels
from benchmarks.experiments.provenance import facts, made_by

_ZERO = 1e-10  # of a bias in closed form: rounding of sums of numbers of order 1
_SETTING = f"""\
A 4 × 4 gridworld (a step costs 0.01, the goal pays 1, the pit −1, one move in ten slips), a policy that moves at
random and one that takes the best action every other time, γ = {GAMMA}. Bias, variance and error of Â_0, the
estimate at the start of an episode, in closed form; {{episodes:,}} sampled episodes through this package's
`compute_gae` agree (z-scores of the means up to {{z:.1f}}). Bias is the root mean square over actions of E[Â_0 | a]
− A(s_0, a) without its mean over actions, which the policy gradient does not feel. The noise of the worst critic
has a standard deviation of 0.2 max |V|; its numbers are root mean squares (bias) and means over {N_DRAWS} draws of
it, not sampled."""


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
        *(
            _judged(
                table,
                f"the λ of the least squared error of {of} lies inside (0, 1) for wrong critics, and moves towards 1 "
                "as they get worse.",
                partial(_best_lambdas, column=column),
            )
            for column, of in (("error", "one episode"), ("batch_error", f"the mean over {BATCH:,} episodes"))
        ),
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


def _best_lambdas(rows: pd.DataFrame, column: str) -> tuple[str, bool]:
    best = [float(_of(rows, name)[column].idxmin()) for name in CRITICS]
    text = ", ".join(f"λ = {one:g} for {name}" for name, one in zip(CRITICS, best, strict=True))
    return text, all(0 < one < 1 for one in best[1:]) and best[0] <= best[1] <= best[2] and best[0] < best[2]


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
    """Bias and variance over λ.

    :param table: from ``over_draws``
    :return: not saved yet
    """
    figure, axes = panels(2, "Generalized advantage estimation at the start of an episode", n_rows=len(POLICIES))
    for policy, left, right in zip(POLICIES, axes[::2], axes[1::2], strict=True):
        for name, color, line in zip(CRITICS, COLORS, LINES, strict=False):
            rows = table[(table["policy"] == policy) & (table["critic"] == name)]
            left.plot(rows["lambda"], rows["bias"], color=color, linestyle=line, label=f"critic: {name}")
            right.plot(rows["lambda"], rows["variance"], color=color, linestyle=line)
            right.plot(rows["lambda"], rows["sampled_variance"], ".", color=color)
        label(left, x="λ", y="bias of Â₀ (reward, log scale)", title=f"{policy} policy: bias")
        label(
            right,
            x="λ",
            y="variance of Â₀ (reward², log scale)",
            title=f"{policy} policy: variance (lines exact, dots sampled)",
        )
        left.set_yscale("symlog", linthresh=1e-4)
        left.set_ylim(bottom=0)
        right.set_yscale("log")
        left.legend(fontsize=8, frameon=False)
    return figure
