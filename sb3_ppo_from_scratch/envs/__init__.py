"""Vector environments that SB3 does not bring: native Atari games, and any vector environment of Gymnasium.

Owns the public names of this room, loaded on first use so that Atari's extra stays optional; knows no algorithm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sb3_ppo_from_scratch.lazy_names import on_first_use

if TYPE_CHECKING:
    from sb3_ppo_from_scratch.envs.atari import AtariVecEnv
    from sb3_ppo_from_scratch.envs.gymnasium_adapter import GymnasiumVecEnv, as_vec_env

__all__ = ["AtariVecEnv", "GymnasiumVecEnv", "as_vec_env"]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "AtariVecEnv": "sb3_ppo_from_scratch.envs.atari",
        "GymnasiumVecEnv": "sb3_ppo_from_scratch.envs.gymnasium_adapter",
        "as_vec_env": "sb3_ppo_from_scratch.envs.gymnasium_adapter",
    },
)
