"""A run on disk.

Owns that a file is complete or not there; must not know what is in a run.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.files import write_atomically
from benchmarks.throughput.records import Results, from_json, to_json


def save(results: Results, path: Path) -> None:
    """Write a run; a crash in the middle leaves what was there before.

    :param results: of the run
    :param path: of the JSON file, whose folder is made if need be
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(to_json(results), indent=1, ensure_ascii=False) + "\n")


def load(path: Path) -> Results:
    """Read a run.

    :param path: of a file that ``save`` wrote
    :return: the run
    """
    return from_json(json.loads(path.read_text(encoding="utf-8")))
