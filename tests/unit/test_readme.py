"""What the READMEs point at exists: lines of code, files, and all 37 details."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "sb3_ppo_from_scratch"
INSIDE = (PACKAGE / "README.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("folder", [ROOT, PACKAGE], ids=["top", "package"])
def test_every_relative_link_leads_somewhere(folder: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (folder / link).exists()] == []


def test_all_37_details_are_listed_once() -> None:
    numbers = re.findall(r"^\| (\d+)(?:–(\d+))? \|", INSIDE, re.MULTILINE)
    listed = [n for first, last in numbers for n in range(int(first), int(last or first) + 1)]
    assert listed == list(range(1, 38))


def test_every_step_of_the_lineage_is_a_line_of_the_core() -> None:
    lineage = INSIDE.split("## From REINFORCE to PPO")[1]
    lines = re.findall(r": `([^`]+)` \|$", lineage, re.MULTILINE)
    core = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "core").glob("*.py"))
    assert len(lines) == 7
    assert [line for line in lines if line not in core] == []
