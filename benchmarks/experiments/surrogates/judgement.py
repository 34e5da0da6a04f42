"""Scores of the surrogate objectives on the paper's scale, the verdicts, the table and the picture.

Owns the scale and the criteria; must not know how a run is made.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiments.outcome import Claim, Outcome
from benchmarks.experiments.pictures import GREY, draw_bars, label, panels
from benchmarks.experiments.provenance import made_by
from benchmarks.experiments.surrogates.settings import ADAPTIVE, CLIPS, FIXED, NO_CLIP, PUBLISHED, RANDOM
from benchmarks.experiments.training.differences import Bound, bound
from benchmarks.experiments.training.runs import diverged_runs, trained_tasks
from benchmarks.learning_curve import BLUE, GREEN, ORANGE
from benchmarks.report.statistics import bootstrap_interval, mean_of_means

_TITLE = "Surrogate objectives, beside Table 1 of the PPO paper"
_SETTING = """\
{tasks} (the paper: 7 tasks × 3 seeds × a million). Settings of the paper's Table 3 (horizon 2048,
Adam 3e-4, 10 epochs of minibatches of 64, γ = 0.99, λ = 0.95, separate networks of 64 + 64 tanh units, no entropy
bonus), observations normalised, no clipping of gradients. A run's score is the mean return of its last 100 training
episodes; 0 is the score of uniformly random actions, 1 that of the best run of the task; means over tasks and
seeds, with a 95 % bootstrap interval over seeds. A run whose weights became infinite counts as random play, unless it
had scored less until then, whatever the raw score in the table says: {diverged}. Two settings are told apart if their
means over tasks differ by more than the spread between seeds explains (pooled over tasks and settings, t test at
5 %): {bound}."""


def outcome(results: pd.DataFrame) -> Outcome:
    """What the runs say.

    :param results: one row for each finished run
    """
    table = normalised(results)
    setting = _SETTING.format(
        tasks=trained_tasks(table), diverged=diverged_runs(table), bound=_bound(table, _tasks(table)).words()
    )
    made = made_by(table.to_dict("records"))
    return Outcome(_TITLE, setting, table, shown(table), claims(table), picture(table), made)


def normalised(results: pd.DataFrame) -> pd.DataFrame:
    """The paper's scale: per task, random play is 0 and the best run 1; a run that diverged is no better than random.

    :param results: one row for each finished run
    :return: with a column ``normalised``; empty (NaN) where a task has no random score, or nothing better than it
    """
    table = results.copy()
    table["normalised"] = np.nan
    for _, rows in table.groupby("task"):
        low = rows.loc[rows["setting"] == RANDOM, "score"].mean()
        high = rows.loc[(rows["setting"] != RANDOM) & ~rows["diverged"], "score"].max()
        if high > low:
            scaled = (rows["score"] - low) / (high - low)
            table.loc[rows.index, "normalised"] = scaled.where(~rows["diverged"], scaled.clip(upper=0.0))
    return table


def claims(table: pd.DataFrame) -> tuple[Claim, ...]:
    """Hold what the paper says against the numbers.

    :param table: from ``normalised``
    """
    means = _means(table)
    if not set(PUBLISHED) <= set(means.index):
        missing = ", ".join(name for name in PUBLISHED if name not in means.index)
        return (Claim("Table 1 of the paper.", f"no finished runs, or no scale, for {missing}.", None),)
    kl, clips = means[[*ADAPTIVE, *FIXED]], means[list(CLIPS)]
    clip, no_clip = float(means["clip-0.2"]), float(means[NO_CLIP])
    least = _bound(table, _tasks(table))
    ranks = float(means.rank().corr(pd.Series(PUBLISHED)[means.index].rank()))
    return (
        _claim(
            "clipping with ε = 0.2 is best (0.82).",
            f"best is {means.idxmax()} with {means.max():.2f}; clip-0.2 has {clip:.2f}, the best of the others "
            f"{means.drop('clip-0.2').max():.2f}.",
            least,
            clip - means.drop("clip-0.2").max(),
        ),
        _claim(
            "ε = 0.2 beats every KL penalty (adaptive 0.68–0.74, fixed 0.62–0.72).",
            f"clip-0.2 {clip:.2f}, adaptive {_range(means[list(ADAPTIVE)])}, fixed {_range(means[list(FIXED)])}.",
            least,
            clip - kl.max(),
        ),
        _claim(
            "all three clips are at or near the top (0.70–0.82).",
            f"clips {_range(clips)}, the best KL penalty {kl.max():.2f} (no clip more than 15 % below the best, "
            "as in the paper, counts).",
            least,
            clips.min() - 0.85 * means.max() + 1e-9,
        ),
        _claim(
            "KL penalties do reasonably: better than no brake at all, worse than the best clip.",
            f"KL penalties {_range(kl)}, no clip {no_clip:.2f}, best clip {clips.max():.2f}.",
            least,
            kl.min() - no_clip,
            clips.max() - kl.max(),
        ),
        _claim(
            "without clip or penalty the score is worse than random on average (−0.39), and the worst of all.",
            f"{no_clip:.2f}; the worst is {means.idxmin()} with {means.min():.2f}.",
            least,
            -no_clip,
            means.drop(NO_CLIP).min() - no_clip,
        ),
        _half_cheetah(table),
        Claim(
            "the order of the eleven settings.",
            f"Spearman's rank correlation of our scores with Table 1 is {ranks:.2f} (above 0.6, significant at 5 % for "
            "eleven settings, counts).",
            ranks > 0.6,
        ),
    )


def _claim(said: str, found: str, least: Bound, *margins: float) -> Claim:
    holds = least.judge(*margins)
    return Claim(said, found + least.note(holds), holds)


def _half_cheetah(table: pd.DataFrame) -> Claim:
    said = "HalfCheetah is the task on which it falls far below random."
    cheetah = [task for task in _tasks(table) if task.startswith("HalfCheetah")]
    if not cheetah:
        return Claim(said, "HalfCheetah was not among the tasks.", None)
    score = float(table.loc[(table["setting"] == NO_CLIP) & table["task"].isin(cheetah), "normalised"].mean())
    return _claim(said, f"{score:.2f} there.", _bound(table, cheetah), -score)


def _tasks(table: pd.DataFrame) -> list[str]:
    """Those that have a scale."""
    return list(table.dropna(subset="normalised")["task"].unique())


def _bound(table: pd.DataFrame, tasks: list[str]) -> Bound:
    """For means over tasks; the spread is that of training which came to its end."""
    trained = table[(table["setting"] != RANDOM) & ~table["diverged"]].dropna(subset="normalised")
    n_seeds = [table.loc[table["task"] == task, "seed"].nunique() for task in tasks]
    return bound(trained, "normalised", n_seeds, decimals=2)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Scores by setting: on the paper's scale, published, and raw by task.

    :param table: from ``normalised``
    :return: as text
    """
    means = _means(table)
    lines = []
    for name in (*_drawn(table), RANDOM):
        rows = table[table["setting"] == name]
        raw = {task: f"{rows.loc[rows['task'] == task, 'score'].mean():,.0f}" for task in table["task"].unique()}
        score = "–" if name not in means.index else f"{means[name]:.2f}{_interval(rows)}"
        published = f"{PUBLISHED[name]:.2f}" if name in PUBLISHED else "0"
        lines.append({"setting": name, "normalised": score if name != RANDOM else "0", "paper": published, **raw})
    return pd.DataFrame(lines)


