"""Draw episode returns against environment steps.

Owns the look of a learning curve; must not know how the run was made.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pandas as pd

from benchmarks.files import save_picture

matplotlib.use("Agg")  # before pyplot: there may be no display
from matplotlib import pyplot as plt
from matplotlib.ticker import EngFormatter

# Okabe and Ito's palette: distinguishable with every common colour blindness.
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"


def draw_learning_curve(
    episodes: pd.DataFrame, env_id: str, evaluated: tuple[float, float], path: Path, window: int = 20
) -> None:
    """Save a picture of every training episode, their running mean, and the scores before and after.

    :param episodes: as ``stable_baselines3.common.monitor.load_results`` returns them: r, l and t of each episode
    :param env_id: for the title
    :param evaluated: mean evaluation score before and after training, raw
    :param path: of the PNG
    :param window: episodes that the running mean covers
    """
    steps = episodes["l"].cumsum()
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    axes.scatter(steps, episodes["r"], s=9, color=BLUE, alpha=0.35, linewidths=0, label="training episode")
    running = episodes["r"].rolling(window, min_periods=1).mean()
    axes.plot(steps, running, color=BLUE, linewidth=2, label=f"mean of the last {window} episodes")
    last_step = float(steps.iloc[-1]) if len(steps) else 1.0
    before, after = evaluated
    axes.scatter([0], [before], marker="D", s=60, color=ORANGE, label=f"evaluated before: {before:.1f}", zorder=3)
    axes.scatter([last_step], [after], marker="D", s=60, color=GREEN, label=f"evaluated after: {after:.1f}", zorder=3)
    axes.set_title(f"{env_id}: raw score while training")
    axes.set_xlabel("emulator frames" if "NoFrameskip" in env_id else "environment steps")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_ylabel("episode return")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    save_picture(figure, path)
    plt.close(figure)
