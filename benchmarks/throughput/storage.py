"""A run on disk.

Owns that a file is complete or not there; must not know what is in a run.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks.throughput.records import Results, from_json, to_json


def save(results: Results, path: Path) -> None:
    """Write a run; a crash in the middle leaves what was there before.

    :param results: of the run
    :param path: of the JSON file, whose folder is made if need be
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(to_json(results), file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def load(path: Path) -> Results:
    """Read a run.

    :param path: of a file that ``save`` wrote
    :return: the run
    """
    return from_json(json.loads(path.read_text(encoding="utf-8")))
