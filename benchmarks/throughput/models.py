"""Models of every side, from a name and the settings that all sides share.

Owns their construction; must not know what they are used for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from stable_baselines3.common.logger import Logger
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv

_HOMES = {"ours": "sb3_ppo_from_scratch", "stock": "stable_baselines3", "sbx": "sbx"}


def make_model(algorithm: str, env: VecEnv, settings: dict[str, Any], *, seed: int, device: str) -> OnPolicyAlgorithm:
    """A model that logs as usual, to nowhere.

    :param algorithm: "ours", "stock" or "sbx"
    :param env: to train on
    :param settings: of its constructor; ``lin_x`` falls linearly from x to 0
    :param seed: of everything random
    :param device: where torch computes; JAX chooses for itself
    :return: untrained
    :raises ValueError: if there is no such algorithm
    """
    if algorithm not in _HOMES:
        raise ValueError(f"There is no algorithm {algorithm!r}; choose from {', '.join(_HOMES)}.")
    arguments = {name: _value(setting) for name, setting in settings.items()}
    if algorithm != "sbx":
        arguments["device"] = device
    model: OnPolicyAlgorithm = import_module(_HOMES[algorithm]).PPO(env=env, seed=seed, **arguments)
    model.set_logger(Logger(folder=None, output_formats=[]))
    return model


def _value(setting: Any) -> Any:
    if isinstance(setting, str) and setting.startswith("lin_"):
        return LinearSchedule(float(setting.removeprefix("lin_")), 0.0, 1.0)
    return setting
