"""What each detail is worth: the document's claims about LunarLander, the table and the picture.

Owns the criteria; must not know how a run is made.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from benchmarks.experiments.ablation.settings import (
    ALL,
    LOAD_BEARING,
    NO_VALUE_CLIP,
    RAW_NO_BUDGET,
    RAW_NO_VALUE_CLIP,
    RAW_REWARDS,
    RECIPES,
    SHORT_HORIZON,
)
from benchmarks.experiments.outcome import Claim, Outcome
from benchmarks.experiments.pictures import GREY, draw_bars, label, panels
from benchmarks.experiments.provenance import made_by
from benchmarks.experiments.training.differences import Bound, bound
from benchmarks.experiments.training.runs import diverged_runs, trained_tasks
from benchmarks.learning_curve import BLUE, ORANGE

LANDER = "LunarLander-v3"
_MUCH = 100.0  # points of LunarLander: the bonus for a landing
_TITLE = "Details of PPO, each switched off"
_SETTING = """\
{tasks}. All details: 16 environments × 128 steps, 10 epochs of minibatches of 256, Adam 3e-4 (ε =
1e-5) annealed to zero, γ = 0.999, λ = 0.95, clip 0.2 for policy and value (max of both losses), advantages
normalised by minibatch, observations and rewards normalised by running statistics, entropy bonus 0.01, joint
gradient norm clipped at 0.5, orthogonal initialisation, separate networks, bootstrapping at time limits. Score:
mean return of the last 100 training episodes, ± the sample standard deviation over seeds where there are several. Timed
out: share of these that the time limit ended (hovering, on LunarLander); landed: share that came to rest. Two settings
are told apart on LunarLander if their means differ by more than the spread between seeds explains (pooled over all
settings, t test at 5 %): {bound}; a large difference has {much:g} points besides. Runs whose weights became infinite,
scored until then: {diverged}."""


def outcome(results: pd.DataFrame) -> Outcome:
    """What the runs say.

    :param results: one row for each finished run
    """
    setting = _SETTING.format(
        tasks=trained_tasks(results),
        bound=_bounds(results[results["task"] == LANDER]),
        much=_MUCH,
        diverged=diverged_runs(results),
    )
    made = made_by(results.to_dict("records"))
    return Outcome(_TITLE, setting, results, shown(results), claims(results), picture(results), made)


def claims(results: pd.DataFrame) -> tuple[Claim, ...]:
    """Hold what the document says of LunarLander against the numbers.

    :param results: one row for each finished run
    """
    runs = results[results["task"] == LANDER]
    return (
        _difference(
            runs,
            (ALL, RAW_REWARDS),
            "without reward scaling LunarLander drops from 277 to −52.",
            at_least=_MUCH,
        ),
        _difference(
            runs,
            (RAW_NO_VALUE_CLIP, RAW_REWARDS),
            "value clipping is actively harmful on raw rewards.",
        ),
        _difference(
            runs,
            (ALL, NO_VALUE_CLIP),
            "on normalised rewards value clipping is helpful, worth +94.",
        ),
        _difference(
            runs,
            (RAW_NO_BUDGET, RAW_NO_VALUE_CLIP),
            "raw rewards hurt because the critic eats the joint gradient budget: then, without value clipping, giving "
            "up the gradient clipping as well restores learning.",
            at_least=_MUCH,
        ),
        _hovering(runs),
        _others(runs),
    )


def _bound(runs: pd.DataFrame, first: str, second: str) -> Bound:
    """For two settings of one task."""
    n_seeds = runs.groupby("setting")["seed"].nunique()
    return bound(runs, "score", [n_seeds[first]], [n_seeds[second]], decimals=0)


def _bounds(runs: pd.DataFrame) -> str:
    """In words, for the setting with the most seeds against one with as many or fewer."""
    n_seeds = runs.groupby("setting")["seed"].nunique()
    against = sorted(set(n_seeds), reverse=True)
    bounds = [bound(runs, "score", [against[0]], [n], decimals=0) for n in against]
    if len(bounds) < 2:
        return "".join(one.words() for one in bounds) or f"{LANDER} is not among the tasks"
    return "; ".join(f"{one.words()} ({against[0]} seeds against {n})" for one, n in zip(bounds, against, strict=True))


def _difference(runs: pd.DataFrame, pair: tuple[str, str], said: str, *, at_least: float | None = None) -> Claim:
    first, second = pair
    score = runs.groupby("setting")["score"].mean()
    if not {first, second} <= set(score.index):
        return Claim(said, f"no finished runs of {first} and {second} on {LANDER}.", None)
    least = _bound(runs, first, second)
    difference = float(score[first] - score[second])
    found = f"{first} {score[first]:.0f}, {second} {score[second]:.0f}: a difference of {difference:+.0f}"
    holds = least.judge(difference)
    if holds and at_least is not None:
        holds = difference >= at_least
    criterion = "." if at_least is None else f" ({at_least:g} and more count)."
    return Claim(said, f"{found}{criterion}{least.note(holds)}", holds)


def _hovering(runs: pd.DataFrame) -> Claim:
    said = "with γ = 0.99 the lander learns to hover, with γ = 0.999 to land."
    means = runs.groupby("setting")[["score", "timeouts", "landings"]].mean()
    if not {ALL, SHORT_HORIZON} <= set(means.index):
        return Claim(said, f"no finished runs of {ALL} and {SHORT_HORIZON} on {LANDER}.", None)
    long, short = means.loc[ALL], means.loc[SHORT_HORIZON]
    found = "; ".join(
        f"γ = {gamma}: {row['timeouts']:.0%} of episodes timed out, {row['landings']:.0%} landed, "
        f"score {row['score']:.0f}"
        for gamma, row in (("0.99", short), ("0.999", long))
    )
    criterion = " (most episodes timing out at 0.99, and most landing at 0.999, counts)."
    return Claim(said, found + criterion, bool(short["timeouts"] > 0.5 and long["landings"] > 0.5))


def _others(runs: pd.DataFrame) -> Claim:
    said = "the assembly tolerates being wrong about almost everything else."
    score = runs.groupby("setting")["score"].mean()
    others = [name for name in _present(runs) if name not in (ALL, *LOAD_BEARING)]
    if ALL not in score.index or not others:
        return Claim(said, f"no finished runs on {LANDER}.", None)
    drops = (score[ALL] - score[others]).sort_values(ascending=False)
    costly = drops[drops >= _MUCH]
    named = ", ".join(f"{name} ({-drop:+.0f})" for name, drop in costly.items()) or "none"
    bounds = {name: _bound(runs, ALL, name) for name in others}
    n_surely = sum(bounds[name].judge(drop) is True for name, drop in costly.items())
    found = (
        f"of {len(others)} other details {len(costly)} cost {_MUCH:g} points or more, {n_surely} of them told apart "
        f"from {ALL}: {named} (a quarter of them or fewer counts)."
    )
    few = len(others) / 4
    strictest = max(bounds.values(), key=lambda one: one.least or 0.0)
    holds = None if strictest.least is None or n_surely <= few < len(costly) else n_surely <= few
    return Claim(said, found + strictest.note(holds), holds)


def shown(results: pd.DataFrame) -> pd.DataFrame:
    """Scores by task and setting.

    :param results: one row for each finished run
    :return: as text
    """
    lines = []
    for name in _present(results):
        line = {"setting": name}
        for task in results["task"].unique():
            rows = results[(results["task"] == task) & (results["setting"] == name)]
            if not len(rows):
                line[task] = "–"
                continue
            spread = f" ± {rows['score'].std(ddof=1):,.0f}" if len(rows) > 1 else ""
            line[task] = f"{rows['score'].mean():,.0f}{spread}"
            if task == LANDER:
                line["timed out"] = f"{rows['timeouts'].mean():.0%}"
                line["landed"] = f"{rows['landings'].mean():.0%}"
        lines.append(line)
    return pd.DataFrame(lines).fillna("–")


def picture(results: pd.DataFrame) -> Figure:
    """A bar for each setting, a panel for each task.

    :param results: one row for each finished run
    :return: not saved yet
    """
    tasks = list(results["task"].unique())
    figure, axes = panels(len(tasks), _TITLE, size=(7.6, 1.6 + 0.3 * len(_present(results))))
    for panel, task in zip(axes, tasks, strict=True):
        rows = results[results["task"] == task]
        names = _present(rows)
        colors = [BLUE if name == ALL else ORANGE if name in LOAD_BEARING else GREY for name in names]
        scores = [rows.loc[rows["setting"] == name, "score"].to_numpy() for name in names]
        draw_bars(panel, [name.replace("+", "\n+", 1) for name in names], scores, colors=colors)
        if ALL in names:
            reference = rows.loc[rows["setting"] == ALL, "score"].mean()
            panel.axvline(reference, color=BLUE, linewidth=1, linestyle="dashed", label="all details")
        panel.axvline(0, color="black", linewidth=0.8)
        label(panel, x="mean return of the last 100 training episodes", y="", title=task)
    handles = [handle for handle in axes[0].get_legend_handles_labels()[0] if not isinstance(handle, BarContainer)]
    handles += [
        Patch(color=BLUE, label="mean with all details"),
        Patch(color=ORANGE, label="without one that the document calls load-bearing, or several"),
        Patch(color=GREY, label="without another"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False)
    return figure


def _present(results: pd.DataFrame) -> list[str]:
    present = set(results["setting"])
    return [name for name in RECIPES if name in present]
