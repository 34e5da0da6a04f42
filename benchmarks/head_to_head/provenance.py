"""Where and with what a row was made: versions, commit, machine.

Owns the columns that are the same for every row of a process; must not know what a row says.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import torch as th

from benchmarks.head_to_head.table import PACKAGES, Row
from benchmarks.throughput.machine import describe_machine

# Where the name of the distribution differs from the module's.
_DISTRIBUTIONS = {"sbx": "sbx-rl"}


def provenance(device: str) -> Row:
    """The columns ``commit``, ``machine``, ``python`` and the versions.

    :param device: where torch computes
    :return: text; empty where there is nothing to say
    """
    machine = describe_machine()
    commit = machine["commit"] or ""
    return {
        "commit": f"{commit}+changes" if commit and machine["uncommitted_changes"] else commit,
        "machine": f"{machine['processor']} x {machine['cores']}{_accelerator(device)}",
        "python": machine["python"],
        **{package: installed_version(_DISTRIBUTIONS.get(package, package)) for package in PACKAGES},
    }


def _accelerator(device: str) -> str:
    return f", {th.cuda.get_device_name(device)}" if device.startswith("cuda") else ""


def installed_version(distribution: str) -> str:
    """The version of a package.

    :param distribution: its name
    :return: empty if it is not installed
    """
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
