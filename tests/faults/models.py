"""The smallest models that can show a fault, and what their logs say.

Owns tiny defaults; must not know which fault is being looked for.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from sb3_ppo_from_scratch import PPO

ENGINES = ("auto", "reference")


def tiny_model(
    env: gym.Env[Any, Any] | VecEnv,
    algorithm: type[OnPolicyAlgorithm] = PPO,
    **settings: Any,
) -> Any:
    """A PPO whose whole rollout is one minibatch and whose update is one step.

    Its logged ``train/approx_kl`` and ``train/clip_fraction`` are thus those of the first minibatch, before any
    step: zero by definition, unless what is stored is not what was sampled or seen.

    :param env: to train on
    :param algorithm: ours, or stock PPO to document its fault
    :param settings: arguments that replace the tiny defaults
    :return: an untrained model
    """
    is_dict = isinstance(env.observation_space, spaces.Dict)
    defaults: dict[str, Any] = {
        "policy": "MultiInputPolicy" if is_dict else "MlpPolicy",
        "n_steps": 16,
        "batch_size": 16 * getattr(env, "num_envs", 1),
        "n_epochs": 1,
        "seed": 0,
        "device": "cpu",
        "policy_kwargs": {"net_arch": [8]},
    }
    return algorithm(env=env, **{**defaults, **settings})


def logged(model: OnPolicyAlgorithm, key: str) -> float:
    """What the last update logged under ``train/``.

    :param model: after ``learn``
    :param key: without its prefix
    :return: the number
    """
    return float(model.logger.name_to_value[f"train/{key}"])


def optimizer_steps(model: OnPolicyAlgorithm) -> int:
    """How many steps the policy's Adam has taken.

    :param model: trained or not
    :return: the count
    """
    states = model.policy.optimizer.state.values()
    return int(max((state["step"].item() for state in states), default=0))


class Assign(BaseCallback):
    """Assigns attributes of the model at one step of the training, as an annealing callback would.

    :param at_call: the step, counted in calls from 1
    :param attributes: names and values
    """

    def __init__(self, at_call: int, **attributes: Any) -> None:
        super().__init__()
        self._at_call, self._attributes = at_call, attributes

    def _on_step(self) -> bool:
        if self.n_calls == self._at_call:
            for name, value in self._attributes.items():
                setattr(self.model, name, value)
        return True
