"""Where and with what a run was made: processor, versions, commit.

Owns reading these facts; must not know what is measured.
"""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = (
    "sb3_ppo_from_scratch",
    "torch",
    "numpy",
    "stable_baselines3",
    "gymnasium",
    "ale-py",
    "opencv-python-headless",
    "mujoco",
    "sbx-rl",
    "jax",
)
_NOTED_FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16")


def describe_machine() -> dict[str, Any]:
    """Everything a reader needs to judge the figures.

    :return: JSON's types only; no path, no host name
    """
    cpu = _cpu()
    return {
        "processor": cpu.get("model name") or platform.processor() or platform.machine(),
        "cores": len(available_cores()),
        "flags": [flag for flag in _NOTED_FLAGS if flag in cpu.get("flags", "").split()],
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "versions": {package: _version(package) for package in _PACKAGES},
        "commit": _git("rev-parse", "HEAD"),
        # Results that are not committed yet do not count, only the code that made them.
        "uncommitted_changes": bool(_git("status", "--porcelain", "--", ":/", ":(top,exclude)benchmarks/results")),
    }


def available_cores() -> list[int]:
    """Numbers of the cores that this process may use.

    :return: ascending
    """
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _cpu() -> dict[str, str]:
    """What Linux says about its first core; empty elsewhere."""
    information = Path("/proc/cpuinfo")
    if not information.exists():
        return {}
    first_core = information.read_text(encoding="utf-8").split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first_core.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None  # an unpacked archive
    return answer.stdout.strip()
