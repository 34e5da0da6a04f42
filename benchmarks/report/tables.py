"""The tables of the report, formatted.

Owns which figures stand in which column; must not know how a figure is computed or where a table is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from benchmarks.head_to_head.references import Reference, comparable
from benchmarks.report import words
from benchmarks.report.algorithms import ALGORITHMS, OURS, STOCK
from benchmarks.report.comparisons import Comparison, Estimate, anchors, comparisons, overall
from benchmarks.report.statistics import Scores, bootstrap_interval, interquartile_mean
from benchmarks.report.table import final_rows, final_scores, sides, unfinished_rows

References = Mapping[str, Sequence[Reference]]


def score_table(table: pd.DataFrame, references: References) -> pd.DataFrame:
    """What every side reached.

    :param table: of runs
    :param references: published scores by task
    :return: one line for each task and algorithm
    """
    finals, unfinished = final_rows(table), unfinished_rows(table)
    lines = []
    for task in table["task"].unique():
        for side in sides(table, task):
            rows = finals[(finals["task"] == task) & (finals["algorithm"] == side)]
            n_unfinished = int(((unfinished["task"] == task) & (unfinished["algorithm"] == side)).sum())
            scores = final_scores(table, task, side)
            published = comparable(references, task) if ALGORITHMS[side].is_ppo else ()
            lines.append(
                {
                    "task": task,
                    "algorithm": ALGORITHMS[side].label,
                    "seeds": f"{len(rows)}" + (f" (+{n_unfinished} unfinished)" if n_unfinished else ""),
                    "steps": words.steps(*rows["steps"]) if len(rows) else words.NONE,
                    "final score": words.mean_and_deviation(scores),
                    "IQM [95 % CI]": words.estimate(_iqm(scores)),
                    "training min": words.median_and_range(rows["training_seconds"] / 60, decimals=1),
                    "steps/s": words.median_and_range(rows["steps"] / rows["training_seconds"], decimals=0),
                    "published PPO": "; ".join(map(_published, published)) or words.NONE,
                }
            )
    return pd.DataFrame(lines)


def comparison_table(table: pd.DataFrame, references: References) -> pd.DataFrame:
    """Our side against the others.

    :param table: of runs
    :param references: published scores by task
    :return: one line for each task and other algorithm
    """
    return pd.DataFrame([_comparison_line(one, comparable(references, one.task)) for one in comparisons(table)])


def overall_table(table: pd.DataFrame) -> pd.DataFrame:
    """Our side against the others over tasks, in normalised scores.

    :param table: of runs
    :return: one line for each other algorithm
    """
    lines = []
    for one in overall(table):
        numbers = {
            "IQM ours": one.iqms[0],
            "IQM theirs": one.iqms[1],
            "mean ours": one.means[0],
            "mean theirs": one.means[1],
            "P(ours > theirs)": one.improvement,
        }
        cells = {name: words.estimate(number, decimals=2) for name, number in numbers.items()}
        lines.append({"against": ALGORITHMS[one.against].label, "tasks": str(len(one.tasks)), **cells})
    return pd.DataFrame(lines)


def anchor_table(table: pd.DataFrame) -> pd.DataFrame:
    """The scale of every task.

    :param table: of runs
    :return: one line for each task, with dashes where scores cannot be normalised
    """
    lines = []
    for task in table["task"].unique():
        scale = anchors(table, task)
        cells = (words.NONE,) * 4
        if scale is not None:
            low, high = words.score(scale.low), words.score(scale.high)
            cells = (low, words.steps(scale.low_steps), high, ALGORITHMS[scale.high_side].label)
        lines.append({"task": task, **dict(zip(("0 is", "after steps", "1 is", "final mean of"), cells, strict=True))})
    return pd.DataFrame(lines)


def unfinished_table(table: pd.DataFrame) -> pd.DataFrame:
    """How far the runs got that have no evaluation at their end.

    :param table: of runs
    :return: one line for each
    """
    lines = [
        {
            "task": row["task"],
            "algorithm": ALGORITHMS[row["algorithm"]].label,
            "seed": str(row["seed"]),
            "last evaluated at": f"{words.steps(row['steps'])} steps",
            "score there": words.score(row["score"]),
            "training min": f"{row['training_seconds'] / 60:,.1f}",
        }
        for _, row in unfinished_rows(table).iterrows()
    ]
    return pd.DataFrame(lines)


def published_table(tasks: Sequence[str], references: References) -> pd.DataFrame:
    """Scores of others, and where they are from.

    :param tasks: names
    :param references: published scores by task
    :return: one line for each score
    """
    lines = [
        {
            "task": task,
            "score": words.score(one.score),
            "steps": words.NONE if one.steps is None else words.steps(one.steps),
            "comparable": "yes" if one.comparable else "no",
            "source": one.source,
        }
        for task in tasks
        for one in references.get(task, ())
    ]
    return pd.DataFrame(lines)


def summary_table(table: pd.DataFrame, references: References) -> pd.DataFrame:
    """Our side and stock in a few columns, for a README.

    :param table: of runs
    :param references: published scores by task
    :return: one line for each task that either of them finished
    """
    finals = final_rows(table)
    against_stock = {one.task: one for one in comparisons(table) if one.against == STOCK}
    lines = []
    for task in finals.loc[finals["algorithm"].isin([OURS, STOCK]), "task"].unique():
        rows = {side: finals[(finals["task"] == task) & (finals["algorithm"] == side)] for side in (OURS, STOCK)}
        one = against_stock.get(task)
        lines.append(
            {
                "task": task,
                "steps": words.steps(*rows[OURS]["steps"], *rows[STOCK]["steps"]),
                "seeds": " / ".join(str(len(rows[side])) for side in (OURS, STOCK)),
                **{ALGORITHMS[side].label: words.mean_and_deviation(final_scores(table, task, side)) for side in rows},
                "published PPO": "; ".join(map(_published, comparable(references, task)[:1])) or words.NONE,
                "permutation p": words.NONE if one is None else _p(one),
                "training min": " / ".join(
                    words.median_and_range(rows[side]["training_seconds"] / 60, decimals=1) for side in rows
                ),
                "times as fast": words.median_and_range(one.time_ratios if one else (), decimals=2),
            }
        )
    return pd.DataFrame(lines)


def _comparison_line(one: Comparison, references: Sequence[Reference]) -> dict[str, str]:
    has_both = one.improvement is not None
    return {
        "task": one.task,
        "against": ALGORITHMS[one.against].label,
        "seeds": f"{len(one.ours)} / {len(one.theirs)}",
        "difference of means": words.score(float(one.ours.mean() - one.theirs.mean())) if has_both else words.NONE,
        "P(ours > theirs) [95 % CI]": words.estimate(one.improvement, decimals=2),
        "permutation p": _p(one),
        "smallest p": words.NONE if one.permutation is None else f"{one.permutation.smallest_p:.2g}",
        "detectable difference": words.NONE if one.detectable is None else words.score(one.detectable),
        "of reference": _share(one, references),
        "times as fast": words.median_and_range(one.time_ratios, decimals=2),
    }


def _iqm(scores: Scores) -> Estimate | None:
    if not len(scores):
        return None
    return Estimate(float(interquartile_mean([scores])), bootstrap_interval([scores], interquartile_mean))


def _published(reference: Reference) -> str:
    """With what the source is called before its first comma or colon."""
    source = re.split("[,:]", reference.source)[0]
    steps = "" if reference.steps is None else f", {words.steps(reference.steps)}"
    return f"{words.score(reference.score)} ({source}{steps})"


def _p(one: Comparison) -> str:
    return words.NONE if one.permutation is None else f"{one.permutation.p:.3f}"


def _share(one: Comparison, references: Sequence[Reference]) -> str:
    """Of the first comparable published score, or of the other side's mean."""
    if one.detectable is None:
        return words.NONE
    reference = references[0].score if references else float(one.theirs.mean())
    return words.NONE if reference == 0 else f"{one.detectable / abs(reference):.1%}"
