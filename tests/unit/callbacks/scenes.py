"""Environments with rewards to order, and the smallest runs that a callback can watch.

Owns tiny defaults; must not know which fault is being looked for.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from sb3_ppo_from_scratch.callbacks import DiagnosticsCallback, DiagnosticWarning
from tests.environments import HiddenStateEnv
from tests.faults.models import tiny_model

# From the reward, the number of steps taken so far, and whether the episode ends, to the reward.
Rule = Callable[[float, int, bool], float]


class Rewarded(gym.Wrapper[Any, Any, Any, Any]):
    """Pays by a rule of its own.

    :param env: whose reward is replaced
    :param rule: says by what
    """

    def __init__(self, env: gym.Env[Any, Any], rule: Rule) -> None:
        super().__init__(env)
        self._rule, self._n_steps = rule, 0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._n_steps += 1
        return observation, self._rule(float(reward), self._n_steps, terminated), terminated, truncated, info


def scene(rule: Rule = lambda reward, n_steps, ends: reward, n_envs: int = 2, **settings: Any) -> VecEnv:
    """Some environments.

    :param rule: of the reward
    :param n_envs: E
    :param settings: of ``HiddenStateEnv``
    :return: a vector environment
    """
    return DummyVecEnv([lambda: Monitor(Rewarded(HiddenStateEnv(**settings), rule))] * n_envs)


def vigilant(**settings: Any) -> DiagnosticsCallback:
    """A callback that measures at every update, however short the rollouts are."""
    return DiagnosticsCallback(**{"max_cost": math.inf, "min_steps": 1, **settings})


def watched(
    env: VecEnv,
    n_rollouts: int,
    callback: DiagnosticsCallback | None = None,
    change: Callable[[Any], None] = lambda model: None,
    **settings: Any,
) -> tuple[Any, list[str]]:
    """A run under the eyes of the callback.

    :param env: to train on
    :param n_rollouts: to learn from
    :param callback: None for a vigilant one that is soon convinced
    :param change: done to the model before it learns
    :param settings: of ``tiny_model``
    :return: the model, and the text of every diagnostic warning
    """
    model = tiny_model(env, **{"batch_size": 16, "n_epochs": 2, "ent_coef": 0.01, **settings})
    change(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", DiagnosticWarning)
        model.learn(
            n_rollouts * model.n_steps * env.num_envs,
            callback=callback or vigilant(patience=2),
        )
    return model, [str(warning.message) for warning in caught]


class Rows(KVWriter):
    """An output of SB3's logger that keeps what is dumped.

    :ivar rows: one dict a row
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        self.rows.append(dict(key_values))

    def close(self) -> None: ...

    def attach(self, model: Any) -> None:
        """Make a model log here and nowhere else."""
        model.set_logger(Logger(None, [self]))
