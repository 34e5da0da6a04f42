"""A run on disk: complete, or as it was before."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.throughput import storage
from benchmarks.throughput.cases import ROWS
from benchmarks.throughput.records import RowResult
from tests.benchmarks.runs import a_finished_run, a_run


def test_a_run_survives_json(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "run.json"
    run = a_finished_run()
    storage.save(run, path)
    assert storage.load(path) == run


def test_every_row_survives_json(tmp_path: Path) -> None:
    run = a_run([RowResult(row) for row in ROWS])
    storage.save(run, tmp_path / "run.json")
    assert storage.load(tmp_path / "run.json") == run


def test_a_crash_while_saving_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    storage.save(a_run(), path)
    before = path.read_text(encoding="utf-8")
    broken = a_finished_run()
    broken.machine["cores"] = object()  # no JSON: fails in the middle of writing
    with pytest.raises(TypeError):
        storage.save(broken, path)
    assert path.read_text(encoding="utf-8") == before


def test_nothing_unfinished_is_left_behind(tmp_path: Path) -> None:
    storage.save(a_finished_run(), tmp_path / "run.json")
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
