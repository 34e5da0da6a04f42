"""The Markdown that the report consists of, its tables, and the command that writes it."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.image
import pytest

from benchmarks.head_to_head.references import Reference
from benchmarks.report import command, tables, words
from benchmarks.report.comparisons import Estimate
from benchmarks.report.document import PICTURES, differing_conditions, report, summary
from benchmarks.report.statistics import Interval
from tests.benchmarks.test_report_table import TASKS, a_realistic_table, a_row, ends, loaded, written

REFERENCES = {"A": (Reference(40.0, 1_000_000, "a zoo, its table: https://a.zoo"), Reference(45.0, None, "a paper"))}
FILES = sorted([*PICTURES, "report.md", "results.csv", "summary.md"])


def test_score_table(tmp_path: Path) -> None:
    rows = [*ends("A", {"ours": [15, 30], "sb3": [10.0]}), a_row("A", "sb3", 7, 1_500, 3.0)]
    ours, stock = tables.score_table(loaded(rows, tmp_path), REFERENCES).to_dict("records")
    assert ours == {
        "task": "A",
        "algorithm": "ours",
        "seeds": "2",
        "steps": "2 k",
        "final score": "22.5 ± 10.6",
        "IQM [95 % CI]": "22.5 [15.0, 30.0]",
        "training min": "0.3 (0.3–0.3)",
        "steps/s": "100 (100–100)",
        "published PPO": "40.0 (a zoo, 1 M); 45.0 (a paper)",
    }
    assert (stock["seeds"], stock["final score"], stock["IQM [95 % CI]"]) == ("1 (+1 unfinished)", "10.0", "10.0")


def test_published_scores_stand_only_where_they_are_comparable(tmp_path: Path) -> None:
    references = {"A": (Reference(4545.0, None, "another game", comparable=False), Reference(40.0, None, "a zoo"))}
    table = loaded(ends("A", {"ours": [3, 4, 5, 6], "sb3": [3, 4, 5, 6], "a2c": [1, 2, 3, 4]}), tmp_path)
    cells = tables.score_table(table, references).set_index("algorithm")["published PPO"].to_dict()
    assert cells == {"ours": "40.0 (a zoo)", "stock SB3 PPO": "40.0 (a zoo)", "SB3 A2C": "–"}
    (line,) = tables.summary_table(table, references).to_dict("records")
    assert line["published PPO"] == "40.0 (a zoo)"
    stock, _ = tables.comparison_table(table, references).to_dict("records")
    assert stock["of reference"] == "8.7%"  # 3 √(4/3) / 40
    assert "What is not comparable is in another unit" in report(table, references)
    assert "What is not comparable" not in report(table, REFERENCES)
    listed = tables.published_table(["A"], references)[["score", "comparable"]].to_numpy().tolist()
    assert listed == [["4,545.0", "no"], ["40.0", "yes"]]


def test_a_side_without_finished_runs_has_its_line(tmp_path: Path) -> None:
    (line,) = tables.score_table(loaded([a_row("A", "ours", 0, 10, 1.0)], tmp_path), {}).to_dict("records")
    assert (line["seeds"], line["steps"], line["final score"], line["published PPO"]) == (
        "0 (+1 unfinished)",
        "–",
        "–",
        "–",
    )


def test_comparison_table(tmp_path: Path) -> None:
    rows = ends("A", {"ours": [11, 12, 13, 14], "sb3": [1, 2, 3, 4], "a2c": [1, 2, 3], "trpo": [9.0]})
    stock, a2c, trpo = tables.comparison_table(loaded(rows, tmp_path), REFERENCES).to_dict("records")
    assert (stock["seeds"], stock["difference of means"]) == ("4 / 4", "10.0")
    assert stock["P(ours > theirs) [95 % CI]"] == "1.00"
    assert (stock["permutation p"], stock["smallest p"]) == ("0.029", "0.029")  # 2 / 70
    assert (stock["detectable difference"], stock["of reference"]) == ("3.46", "8.7%")
    assert stock["times as fast"] == "1.00 (1.00–1.00)"
    assert a2c["smallest p"] == "0.057"  # 2 / 35
    assert a2c["detectable difference"] == "–"
    assert (trpo["permutation p"], trpo["detectable difference"], trpo["of reference"]) == ("–", "–", "–")


def test_scores_without_spread_tell_no_limit(tmp_path: Path) -> None:
    rows = ends("A", {"ours": [500.0] * 10, "sb3": [500.0] * 10})
    (line,) = tables.comparison_table(loaded(rows, tmp_path), {}).to_dict("records")
    assert (line["permutation p"], line["detectable difference"], line["of reference"]) == ("1.000", "–", "–")
    assert line["P(ours > theirs) [95 % CI]"] == "0.50 [0.50, 0.50]"


def test_overall_and_anchor_table(tmp_path: Path) -> None:
    rows = [*ends("A", {"ours": [15, 30], "sb3": [10, 20]}), *ends("flat", {"ours": [0.0], "sb3": [0.0]})]
    table = loaded(rows, tmp_path)
    (line,) = tables.overall_table(table).to_dict("records")
    assert (line["against"], line["tasks"], line["mean ours"]) == ("stock SB3 PPO", "1", "1.50 [1.00, 2.00]")
    of_a, of_flat = tables.anchor_table(table).to_dict("records")
    assert list(of_a.values()) == ["A", "0.00", "1 k", "15.0", "stock SB3 PPO"]
    assert list(of_flat.values()) == ["flat", *"––––"]


def test_summary_table(tmp_path: Path) -> None:
    rows = [*ends("A", {"ours": [15, 30], "sb3": [10, 20]}), *ends("B", {"ours": [7.0]})]
    of_a, of_b = tables.summary_table(loaded(rows, tmp_path), REFERENCES).to_dict("records")
    assert (of_a["seeds"], of_a["ours"], of_a["stock SB3 PPO"]) == ("2 / 2", "22.5 ± 10.6", "15.0 ± 7.1")
    assert (of_a["permutation p"], of_a["training min"]) == ("0.667", "0.3 (0.3–0.3) / 0.3 (0.3–0.3)")
    assert of_a["published PPO"] == "40.0 (a zoo, 1 M)", "the first one"
    assert (of_b["seeds"], of_b["stock SB3 PPO"], of_b["times as fast"]) == ("1 / 0", "–", "–")


def test_report_has_every_task_and_marks_unfinished_runs(tmp_path: Path) -> None:
    table = loaded(a_realistic_table({"ours": (5, 2, 4, 3, 5, 3, 1), "sb3": (4, 2, 4, 3, 5, 3)}), tmp_path)
    text = report(table, REFERENCES)
    assert text.startswith("# Head-to-head: 38 runs finished, 6 unfinished\n")
    for task in TASKS:
        assert f"\n| {task} " in text
    assert "| 4 (+1 unfinished) |" in text
    section = text.split("## Unfinished runs")[1].split("##")[0]
    assert "500 k steps" in section
    assert section.count("\n| ") == 1 + 6
    assert "Acrobot-v1, ours, seed 4 (500 k steps)" in summary(table, REFERENCES)


def test_report_names_sources_conditions_versions_and_commands(tmp_path: Path) -> None:
    rows = ends("A", {"ours": [1.0], "sb3": [2.0]})
    rows[-1]["command"], rows[-1]["commit"] = "python -m benchmarks head-to-head --tasks A", "def+changes"
    text = report(loaded(rows, tmp_path), REFERENCES)
    for expected in (
        "| 45.0  | –     | yes        | a paper",
        "A Processor x 2",
        "python 3.11, torch 2.9, sb3_ppo_from_scratch 1.0.",
        "Commit: abc1234 / def+changes. Evaluated: 2001-02-03T04:05:06+00:00.",
        "```\npython -m benchmarks head-to-head\npython -m benchmarks head-to-head --tasks A\n```",
        "- A: commit is abc1234 for ours, abc1234 / def+changes for stock SB3 PPO.",
        "generator seeded with 0",
        *PICTURES,
    ):
        assert expected in text
    assert "sbx " not in text.split("Versions:")[1], "what is not installed has no version"


def test_differing_conditions(tmp_path: Path) -> None:
    rows = ends("A", {"ours": [1.0], "sb3": [2.0]})
    assert differing_conditions(loaded(rows, tmp_path)) == []
    for row in rows[2:]:
        row.update(threads=2, steps=2 * row["steps"])
    assert differing_conditions(loaded(rows, tmp_path)) == [
        "A: threads is 1 for ours, 2 for stock SB3 PPO",
        "A: final steps is 2,000 for ours, 4,000 for stock SB3 PPO",
    ]


def test_environments_and_versions_are_conditions(tmp_path: Path) -> None:
    rows = ends("A", {"ours": [1.0], "sb3": [2.0]})
    for row in rows[:2]:
        row.update(environment="AtariVecEnv", numpy="2.1", ale_py="0.12")
    table = loaded(rows, tmp_path)
    assert differing_conditions(table) == [
        "A: environment is AtariVecEnv for ours, DummyVecEnv for stock SB3 PPO",
        "A: numpy is 2.1 for ours, – for stock SB3 PPO",
        "A: ale_py is 0.12 for ours, – for stock SB3 PPO",
    ]
    assert "- A: environment is AtariVecEnv for ours, DummyVecEnv for stock SB3 PPO.\n" in report(table, REFERENCES)


def test_conditions_of_several_commits_are_compared_as_sets(tmp_path: Path) -> None:
    rows = ends("A", {"ours": [1.0, 1.0], "sb3": [2.0, 2.0]})
    for row, commit in zip(rows, ("a", "a", "b", "b", "b", "b", "a", "a"), strict=True):
        row["commit"] = commit
    table = loaded(rows, tmp_path)
    assert differing_conditions(table) == []
    assert "Alike on both sides of every comparison: policy, environment, n_envs, " in report(table, REFERENCES)


def test_how_numbers_are_written() -> None:
    assert [words.score(value) for value in (9.994, -20.7, 1234.56)] == ["9.99", "-20.7", "1,234.6"]
    assert [words.steps(*many) for many in ((100_000,), (1_000_000, 1_500_000), (500,))] == [
        "100 k",
        "1–1.5 M",
        "0.5 k",
    ]
    assert words.estimate(Estimate(12.0, Interval(9.0, 15.0))) == "12.0 [9.0, 15.0]"
    assert words.median_and_range([3, 1, 2], decimals=1) == "2.0 (1.0–3.0)"
    assert words.distinct(["b", "", "a", "b"]) == "b / a"


def run(*results: Path, out: Path | None = None) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    command.run(parser.parse_args([*map(str, results), *(["--out", str(out)] if out else [])]))


def test_command_writes_beside_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [*ends("A", {"ours": [15, 30], "sb3": [10, 20]}), a_row("A", "sb3", 9, 500, 0.0)]
    run(written(rows, tmp_path / "results.csv"))
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    for name in PICTURES:
        height, width, _ = matplotlib.image.imread(tmp_path / name).shape
        assert width > 1000
        assert height > 500
    printed = capsys.readouterr().out
    assert str(tmp_path / "report.md") in printed
    assert "Unfinished runs, in no score: 1" in printed


def test_command_joins_folders_and_repeats_itself_exactly(tmp_path: Path) -> None:
    written(a_realistic_table({"ours": (3, 2)}), tmp_path / "one" / "results.csv")
    written(a_realistic_table({"sb3": (3, 2)}), tmp_path / "other" / "results.csv")
    texts = []
    for out in (tmp_path / "new" / "first", tmp_path / "new" / "second"):
        run(tmp_path / "one", tmp_path / "other", out=out)
        texts.append([(out / name).read_bytes() for name in FILES if name != "results.csv"])
    assert texts[0] == texts[1]


def test_a_bad_table_is_told_before_anything_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.md").write_text("yesterday's")
    rows = ends("A", {"ours": [1.0]})
    for row in rows:
        del row["score"]
    written(rows, tmp_path / "results.csv")
    with pytest.raises(SystemExit, match="missing score"):
        run(tmp_path)
    assert (tmp_path / "report.md").read_text() == "yesterday's"
    with pytest.raises(SystemExit):
        run(tmp_path, out=tmp_path / "report.md")
    assert "report.md: is a file; give a folder" in capsys.readouterr().err
