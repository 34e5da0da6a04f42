"""What an experiment leaves: the raw numbers, a picture, and for each claim of the documents whether it held.

Owns the three files and the words around a verdict; must not know any experiment.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.files import save_picture, write_atomically
from benchmarks.throughput.report import markdown

TABLE, PICTURE, REPORT = "table.csv", "picture.png", "report.md"
_VERDICTS = {True: "Held.", False: "Did not hold.", None: "Not judged."}


@dataclass(frozen=True)
class Claim:
    """One statement of a document, held against the numbers.

    :param said: what the document says, with its numbers
    :param found: what was measured here, with numbers
    :param holds: by the criterion that ``found`` states; None if there is not enough to judge by
    """

    said: str
    found: str
    holds: bool | None


@dataclass(frozen=True)
class Outcome:
    """Everything that an experiment has to say.

    :param title: of the report
    :param setting: what was measured, and how, as a paragraph
    :param table: raw numbers, one row for each measurement
    :param shown: the numbers that a reader needs, as text
    :param claims: judged
    :param figure: the picture, not saved yet
    :param made_by: a sentence on command, commit and versions
    """

    title: str
    setting: str
    table: pd.DataFrame
    shown: pd.DataFrame
    claims: tuple[Claim, ...]
    figure: Figure
    made_by: str


def write_outcome(out: Path, outcome: Outcome) -> None:
    """Write table, picture and report, and tell where they are; a crash leaves what was there before.

    :param out: folder, made if it is not there
    :param outcome: of the experiment
    """
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / TABLE, outcome.table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    save_picture(outcome.figure, out / PICTURE)
    write_atomically(out / REPORT, report(outcome))
    print("\n".join(str(out / name) for name in (TABLE, PICTURE, REPORT)))
    print(f"\n{verdict(outcome.claims)}\n\n{markdown(outcome.shown)}")


def report(outcome: Outcome) -> str:
    """The report as Markdown.

    :param outcome: of the experiment
    :return: with a link to the picture beside it
    """
    parts = [
        f"# {outcome.title}",
        outcome.setting,
        verdict(outcome.claims),
        markdown(outcome.shown),
        f"![{outcome.title}]({PICTURE})",
        f"All numbers: [{TABLE}]({TABLE}). {outcome.made_by}",
    ]
    return "\n\n".join(parts) + "\n"


def verdict(claims: tuple[Claim, ...]) -> str:
    """Whether the documents were right.

    :param claims: judged
    :return: a sentence that counts, and a list item for each claim
    """
    judged = [claim.holds for claim in claims if claim.holds is not None]
    counted = f"{sum(judged)} of {len(judged)} claims held here."
    if len(judged) < len(claims):
        counted += f" {len(claims) - len(judged)} could not be judged."
    items = [f"- **{_VERDICTS[claim.holds]}** Said: {claim.said} Found: {claim.found}" for claim in claims]
    return "\n".join([counted, "", *items])
