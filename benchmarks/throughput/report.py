"""The tables of a run, as Markdown that is also readable as it is.

Owns what is shown in which words; must not know how a figure is computed or measured.
"""

from __future__ import annotations

import pandas as pd

from benchmarks.throughput.ratios import Verdict, outcomes_agree, part_of_limit, steps_per_second, verdicts
from benchmarks.throughput.records import Results

_MIB = 2**20
_NONE = "–"


def report(results: Results) -> str:
    """Everything a reader wants to know about a run.

    :param results: of the run
    :return: Markdown
    """
    machine, conditions = results.machine, results.conditions
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version is not None)
    limits = ", ".join(f"{name} {flops / 1e9:,.0f} GFLOP/s" for name, flops in results.matmul_flops.items())
    parts = [
        markdown(ratio_table(results)),
        markdown(share_table(results)),
        "\n".join(notes(results)),
        f"Matrix multiplication on this machine: {limits}." if limits else "",
        f"{machine['processor']}, {machine['cores']} cores; {conditions.threads} threads a side, "
        f"{conditions.device}, seed {conditions.seed}, {conditions.pairs} pairs.",
        f"Python {machine['python']}, {versions}.",
        f"{results.started}: `{results.command}`",
    ]
    return "\n\n".join(part for part in parts if part)


def ratio_table(results: Results) -> pd.DataFrame:
    """How our side compares.

    :param results: of the run
    :return: one line for each comparison, formatted
    """
    lines = [_ratio_line(verdict) for result in results.rows for verdict in verdicts(result)]
    columns = ["work", "against", "target", "median", "min", "max", "ours", "theirs", "met"]
    return pd.DataFrame(lines, columns=columns)


def share_table(results: Results) -> pd.DataFrame:
    """Where the time of each side goes, and how near it comes to what the machine could do.

    :param results: of the run
    :return: one line for each side of a row that learns, formatted
    """
    lines = []
    for result in results.rows:
        for side, segment in result.looked_into.items():
            limit = part_of_limit(results, result, side)
            shares = {name: f"{share:.0%}" for name, share in (segment.shares or {}).items()}
            speed = f"{steps_per_second(result.segments[side]):,.0f}"
            limited = _NONE if limit is None else f"{limit:.0%}"
            lines.append({"work": result.row.name, "side": side, "fps": speed, **shares, "of matmul limit": limited})
    columns = ["work", "side", "fps", "environment", "policy", "update", "rest", "of matmul limit"]
    return pd.DataFrame(lines, columns=columns)


def notes(results: Results) -> list[str]:
    """What the tables leave out.

    :param results: of the run
    :return: lines
    """
    lines = []
    for result in results.rows:
        lines += result.skipped
        if result.error is not None:
            lines.append(f"{result.row.name}: incomplete. {result.error.splitlines()[-1]}")
        if (agree := outcomes_agree(result)) is not None:
            what = "observations served are" if result.row.kind == "memory" else "rewards and episodes are"
            lines.append(f"{result.row.name}: the {what} {'the same' if agree else 'NOT THE SAME'} on every side.")
        for side, segments in result.segments.items():
            peaks = [one.peak_bytes for one in segments if one.peak_bytes is not None]
            if peaks:
                lines.append(
                    f"{result.row.name}: with its update, the process of {side} grows by {max(peaks) / _MIB:,.0f} MiB."
                )
    return lines


def markdown(table: pd.DataFrame) -> str:
    """A table of text in aligned Markdown.

    :param table: of formatted cells
    :return: nothing for an empty table
    """
    if table.empty:
        return ""
    cells = [list(table.columns), *table.to_numpy().tolist()]
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(table.columns))]
    lines = ["| " + " | ".join(str(cell).ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _ratio_line(verdict: Verdict) -> dict[str, str]:
    def figure(value: float) -> str:
        return f"{value / _MIB:,.0f} MiB" if verdict.of_bytes else f"{value:,.0f} fps"

    return {
        "work": verdict.row,
        "against": verdict.peers,
        "target": f"{'≤' if verdict.of_bytes else '≥'} {verdict.target:g}",
        "median": f"{verdict.median:.2f}",
        "min": f"{min(verdict.ratios):.2f}",
        "max": f"{max(verdict.ratios):.2f}",
        "ours": figure(verdict.ours),
        "theirs": figure(verdict.theirs),
        "met": "yes" if verdict.is_met else "no",
    }
