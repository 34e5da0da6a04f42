"""Claims about what a benchmark says of the code that it ran with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.throughput import machine


@pytest.mark.parametrize(
    "changed, expected",
    [(None, False), ("benchmarks/results/table.csv", False), ("benchmarks/code.py", True), ("package/code.py", True)],
)
def test_changed_code_counts_and_new_results_do_not(
    changed: str | None, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "benchmarks" / "throughput"
    folder.mkdir(parents=True)
    for command in (
        ["init", "--quiet"],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "--allow-empty", "--message", "begin"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    if changed is not None:
        (tmp_path / changed).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / changed).write_text("new", encoding="utf-8")
    monkeypatch.setattr(machine, "__file__", str(folder / "machine.py"))
    described = machine.describe_machine()
    assert len(described["commit"]) == 40
    assert described["uncommitted_changes"] == expected
