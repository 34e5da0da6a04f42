"""What rl_zoo3's settings turn into: environments to train and to evaluate on, and an untrained model.

Owns that every side is built from the same settings in the same way; must not know how training goes.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from rl_zoo3.exp_manager import ExperimentManager
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv

from benchmarks.head_to_head.algorithms import Algorithm
from benchmarks.head_to_head.hyperparameters import entry_of
from benchmarks.head_to_head.tasks import Task
from sb3_ppo_from_scratch.zoo.native_atari import SETTING
from sb3_ppo_from_scratch.zoo.registration import register


class Experiment:
    """One algorithm on one task.

    :param task: to train and evaluate on
    :param algorithm: to train
    :param seed: of everything random in training
    :param threads: processes that play Atari games natively
    :param device: where torch computes
    :param folder: that libraries may look into; nothing is written there
    """

    def __init__(
        self, task: Task, algorithm: Algorithm, *, seed: int, threads: int = 1, device: str = "cpu", folder: Path
    ) -> None:
        register()
        if task.registration is not None:
            import_module(task.registration).register()
        self.algorithm, self.seed, self.device, self._threads = algorithm, seed, device, threads
        settings = entry_of(task.name, algorithm.entries)
        self.policy = str(settings["policy"])
        if algorithm.name != "ours":
            settings.pop(SETTING, None)
        # Any number of steps will do: how long to train is said to the model.
        self._manager = ExperimentManager(
            argparse.Namespace(), algorithm.entries, task.name, str(folder), n_timesteps=1, seed=seed, verbose=0
        )
        self._arguments, self._manager.env_wrapper, _, self._manager.vec_env_wrapper = (
            self._manager._preprocess_hyperparams(settings)
        )

    def training_environments(self) -> VecEnv:
        """The environments that the settings ask for, native for ours where they allow it.

        :return: seeded, not yet reset
        """
        manager: Any = self._manager
        if not manager.native_atari:
            return self._manager.create_envs(manager.n_envs, no_log=True)
        from sb3_ppo_from_scratch.envs import AtariVecEnv

        return AtariVecEnv(
            manager.env_name.gym_id,
            manager.n_envs,
            self.seed,
            frame_stack=manager.frame_stack or 1,
            env_kwargs=manager.env_kwargs,
            n_processes=min(self._threads, manager.n_envs),
        )

    def evaluation_environments(self, n_envs: int, seed: int) -> VecEnv:
        """Stable-Baselines3's own environments, which count rewards before any wrapper changes them.

        :param n_envs: how many
        :param seed: of the first; the others count on from it
        :return: not yet reset
        """
        env = self._manager.create_envs(n_envs, eval_env=True)
        env.seed(seed)
        return env

    def untrained_model(self, env: VecEnv) -> OnPolicyAlgorithm:
        """A model with the settings' hyperparameters.

        :param env: to train on
        :return: with random weights
        """
        set_random_seed(self.seed)
        model: OnPolicyAlgorithm = self.algorithm.load_class()(
            env=env, seed=self.seed, device=self.device, verbose=0, **self._own_arguments()
        )
        return model

    def _own_arguments(self) -> dict[str, Any]:
        if self.algorithm.name != "sbx" or "policy_kwargs" not in self._arguments:
            return self._arguments
        return {**self._arguments, "policy_kwargs": _in_jax(self._arguments["policy_kwargs"])}


def _in_jax(policy_kwargs: dict[str, Any]) -> dict[str, Any]:
    """SBX's policies have the same arguments, but activations are functions of JAX, not modules of torch."""
    if "activation_fn" not in policy_kwargs:
        return policy_kwargs
    name = policy_kwargs["activation_fn"].__name__.lower()
    return {**policy_kwargs, "activation_fn": getattr(import_module("flax.linen"), name)}
