"""Where and with what the numbers of an experiment were made, in words.

Owns the sentence; must not know any experiment.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.head_to_head.provenance import installed_version, provenance

Facts = Mapping[str, Any]

_PACKAGES = ("torch", "numpy", "gymnasium", "stable_baselines3", "mujoco")


def facts() -> dict[str, Any]:
    """What can be said of this process: to be read when it begins, since files and packages change meanwhile.

    :return: text; empty where there is nothing to say
    """
    return {**provenance("cpu"), "mujoco": installed_version("mujoco")}


def made_by(rows: Iterable[Facts]) -> str:
    """Command, commit, versions and processor.

    :param rows: ``facts`` of all processes that made a part of the numbers, with or without other entries
    """
    everything = list(rows)

    def distinct(name: str) -> str:
        return " / ".join(dict.fromkeys(filter(None, (row.get(name) for row in everything))))

    commits = dict.fromkeys(_commit(str(row["commit"])) for row in everything)
    versions = ", ".join(f"{name} {found}" for name in _PACKAGES if (found := distinct(name)))
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    return (
        f"Made by `{command}` at commit {' / '.join(commits)}, Python {distinct('python')}, {versions}, "
        f"on {distinct('machine')}."
    )


def _commit(commit: str) -> str:
    name, mark, _ = commit.partition("+")
    return f"{name[:7]}{' with uncommitted changes' if mark else ''}" or "unknown"
