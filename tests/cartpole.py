"""CartPole with the settings that rl_zoo3 found for it: learnt within some 50,000 steps."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import LinearSchedule


def cartpole_model(algorithm: Any, seed: int, **settings: Any) -> Any:
    """Untrained, on eight environments.

    :param algorithm: PPO, ours or stock
    :param seed: of everything random
    :param settings: further arguments of the algorithm, or others than rl_zoo3's
    """
    zoo = {
        "n_steps": 32,
        "batch_size": 256,
        "n_epochs": 20,
        "gamma": 0.98,
        "gae_lambda": 0.8,
        "learning_rate": LinearSchedule(1e-3, 0.0, 1.0),
        "clip_range": LinearSchedule(0.2, 0.0, 1.0),
    }
    env = make_vec_env("CartPole-v1", n_envs=8, seed=seed)
    return algorithm("MlpPolicy", env, seed=seed, device="cpu", **{**zoo, **settings})
