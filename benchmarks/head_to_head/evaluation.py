"""The score of a model: raw returns on Stable-Baselines3's own environments.

Owns that an evaluation is the same for every side and leaves no trace in training; must not know when it is made.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import unwrap_vec_normalize

from benchmarks.head_to_head.experiment import Experiment
from benchmarks.head_to_head.tasks import Task

_JAX_KEYS = ("key", "noise_key")  # of SBX's policies, which have their own generator


def episode_returns(
    model: OnPolicyAlgorithm, experiment: Experiment, task: Task, n_episodes: int, seed: int
) -> list[float]:
    """Play whole episodes, always the same ones for the same seed.

    The environments are made anew each time: SB3's ``EpisodicLifeEnv`` would go on with a game that the last
    evaluation, and so an older policy, had left unfinished.

    :param model: to evaluate, at any time between two updates
    :param experiment: that makes the environments
    :param task: which actions to take, on how many environments
    :param n_episodes: at least 1
    :param seed: of environments and actions
    :return: [n_episodes] unclipped, unnormalised returns
    """
    with _generators_kept(model):
        set_random_seed(seed)
        env = experiment.evaluation_environments(min(task.n_eval_envs, n_episodes), seed)
        try:
            seen, trained = unwrap_vec_normalize(env), model.get_vec_normalize_env()
            if seen is not None and trained is not None and trained.norm_obs:
                seen.obs_rms = copy.deepcopy(trained.obs_rms)
            returns, _ = evaluate_policy(
                model, env, n_episodes, deterministic=task.deterministic, return_episode_rewards=True
            )
        finally:
            env.close()
    assert isinstance(returns, list)
    return returns


@contextmanager
def _generators_kept(model: OnPolicyAlgorithm) -> Iterator[None]:
    """Training draws from global generators; it must not notice that something else did."""
    python, numpy = random.getstate(), np.random.get_state()
    policy: Any = model.policy
    keys = {name: getattr(policy, name) for name in _JAX_KEYS if hasattr(policy, name)}
    devices = [model.device] if model.device.type == "cuda" else []
    with th.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            for name, key in keys.items():
                setattr(policy, name, key)
