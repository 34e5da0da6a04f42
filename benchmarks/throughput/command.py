"""Measure how many times faster than its peers this PPO is, row by row, in turns.

Owns the command line, the progress shown and the files written; must not know how a row is measured or judged.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.arguments import at_least
from benchmarks.throughput import storage
from benchmarks.throughput.availability import runnable_part
from benchmarks.throughput.cases import chosen_rows
from benchmarks.throughput.interleave import measure_matmul, measure_row, n_turns
from benchmarks.throughput.machine import describe_machine
from benchmarks.throughput.picture import draw_ratios
from benchmarks.throughput.records import Conditions, Results, Row, RowResult
from benchmarks.throughput.report import report

_ENOUGH_PAIRS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line.

    :param parser: of this command
    """
    parser.add_argument("--only", help="letters of rows, separated by commas, such as A,B; default: all")
    parser.add_argument("--pairs", type=at_least(1), default=_ENOUGH_PAIRS, help="turns that every side gets")
    parser.add_argument("--json", type=Path, default=Path("logs/throughput.json"), help="raw times, after every row")
    parser.add_argument("--png", type=Path, default=Path("logs/throughput.png"), help="picture of the ratios")
    parser.add_argument("--device", default="cpu", help="where every side computes: cpu, cuda, ...")
    parser.add_argument("--threads", type=at_least(1), default=2, help="torch threads of a side, and cores it may use")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--redraw", type=Path, metavar="FILE", help="measure nothing: tables and picture of this JSON")


def run(arguments: argparse.Namespace) -> None:
    """Measure, save after every row, print the tables, draw the picture.

    :param arguments: as declared by ``add_arguments``
    :raises SystemExit: for rows that do not exist; at the end, if a row is incomplete
    """
    if arguments.redraw is not None:
        results = storage.load(arguments.redraw)
    else:
        results = _measure(arguments)
        print(f"Raw times: {arguments.json}")
    draw_ratios(results, arguments.png)
    print(f"Picture:   {arguments.png}\n\n{report(results)}")
    if incomplete := [result.row.name for result in results.rows if result.error is not None]:
        raise SystemExit(f"Incomplete: {'; '.join(incomplete)}")


def _measure(arguments: argparse.Namespace) -> Results:
    try:
        rows = chosen_rows(arguments.only)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    results = Results(
        command=shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        conditions=Conditions(arguments.pairs, arguments.seed, arguments.device, arguments.threads),
        machine=describe_machine(),
    )
    if arguments.pairs < _ENOUGH_PAIRS:
        print(f"--pairs {arguments.pairs}: for a look only; {_ENOUGH_PAIRS} or more tell how far to trust a ratio.")
    measure_rows(rows, results, arguments.json)
    return results


def measure_rows(rows: list[Row], results: Results, path: Path) -> None:
    """Measure row after row, saving after each.

    :param rows: as promised; what cannot run here is skipped with a line
    :param results: to complete
    :param path: of the JSON file
    """
    parts = [(row, *runnable_part(row, results.conditions.device, results.machine["flags"])) for row in rows]
    n_all = 1 + sum(n_turns(part, results.conditions) for _, part, _ in parts if part is not None)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("matrix multiplication", total=n_all)
        results.matmul_flops = measure_matmul(results.conditions)

        def advance(description: str) -> None:
            progress.update(task, advance=1, description=description)

        for row, part, skipped in parts:
            for line in skipped:
                progress.console.print(line, highlight=False, markup=False)
            if part is None:
                result = RowResult(replace(row, sides=(), comparisons=()))
            else:
                result = measure_row(part, results.conditions, advance)
            if result.error is not None:
                progress.console.print(f"{row.name}: {result.error}", highlight=False, markup=False)
            result.skipped = skipped
            results.rows.append(result)
            storage.save(results, path)
        progress.update(task, completed=n_all, description="done")
