"""CartPole in Gymnasium's vector environments."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode, VectorEnv


def cart_poles(mode: AutoresetMode, vectorization: str = "sync", **settings: Any) -> VectorEnv[Any, Any, Any]:
    return gym.make_vec(
        "CartPole-v1",
        num_envs=3,
        vectorization_mode=vectorization,
        vector_kwargs={"autoreset_mode": mode},
        max_episode_steps=20,
        **settings,
    )
