"""What a user hangs on ``learn()``: callbacks that watch a training run.

Owns the public names of this room, loaded on first use; must not be needed by any training without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sb3_ppo_from_scratch.lazy_names import on_first_use

if TYPE_CHECKING:
    from sb3_ppo_from_scratch.callbacks.diagnostics import DiagnosticsCallback, DiagnosticWarning

__all__ = ["DiagnosticWarning", "DiagnosticsCallback"]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "DiagnosticWarning": "sb3_ppo_from_scratch.callbacks.diagnostics",
        "DiagnosticsCallback": "sb3_ppo_from_scratch.callbacks.diagnostics",
    },
)