def picture(table: pd.DataFrame) -> Figure:
    """A bar for each setting, runs as dots, the paper's numbers as marks.

    :param table: from ``normalised``
    :return: not saved yet
    """
    scored = table.dropna(subset="normalised")
    names = _drawn(scored)
    figure, (axes,) = panels(1, _TITLE, size=(8.5, 5.2))
    colors = {
        NO_CLIP: GREY,
        **dict.fromkeys(CLIPS, BLUE),
        **dict.fromkeys(ADAPTIVE, ORANGE),
        **dict.fromkeys(FIXED, GREEN),
    }
    if names:
        draw_bars(
            axes,
            names,
            [scored.loc[scored["setting"] == name, "normalised"].to_numpy() for name in names],
            colors=[colors[name] for name in names],
            published=[PUBLISHED[name] for name in names],
        )
        axes.axvline(0, color="black", linewidth=0.9)
        axes.axvline(1, color="black", linewidth=0.9, linestyle="dashed")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    label(axes, x="normalised score (0: random actions, 1: best run of the task)", y="")
    return figure


def _drawn(table: pd.DataFrame) -> list[str]:
    present = set(table["setting"])
    return [name for name in PUBLISHED if name in present]


def _means(table: pd.DataFrame) -> pd.Series[float]:
    """Over tasks of the mean over seeds."""
    runs = table[table["setting"] != RANDOM].dropna(subset="normalised")
    return runs.groupby(["setting", "task"])["normalised"].mean().groupby("setting").mean()


def _interval(rows: pd.DataFrame) -> str:
    strata = [of_task["normalised"].to_numpy() for _, of_task in rows.dropna(subset="normalised").groupby("task")]
    interval = bootstrap_interval(strata, mean_of_means) if strata else None
    return "" if interval is None else f" [{interval.low:.2f}, {interval.high:.2f}]"


def _range(scores: pd.Series[float]) -> str:
    return f"{scores.min():.2f}–{scores.max():.2f}"
