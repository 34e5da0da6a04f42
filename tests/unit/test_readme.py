"""The README's map of equations points at lines that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| (.+) \| \[[^]]+\]\(([^)]+\.py)\) \| `(.+)` \|$",
    (ROOT / "README.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize("equation, file, line", ROWS, ids=[equation for equation, *_ in ROWS])
def test_the_line_of_an_equation_is_in_its_file(equation: str, file: str, line: str) -> None:
    assert line.replace("\\|", "|") in (ROOT / file).read_text(encoding="utf-8")


def test_every_equation_of_the_papers_objective_is_on_the_map() -> None:
    text = " ".join(equation for equation, *_ in ROWS)
    assert [number for number in ("(2)", "(6)", "(7)", "(8)", "(9)", "(11)", "(12)") if number not in text] == []


def test_every_relative_link_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []
