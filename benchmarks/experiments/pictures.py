"""How the experiments' pictures look: Okabe and Ito's colours, panels side by side, labels with units.

Owns what is the same in all of them; must not know what is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.learning_curve import BLUE, GREEN, ORANGE

# The rest of Okabe and Ito's palette.
VERMILLION, PURPLE, SKY, GREY = "#D55E00", "#CC79A7", "#56B4E9", "#666666"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY)
LINES = ("solid", "dashed", "dashdot", "dotted")
MARKERS = ("o", "s", "^", "D")
_PANEL_INCHES = (4.8, 3.8)


def panels(
    n: int, title: str, *, size: tuple[float, float] = _PANEL_INCHES, n_rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """An empty picture.

    :param n: panels in a row
    :param title: of the whole picture
    :param size: of a panel, inches
    :param n_rows: of panels
    :return: the figure, not saved yet, and its panels from left to right, row by row
    """
    figure = Figure(figsize=(size[0] * n, size[1] * n_rows), layout="constrained")
    axes = list(figure.subplots(n_rows, n, squeeze=False).flat)
    figure.suptitle(title, fontsize=12)
    return figure, axes


def label(axes: Axes, *, x: str, y: str, title: str = "") -> None:
    """Name what a panel shows.

    :param axes: the panel
    :param x: quantity with its unit
    :param y: quantity with its unit
    :param title: of the panel
    """
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.set_title(title, fontsize=10)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)


def draw_bars(
    axes: Axes,
    names: Sequence[str],
    runs: Sequence[npt.NDArray[np.float64]],
    *,
    colors: Sequence[str],
    published: Sequence[float | None] = (),
) -> None:
    """Horizontal bars from top to bottom: the mean as bar and number, single runs as dots, published values as marks.

    :param axes: the panel
    :param names: of the bars
    :param runs: values of each bar, each ``(runs,)``, at least one
    :param colors: of the bars
    :param published: beside each bar; None for none
    """
    means = [float(values.mean()) for values in runs]
    rows = np.arange(len(names))
    axes.barh(rows, means, height=0.62, color=list(colors), edgecolor="white", alpha=0.8, label="mean of the runs")
    for row, values in zip(rows, runs, strict=True):
        axes.plot(
            values, np.full(len(values), row), ".", color="black", markersize=4, label="one run" if not row else ""
        )
    marks = [(value, row) for row, value in zip(rows, published, strict=False) if value is not None]
    if marks:
        axes.plot(*zip(*marks, strict=True), "D", color=VERMILLION, markersize=6, fillstyle="none", label="published")
    axes.set_yticks(rows, names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    decimals = 2 if max(map(abs, means)) < 10 else 0
    for row, mean in zip(rows, means, strict=True):
        axes.annotate(
            f"{mean:,.{decimals}f}",
            (1.0, row),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
