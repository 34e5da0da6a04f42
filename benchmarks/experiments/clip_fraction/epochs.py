"""Training runs that note the clip fraction and the KL divergence of each of their epochs.

Owns the tasks and their settings; must not know what is made of the numbers.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

from benchmarks.experiments.clip_fraction.gridworld_env import GridworldEnv
from sb3_ppo_from_scratch import PPO

EPOCHS = (1, 4, 16)
GRIDWORLD = "gridworld"
N_STEPS = 512
# The document's settings on its gridworld; elsewhere Stable-Baselines3's own.
TASKS: dict[str, dict[str, Any]] = {
    GRIDWORLD: {"learning_rate": 3e-3, "ent_coef": 0.01},
    "CartPole-v1": {"learning_rate": 3e-4},
}


class _EpochLog(BaseCallback):
    """Reads what the update logged about each of its epochs, rollout by rollout."""

    def __init__(self, n_epochs: int) -> None:
        super().__init__()
        self._n_epochs = n_epochs
        self.rows: list[dict[str, float]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self._read()

    def _on_training_end(self) -> None:
        self._read()

    def _read(self) -> None:
        """What the update before this rollout left in the logger, which nobody dumps here."""
        logged = self.logger.name_to_value
        rollout = self.num_timesteps // N_STEPS
        if not rollout:
            return
        for epoch in range(self._n_epochs):
            clip_fraction = logged[f"train/clip_fraction_epoch_{epoch}"]
            approx_kl = logged[f"train/approx_kl_epoch_{epoch}"]
            row = {"rollout": rollout, "epoch": epoch + 1, "clip_fraction": clip_fraction, "approx_kl": approx_kl}
            self.rows.append(row)


def measured_run(task: str, n_epochs: int, seed: int, n_rollouts: int) -> pd.DataFrame:
    """Train, noting every epoch.

    :param task: of ``TASKS``
    :param n_epochs: uses of each rollout
    :param seed: of everything random
    :param n_rollouts: to train for
    :return: one row for each rollout and epoch
    """
    model = _model(task, seed, n_epochs=n_epochs, batch_size=64)
    log = _EpochLog(n_epochs)
    model.learn(n_rollouts * N_STEPS, callback=log, log_interval=None)
    rows = pd.DataFrame(log.rows)
    for place, (name, value) in enumerate((("task", task), ("n_epochs", n_epochs), ("seed", seed))):
        rows.insert(place, name, value)
    return rows


def first_minibatch_clip_fraction(seed: int) -> float:
    """The clip fraction where nothing has been updated yet: one epoch of one minibatch, the whole rollout.

    :param seed: of everything random
    """
    model = _model(GRIDWORLD, seed, n_epochs=1, batch_size=N_STEPS)
    model.learn(N_STEPS, log_interval=None)
    return float(model.logger.name_to_value["train/clip_fraction"])


def _model(task: str, seed: int, *, n_epochs: int, batch_size: int) -> PPO:
    env = make_vec_env(lambda: TimeLimit(GridworldEnv(), 100), 1, seed=seed) if task == GRIDWORLD else task
    settings: dict[str, Any] = {
        "n_steps": N_STEPS,
        "n_epochs": n_epochs,
        "batch_size": batch_size,
        "seed": seed,
        "device": "cpu",
    }
    return PPO("MlpPolicy", env, log_epochs=True, **settings, **TASKS[task])
