"""The ratios of a run as one picture.

Owns its look; must not know how a ratio is computed.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

from benchmarks.files import save_picture
from benchmarks.learning_curve import BLUE, ORANGE
from benchmarks.throughput.ratios import Verdict, verdicts
from benchmarks.throughput.records import Results

matplotlib.use("Agg")  # before pyplot: there may be no display
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch


def draw_ratios(results: Results, path: Path) -> None:
    """Save a horizontal bar for each comparison: median, whiskers from min to max, a mark at the target.

    Memory is drawn as theirs / ours, so that longer is better throughout.

    :param results: of the run
    :param path: of the PNG
    """
    judged = [verdict for result in results.rows for verdict in verdicts(result)]
    figure, axes = plt.subplots(figsize=(10, 1.6 + 0.55 * max(1, len(judged))), layout="constrained")
    for position, verdict in enumerate(judged):
        _draw_bar(axes, position, verdict)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(judged)), [f"{one.row}\nagainst {one.peers}" for one in judged], fontsize=8)
    axes.set_ylim(len(judged) - 0.4, -0.6)
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.set_xlabel("times as fast as the peer (rollout memory: times as small)")
    conditions = results.conditions
    axes.set_title(f"{results.machine['processor']}, threads: {conditions.threads}, {conditions.device}")
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(handles=_legend(), loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_picture(figure, path)
    plt.close(figure)


def _draw_bar(axes: Axes, position: int, verdict: Verdict) -> None:
    ratios = [1 / ratio if verdict.of_bytes else ratio for ratio in verdict.ratios]
    middle = 1 / verdict.median if verdict.of_bytes else verdict.median
    target = 1 / verdict.target if verdict.of_bytes else verdict.target
    color = BLUE if verdict.is_met else ORANGE
    hatch = None if verdict.is_met else "//"
    whiskers = [[middle - min(ratios)], [max(ratios) - middle]]
    axes.barh(position, middle, height=0.6, color=color, hatch=hatch, edgecolor="white", xerr=whiskers, capsize=3)
    axes.plot([target, target], [position - 0.42, position + 0.42], color="black", linewidth=2.5)
    axes.annotate(
        f"{middle:.2f}", (max(*ratios, target), position), xytext=(6, 0), textcoords="offset points", va="center"
    )


def _legend() -> list[Artist]:
    return [
        Patch(color=BLUE, label="median, target met"),
        Patch(facecolor=ORANGE, hatch="//", edgecolor="white", label="median, target missed"),
        Line2D([], [], color="black", marker="|", linestyle="-", label="min to max"),
        Line2D([], [], color="black", marker="|", markersize=12, markeredgewidth=2.5, linestyle="", label="target"),
    ]
