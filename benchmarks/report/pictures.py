"""Learning curves of all tasks as one picture, against environment steps or training time.

Owns its look; must not know how a mean or a band is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import wrap
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.head_to_head.references import Reference, comparable
from benchmarks.report import words
from benchmarks.report.algorithms import ALGORITHMS
from benchmarks.report.curves import Curve, curves
from benchmarks.report.statistics import Scores
from benchmarks.report.table import RUN

_GREY = "#666666"
_GLUE = "\N{NO-BREAK SPACE}"
_PANEL_INCHES = (4.3, 3.1)


@dataclass(frozen=True)
class Horizontal:
    """What the curves are drawn against.

    :param column: of the table
    :param title: of the picture
    :param unit: from the largest value to what one unit on the axis is, and its label
    """

    column: str
    title: str
    unit: Callable[[float], tuple[float, str]]


STEPS = Horizontal(
    "steps",
    "Evaluation return against environment steps",
    lambda most: (1e6, "environment steps (millions)") if most >= 1e6 else (1e3, "environment steps (thousands)"),
)
TIME = Horizontal(
    "training_seconds",
    "Evaluation return against training time, without evaluations, checkpoints and set-up",
    lambda _: (60.0, "training time (min)"),
)


def learning_curves(table: pd.DataFrame, references: Mapping[str, Sequence[Reference]], against: Horizontal) -> Figure:
    """Draw a panel for each task: mean over seeds, 95 % bootstrap band, thin lines for single seeds.

    :param table: of runs
    :param references: published scores by task; the first comparable one is drawn
    :param against: the horizontal axis
    :return: not saved yet
    """
    tasks = list(table["task"].unique())
    n_columns = min(len(tasks), 3) if len(tasks) <= 9 else 4
    n_rows = ceil(len(tasks) / n_columns)
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(max(7.5, width * n_columns), height * n_rows + 1.2), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).flat
    for task, axes in zip(tasks, panels, strict=False):
        _draw_panel(axes, table[table["task"] == task], comparable(references, task), against)
    for unused in list(panels):
        unused.remove()
    figure.suptitle(against.title, fontsize=12)
    handles = _legend(figure)
    n_entries = int(figure.get_figwidth() // 2.5)  # that fit side by side
    figure.legend(handles=handles, loc="outside lower center", ncols=n_entries, frameon=False, fontsize=9)
    return figure


def _draw_panel(axes: Axes, rows: pd.DataFrame, references: Sequence[Reference], against: Horizontal) -> None:
    unit, label = against.unit(float(rows[against.column].max()))
    task = rows["task"].iloc[0]
    for curve in curves(rows, task, against.column):
        _draw_curve(axes, curve, unit)
    lines = [line for text in (task, _seeds(rows), *_drawn_reference(axes, references)) for line in wrap(text, 50)]
    axes.set_title("\n".join(lines), fontsize=9)
    axes.set_xlabel(label, fontsize=9)
    axes.set_ylabel("return", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)


def _draw_curve(axes: Axes, curve: Curve, unit: float) -> None:
    look = ALGORITHMS[curve.algorithm]
    for places, scores in curve.runs:
        _draw_line(axes, places / unit, scores, color=look.color, linewidth=0.6, alpha=0.45)
    if curve.band is not None:
        axes.fill_between(curve.places / unit, *curve.band, color=look.color, alpha=0.15, linewidth=0)
    mean = (curve.places / unit, curve.mean)
    _draw_line(axes, *mean, color=look.color, linestyle=look.line, linewidth=1.8, label=look.label, zorder=3)


def _draw_line(axes: Axes, places: Scores, scores: Scores, **look: Any) -> None:
    axes.plot(places, scores, marker="." if len(places) == 1 else "", **look)  # a line through one point is not seen


def _drawn_reference(axes: Axes, references: Sequence[Reference]) -> list[str]:
    """A line at the first published score, unless it is so far off that the curves would be flattened."""
    if not references:
        return []
    published = references[0]
    low, high = axes.get_ylim()
    margin = 0.05 * (high - low)
    text = f"published: {words.score(published.score)}"
    if published.steps is not None:
        text += f" after {words.steps(published.steps)} steps"
    if not low - (high - low) <= published.score <= high + (high - low):
        return [f"{text} (off scale)"]
    axes.axhline(
        published.score, color=_GREY, linewidth=1.2, linestyle=(0, (1, 2)), label="published PPO score", zorder=1
    )
    axes.set_ylim(min(low, published.score - margin), max(high, published.score + margin))
    return [text]


def _seeds(rows: pd.DataFrame) -> str:
    runs = rows.groupby(RUN, sort=False)["final"].any().groupby("algorithm", sort=False)
    counts = {
        side: f"{is_finished.sum()}" + ("" if is_finished.all() else f"+{(~is_finished).sum()}")
        for side, is_finished in runs
    }
    if len(counts) > 1 and len(set(counts.values())) == 1:
        text = f"seeds a side: {next(iter(counts.values()))}"
    else:
        text = "seeds: " + ", ".join(f"{side}{_GLUE}{number}" for side, number in counts.items())
    return text + (f" (+:{_GLUE}unfinished)" if "+" in text else "")


def _legend(figure: Figure) -> list[Artist]:
    """What was drawn, each once: the sides in their order, the published score, and what is thick, thin and shaded."""
    drawn: dict[str, Artist] = {}
    for axes in figure.axes:
        drawn |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    order = [look.label for look in ALGORITHMS.values()]
    known = sorted(drawn, key=lambda label: order.index(label) if label in order else len(order))
    return [
        *(drawn[label] for label in known),
        Line2D([], [], color=_GREY, linewidth=1.8, label="mean over seeds"),
        Line2D([], [], color=_GREY, linewidth=0.6, label="single seed"),
        Patch(color=_GREY, alpha=0.3, linewidth=0, label="95 % bootstrap interval"),
    ]
