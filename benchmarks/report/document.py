"""The report and its summary as Markdown.

Owns the order and the explanations; must not know how a figure is computed.
"""

from __future__ import annotations

import pandas as pd

from benchmarks.report import tables, words
from benchmarks.report.algorithms import ALGORITHMS, OURS
from benchmarks.report.statistics import N_BOOTSTRAP, N_PERMUTATIONS, N_SIMULATED, SEED
from benchmarks.report.table import RUN, VERSIONS, final_rows, sides, unfinished_rows
from benchmarks.throughput.report import markdown

PICTURES = ("learning_curves_steps.png", "learning_curves_time.png")

# What must be the same on both sides for their scores, or their times, to be comparable.
_CONDITIONS = (
    *("policy", "environment", "n_envs", "threads", "jobs", "machine", "commit"),
    *("python", "torch", "numpy", "gymnasium", "stable_baselines3", "ale_py"),
)

_CURVES = """\
Thick: mean over the finished seeds, each of which keeps its last score until the slowest has finished (over all seeds,
as far as each was evaluated, where none is finished); band: 95 % percentile bootstrap interval of this mean; thin:
every seed as far as it got. Training time is the time spent in `learn()`, without evaluations, checkpoints and
set-up."""

_SCORES = """\
Score: mean raw return of the evaluation at the end of a run; ± is the sample standard deviation over seeds, and the
IQM the mean of the middle half of the seeds. Training time and steps per second are medians over seeds (lowest–highest)
of the time spent in `learn()`. Published PPO: by whom, after how many steps; the sources follow."""

_PUBLISHED = """\
What is not comparable is in another unit, as its source says: no other table and no picture shows it."""

_COMPARED = f"""\
- P(ours > theirs): probability that a run of ours ends higher than one of theirs, ties counting half
  (Mann and Whitney's U / nm; Agarwal et al. 2021, arXiv:2108.13264). Without an interval where it is 0 or 1 with fewer
  than ten seeds, whose resamples would all say the same.
- Permutation p: two-sided test of the difference of mean final scores, over every split of the seeds if there are no
  more than {N_PERMUTATIONS:,}, otherwise over as many random ones. "Smallest p" is the least that so many seeds can
  attain. Of twenty comparisons without any difference, one is expected below 0.05.
- Detectable difference, in the unit of the return: what this test would see at 5 % with a probability of 80 %, found by
  simulation with the seeds' scores, centred and resampled ({N_SIMULATED:,} data sets). "Of reference" is its part of
  the first comparable published score, or of the other side's mean where none is known. –: all seeds of a side scored
  the same, which tells no limit, or so few seeds cannot bring the test below 5 %, whatever the difference.
- The sides share seeds: runs of one seed are evaluated with the same seeds and, with the same networks, begin with the
  same weights, so that their final scores are, if anything, positively correlated. Test and intervals take the sides as
  independent, which is conservative; a paired test could not reach 5 % with fewer than six seeds.
- Times as fast: their training time / ours up to the most steps that both reached with the same seed; median over these
  seeds (lowest–highest)."""

_NORMALISED = """\
Normalised score = (score − low) / (high − low). Low is the lowest mean, over algorithms, of the first evaluations; high
is the mean final score of stock, or of the best side where stock finished none. Both are taken as they are, not
resampled. Every task weighs the same, and a comparison covers the tasks that both sides finished."""

_INTERVALS = f"""\
Intervals are 95 % percentile bootstrap intervals over seeds, resampled within each task and side ({N_BOOTSTRAP:,}
resamples, generator seeded with {SEED}). A side with one seed on a task adds no width to them. With few seeds they are
too narrow: simulated with normal scores, the interval of a mean covers the true one in 50, 75, 84 and 90 % of all cases
with 2, 3, 5 and 10 seeds."""


