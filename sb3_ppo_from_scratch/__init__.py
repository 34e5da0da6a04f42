"""A from-scratch PPO that takes the place of ``stable_baselines3.PPO`` by one changed import.

Owns the public names, loaded on first use; must not import the ``zoo`` room, nor torch before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sb3_ppo_from_scratch.lazy_names import on_first_use

if TYPE_CHECKING:
    from sb3_ppo_from_scratch.algorithm import PPO
    from sb3_ppo_from_scratch.callbacks.diagnostics import DiagnosticsCallback
    from sb3_ppo_from_scratch.core.advantages import compute_gae
    from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer

__version__ = "0.1.0"

__all__ = ["PPO", "DiagnosticsCallback", "RolloutBuffer", "compute_gae"]

# torch loads this package while it is itself being imported (see zoo/autoload.py), hence no eager imports.
__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "DiagnosticsCallback": "sb3_ppo_from_scratch.callbacks.diagnostics",
        "PPO": "sb3_ppo_from_scratch.algorithm",
        "RolloutBuffer": "sb3_ppo_from_scratch.rollout.buffer",
        "compute_gae": "sb3_ppo_from_scratch.core.advantages",
    },
)
