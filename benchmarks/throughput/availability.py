"""What this machine lacks for a row or a side, and what remains of the row without it.

Owns the reasons for skipping; must not know how a row is run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from importlib.util import find_spec

from benchmarks.throughput.records import Comparison, Row, Side

# The extra of this package that brings a module.
_EXTRAS = {"ale_py": "atari", "cv2": "atari", "mujoco": "mujoco", "sbx": "sbx"}
_BF16_FLAGS = ("avx512_bf16", "amx_bf16")


def runnable_part(row: Row, device: str, cpu_flags: Collection[str]) -> tuple[Row | None, list[str]]:
    """The row without the sides that cannot run here.

    :param row: as promised
    :param device: where it is to run
    :param cpu_flags: of the processor
    :return: None if nothing is left to compare, and a line for everything that is left out
    """
    reasons = {side.name: _obstacle(side, row, device, cpu_flags) for side in row.sides}
    ours = row.sides[0].name
    if (reason := reasons[ours]) is not None:
        return None, [f"{row.name}: skipped, {reason}."]
    sides = tuple(side for side in row.sides if reasons[side.name] is None)
    lines = [f"{row.name}: without {name}, {reason}." for name, reason in reasons.items() if reason is not None]
    names = {side.name for side in sides}
    present = [Comparison(tuple(p for p in one.peers if p in names), one.target) for one in row.comparisons]
    comparisons = tuple(one for one in present if one.peers)
    return (replace(row, sides=sides, comparisons=comparisons) if comparisons else None), lines


def _obstacle(side: Side, row: Row, device: str, cpu_flags: Collection[str]) -> str | None:
    for module in (*row.needs, *side.needs):
        if find_spec(module) is None:
            return f"{module} is not installed (pip install 'sb3_ppo_from_scratch[{_EXTRAS[module]}]')"
    wants_bf16 = side.arguments.get("precision") == "bf16"
    if wants_bf16 and device == "cpu" and not any(flag in cpu_flags for flag in _BF16_FLAGS):
        return "this processor has neither AVX512_BF16 nor AMX"
    return None
