"""Make pictures, statistics and a Markdown report from tables of head-to-head runs.

Owns the command line and the files written; must not know what they show.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.arguments import output_folder
from benchmarks.files import save_picture, write_atomically
from benchmarks.head_to_head.references import REFERENCES
from benchmarks.report import document, pictures
from benchmarks.report.table import load, unfinished_rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line.

    :param parser: of this command
    """
    parser.add_argument(
        "results", type=Path, nargs="+", metavar="RESULTS", help="results.csv or its folder; several are joined"
    )
    parser.add_argument(
        "--out", type=output_folder, metavar="FOLDER", help="for report, summary and pictures; default: beside"
    )


def run(arguments: argparse.Namespace) -> None:
    """Read the tables, write the report, its summary and the pictures.

    :param arguments: as declared by ``add_arguments``
    :raises SystemExit: for tables that cannot be read or joined
    """
    first = arguments.results[0]
    folder = arguments.out or (first if first.is_dir() else first.parent)
    try:
        table = load(arguments.results)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    folder.mkdir(parents=True, exist_ok=True)
    for name, against in zip(document.PICTURES, (pictures.STEPS, pictures.TIME), strict=True):
        save_picture(pictures.learning_curves(table, REFERENCES, against), folder / name)
    write_atomically(folder / "summary.md", document.summary(table, REFERENCES))
    write_atomically(folder / "report.md", document.report(table, REFERENCES))
    print("\n".join(str(folder / name) for name in (*document.PICTURES, "summary.md", "report.md")))
    if n_unfinished := len(unfinished_rows(table)):
        print(f"Unfinished runs, in no score: {n_unfinished}")
