"""A from-scratch PPO that takes the place of ``stable_baselines3.PPO`` by one changed import.

Owns the public names, loaded on first use; must not import the ``zoo`` room, nor torch before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_ppo_from_scratch.algorithm import PPO
    from sb3_ppo_from_scratch.callbacks.diagnostics import DiagnosticsCallback
    from sb3_ppo_from_scratch.core.advantages import compute_gae
    from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer

__version__ = "0.1.0"

_HOMES = {
    "DiagnosticsCallback": "sb3_ppo_from_scratch.callbacks.diagnostics",
    "PPO": "sb3_ppo_from_scratch.algorithm",
    "RolloutBuffer": "sb3_ppo_from_scratch.rollout.buffer",
    "compute_gae": "sb3_ppo_from_scratch.core.advantages",
}

__all__ = ["PPO", "DiagnosticsCallback", "RolloutBuffer", "compute_gae"]


def __getattr__(name: str) -> Any:
    # torch loads this package while it is itself being imported (see zoo/autoload.py), hence no eager imports.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
