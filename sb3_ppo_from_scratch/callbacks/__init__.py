"""What a user hangs on ``learn()``: callbacks that watch a training run.

Owns the public names of this room, loaded on first use; must not be needed by any training without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_ppo_from_scratch.callbacks.diagnostics import DiagnosticsCallback, DiagnosticWarning

_HOMES = {
    "DiagnosticWarning": "sb3_ppo_from_scratch.callbacks.diagnostics",
    "DiagnosticsCallback": "sb3_ppo_from_scratch.callbacks.diagnostics",
}

__all__ = ["DiagnosticWarning", "DiagnosticsCallback"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
