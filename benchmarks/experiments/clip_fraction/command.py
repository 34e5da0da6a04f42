"""Clip fraction and KL divergence of every epoch when a rollout is used 1, 4 or 16 times.

Owns the runs, the command line, the judgement and the picture; must not know how a clip fraction is computed.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from benchmarks.arguments import SEEDS_HELP, at_least, output_folder, seed_list
from benchmarks.experiments.clip_fraction.epochs import (
    EPOCHS,
    GRIDWORLD,
    N_STEPS,
    TASKS,
    first_minibatch_clip_fraction,
    measured_run,
)
from benchmarks.experiments.outcome import Claim, Outcome, write_outcome
from benchmarks.experiments.pictures import COLORS, LINES, MARKERS, label, panels
from benchmarks.experiments.provenance import facts, made_by

_MANY, _KL_TARGET = 0.3, 0.03  # the document's signs of too much
_SETTING = """\
A 4 × 4 gridworld with the document's settings (rollouts of {n_steps}, minibatches of 64, ε = 0.2, Adam 3e-3,
entropy bonus 0.01, no early stop) and CartPole-v1 with Adam 3e-4; {rollouts} rollouts each, {seeds} seeds. Means
over rollouts and seeds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line.

    :param parser: of this command
    """
    parser.add_argument("--rollouts", type=at_least(1), default=10, help="of each run; the document trains for 10")
    parser.add_argument("--seeds", type=seed_list, default="5", help=SEEDS_HELP)
    parser.add_argument(
        "--out", type=output_folder, default="logs/clip-fraction", help="folder of table, picture and report"
    )


def run(arguments: argparse.Namespace) -> None:
    """Train, judge, draw.

    :param arguments: as declared by ``add_arguments``
    """
    made = made_by([facts()])
    combinations = [(task, n_epochs, seed) for task in TASKS for n_epochs in EPOCHS for seed in arguments.seeds]
    table = pd.concat([measured_run(*one, arguments.rollouts) for one in combinations], ignore_index=True)
    first = first_minibatch_clip_fraction(arguments.seeds[0])
    setting = _SETTING.format(n_steps=N_STEPS, rollouts=arguments.rollouts, seeds=len(arguments.seeds))
    title = "Clip fraction: how often a rollout can be used"
    write_outcome(
        arguments.out, Outcome(title, setting, table, shown(table), claims(table, first), picture(table), made)
    )


def claims(table: pd.DataFrame, first_minibatch: float) -> tuple[Claim, ...]:
    """Hold what the document says against the numbers.

    :param table: of epochs
    :param first_minibatch: clip fraction of the first minibatch
    """
    means = _means(table)
    grid = means.loc[GRIDWORLD, 16]
    late = grid["clip_fraction"].loc[9:].mean()
    growths = [growth(table[(table["task"] == task) & (table["n_epochs"] == n)]) for task in TASKS for n in EPOCHS[1:]]
    return (
        Claim(
            "the clip fraction is zero in the first minibatch of the first epoch.",
            f"it is {first_minibatch:g}.",
            first_minibatch == 0,
        ),
        Claim(
            "it grows with each epoch.",
            "; ".join(words for words, _ in growths)
            + " (a correlation above zero by more than twice its standard error "
            "over rollouts and seeds, and no step that falls by more than twice its own, count).",
            None if any(grows is None for _, grows in growths) else all(grows for _, grows in growths),
        ),
        Claim(
            "with 16 epochs it typically exceeds 0.3 by the later epochs (gridworld).",
            f"{late:.2f} on average over epochs 9 to 16, at most {grid['clip_fraction'].max():.2f}; on CartPole-v1 "
            f"at most {means.loc['CartPole-v1', 16]['clip_fraction'].max():.2f}.",
            bool(late > _MANY),
        ),
        _early_stop(table),
    )


def growth(rows: pd.DataFrame) -> tuple[str, bool | None]:
    """Whether the clip fraction grows with the epoch.

    :param rows: of epochs, of one task and number of epochs
    :return: the numbers, and the verdict; None if a single rollout shows no spread
    """
    fractions = rows.pivot(index=["seed", "rollout"], columns="epoch", values="clip_fraction").to_numpy()
    n_rollouts, n_epochs = fractions.shape
    epochs = np.arange(n_epochs)
    # Where every epoch clips the same, there is nothing to rank: no growth.
    ranks = [stats.spearmanr(epochs, one).statistic if np.ptp(one) else 0.0 for one in fractions]
    means = fractions.mean(axis=0)
    start = (
        f"{rows['task'].iloc[0]}, {n_epochs} epochs: {means[0]:.3f} → {means[-1]:.3f}, most in epoch "
        f"{means.argmax() + 1}, mean rank correlation with the epoch {np.mean(ranks):.2f}"
    )
    if n_rollouts < 2:
        return start, None
    steps = np.diff(fractions, axis=1)
    bound = 2 * stats.sem(steps, axis=0)
    n_up, n_down = int((steps.mean(axis=0) > bound).sum()), int((steps.mean(axis=0) < -bound).sum())
    error = float(stats.sem(ranks))
    words = f"{start} ± {error:.2f}, {n_up} of {n_epochs - 1} steps up and {n_down} down by more than twice their error"
    return words, bool(np.mean(ranks) > 2 * error and not n_down)


def _early_stop(table: pd.DataFrame) -> Claim:
    said = f"the early stop at a KL divergence of {_KL_TARGET} would trigger first (gridworld, 16 epochs)."
    grid = table[(table["task"] == GRIDWORLD) & (table["n_epochs"] == 16)]
    epochs = [
        (_first_epoch(rows, "clip_fraction", _MANY), _first_epoch(rows, "approx_kl", _KL_TARGET))
        for _, rows in grid.groupby(["seed", "rollout"])
    ]
    clipped = [(clip, kl) for clip, kl in epochs if clip is not None]
    if not clipped:
        return Claim(said, f"the clip fraction never exceeded {_MANY}.", None)
    stopped = sum(kl is not None and kl <= clip for clip, kl in clipped)
    found = (
        f"of {len(epochs)} rollouts {len(clipped)} came to clip more than {_MANY} of the samples; in {stopped} of them "
        "the KL divergence had exceeded the target by the end of that epoch (more than half of them counts)."
    )
    return Claim(said, found, stopped > len(clipped) / 2)


def _first_epoch(rows: pd.DataFrame, column: str, bound: float) -> int | None:
    beyond = rows.loc[rows[column] > bound, "epoch"]
    return int(beyond.min()) if len(beyond) else None


def _means(table: pd.DataFrame) -> pd.DataFrame:
    return table.groupby(["task", "n_epochs", "epoch"])[["clip_fraction", "approx_kl"]].mean()


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """First, middle and last epoch of each run.

    :param table: of epochs
    :return: as text
    """
    means = _means(table)
    lines = []
    for task in TASKS:
        for n_epochs in EPOCHS:
            rows = means.loc[task, n_epochs]
            cells = {
                f"{what}, {which} epoch": f"{rows[column].iloc[place]:.3f}"
                for what, column in (("clip fraction", "clip_fraction"), ("KL", "approx_kl"))
                for which, place in (("first", 0), ("last", -1))
            }
            lines.append({"task": task, "epochs": n_epochs, **cells})
    return pd.DataFrame(lines)


def picture(table: pd.DataFrame) -> Figure:
    """Clip fraction over the epochs, a panel for each task.

    :param table: of epochs
    :return: not saved yet
    """
    figure, axes = panels(len(TASKS), "Share of samples with |ratio − 1| > 0.2 as a rollout is used again")
    means = _means(table)
    for panel, task in zip(axes, TASKS, strict=True):
        for n_epochs, color, line, marker, size in zip(EPOCHS, COLORS, LINES, MARKERS, (10, 7, 4), strict=False):
            rows = means.loc[task, n_epochs]
            look: dict[str, Any] = {"color": color, "linestyle": line, "marker": marker, "markersize": size}
            panel.plot(rows.index, rows["clip_fraction"], label=f"n_epochs={n_epochs}", **look)
        panel.axhline(_MANY, color="black", linewidth=0.8)
        panel.annotate("0.3: too much", (16, _MANY), xytext=(0, 3), textcoords="offset points", fontsize=8, ha="right")
        panel.set_ylim(bottom=0)
        label(panel, x="epoch over the same rollout", y="clip fraction (share of samples)", title=task)
        panel.legend(fontsize=8, frameon=False)
    return figure