def report(table: pd.DataFrame, references: tables.References) -> str:
    """Everything that the table shows.

    :param table: of runs
    :param references: published scores by task
    :return: Markdown, with the pictures beside it
    """
    n_unfinished = len(unfinished_rows(table))
    compared = markdown(tables.comparison_table(table, references))
    over_tasks = markdown(tables.overall_table(table))
    published = tables.published_table(list(table["task"].unique()), references)
    has_others = not published.empty and (published["comparable"] == "no").any()
    sections = {
        "Learning curves": [*(f"![{name}]({name})" for name in PICTURES), _CURVES],
        "Scores": [markdown(tables.score_table(table, references)), _SCORES, _INTERVALS],
        "Published scores": [
            markdown(published) or "None is known for these tasks.",
            _PUBLISHED if has_others else "",
        ],
        "Unfinished runs": [
            markdown(tables.unfinished_table(table)) or "None among the runs that were evaluated at all.",
            "They are drawn, and counted in times as fast, but in no score." if n_unfinished else "",
        ],
        "Ours against the others": [compared or "No task was run with ours and another algorithm.", _COMPARED],
        "Over all tasks": [
            over_tasks or "No task was finished by ours and another algorithm.",
            _NORMALISED,
            markdown(tables.anchor_table(table)),
        ],
        "Conditions": _conditions(table),
    }
    text = [f"# Head-to-head: {_runs(len(final_rows(table)))} finished, {n_unfinished} unfinished"]
    for heading, parts in sections.items():
        text += [f"## {heading}", *(part for part in parts if part)]
    return "\n\n".join(text) + "\n"


def summary(table: pd.DataFrame, references: tables.References) -> str:
    """Our side against stock in one table, to be pasted into a README.

    :param table: of runs
    :param references: published scores by task
    :return: Markdown without headings
    """
    parts = [
        markdown(tables.summary_table(table, references)) or "No run is finished.",
        "Final scores: mean ± standard deviation over seeds. Seeds, and training minutes (median over seeds): ours / "
        "stock. Published PPO: by whom, after how many steps. p: two-sided permutation test of the means; – where a "
        "side has one seed. Times as fast: stock's training time / ours up to the same step, median over seeds "
        "(lowest–highest).",
        *_unfinished_lines(table),
        _commands(table),
    ]
    return "\n\n".join(parts) + "\n"


def differing_conditions(table: pd.DataFrame) -> list[str]:
    """Where ours and another side did not run alike.

    :param table: of runs
    :return: lines
    """
    lines = []
    for task in table["task"].unique():
        rows = table[table["task"] == task]
        ours = rows[rows["algorithm"] == OURS]
        for side in sides(table, task):
            theirs = rows[rows["algorithm"] == side]
            pairs = {name: (ours[name], theirs[name]) for name in _CONDITIONS}
            ends = tuple(final_rows(of_side)["steps"].map("{:,}".format) for of_side in (ours, theirs))
            if all(map(len, ends)):
                pairs["final steps"] = ends
            label = ALGORITHMS[side].label
            lines += [
                f"{task}: {name} is {words.distinct(one)} for ours, {words.distinct(other)} for {label}"
                for name, (one, other) in pairs.items()
                if len(ours) and set(one) != set(other)
            ]
    return lines


def _conditions(table: pd.DataFrame) -> list[str]:
    per_side = [
        {
            "task": task,
            "algorithm": ALGORITHMS[side].label,
            **{name: words.distinct(rows[name]) for name in ("policy", "environment", "n_envs", "threads", "jobs")},
            "evaluation episodes": words.distinct(rows["episodes"]),
            "resumed runs": str(int((rows.groupby(RUN)["resumed"].max() > 0).sum())),
        }
        for (task, side), rows in table.groupby(["task", "algorithm"], sort=False)
    ]
    differences = "\n".join(f"- {line}." for line in differing_conditions(table))
    versions = ", ".join(f"{name} {words.distinct(table[name])}" for name in VERSIONS if table[name].any())
    dates = words.distinct([table["date"].min(), table["date"].max()]).replace(" / ", " to ")
    return [
        markdown(pd.DataFrame(per_side)),
        f"Not alike:\n\n{differences}"
        if differences
        else f"Alike on both sides of every comparison: {', '.join(_CONDITIONS)}, final steps.",
        f"Machine: {words.distinct(table['machine'])}. Versions: {versions}.",
        f"Commit: {words.distinct(table['commit'])}. Evaluated: {dates}.",
        _commands(table),
    ]


def _commands(table: pd.DataFrame) -> str:
    commands = "\n".join(command for command in table["command"].unique() if command)
    return f"```\n{commands}\n```"


def _unfinished_lines(table: pd.DataFrame) -> list[str]:
    rows = [
        f"{row['task']}, {ALGORITHMS[row['algorithm']].label}, seed {row['seed']} ({words.steps(row['steps'])} steps)"
        for _, row in unfinished_rows(table).iterrows()
    ]
    return [f"Unfinished, and not counted: {'; '.join(rows)}."] if rows else []


def _runs(number: int) -> str:
    return f"{number} run" if number == 1 else f"{number} runs"
