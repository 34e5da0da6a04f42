"""Vector environments that SB3 does not bring: native Atari games, and any vector environment of Gymnasium.

Owns the public names of this room, loaded on first use so that Atari's extra stays optional; knows no algorithm.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3_ppo_from_scratch.envs.atari import AtariVecEnv
    from sb3_ppo_from_scratch.envs.gymnasium_adapter import GymnasiumVecEnv, as_vec_env

_HOMES = {
    "AtariVecEnv": "sb3_ppo_from_scratch.envs.atari",
    "GymnasiumVecEnv": "sb3_ppo_from_scratch.envs.gymnasium_adapter",
    "as_vec_env": "sb3_ppo_from_scratch.envs.gymnasium_adapter",
}

__all__ = ["AtariVecEnv", "GymnasiumVecEnv", "as_vec_env"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
