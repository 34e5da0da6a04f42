"""Train on one environment through rl_zoo3, score it before and after, and draw the learning curve.

Owns the story that `make train` tells; must not know hyperparameters (myppo.yml has them) or how PPO learns.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rl_zoo3.exp_manager import ExperimentManager
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import load_results
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import unwrap_vec_normalize

from benchmarks.arguments import at_least, output_folder
from benchmarks.learning_curve import draw_learning_curve
from sb3_ppo_from_scratch.zoo.registration import ALGORITHM, register


class Score(NamedTuple):
    """Raw episode returns of one evaluation, summarised.

    :param mean: over episodes
    :param std: over episodes
    """

    mean: float
    std: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line.

    :param parser: of this command
    """
    parser.add_argument("--env", default="PongNoFrameskip-v4", help="id of a registered environment")
    parser.add_argument("--steps", type=at_least(1), default=100_000, help="environment steps to train for")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--eval-episodes", type=at_least(1), default=3, help="episodes before and after training")
    parser.add_argument("--out", type=output_folder, default="logs", help="folder for the model and the picture")


def run(arguments: argparse.Namespace) -> None:
    """Evaluate, train, save, evaluate, draw; every number is printed, every file named.

    :param arguments: as declared by ``add_arguments``
    """
    register()
    set_random_seed(arguments.seed)
    manager = ExperimentManager(
        arguments,
        ALGORITHM,
        arguments.env,
        str(arguments.out),
        n_timesteps=arguments.steps,
        eval_freq=-1,
        seed=arguments.seed,
        log_interval=20,
        show_progress=True,
    )
    experiment = manager.setup_experiment()
    assert experiment is not None
    model, _ = experiment

    before = _score(manager, model, arguments.eval_episodes)
    print(f"Before training: {before.mean:.1f} ± {before.std:.1f} over {arguments.eval_episodes} episodes")
    manager.learn(model)
    manager.save_trained_model(model)
    after = _score(manager, model, arguments.eval_episodes)

    folder = Path(manager.save_path)
    picture = folder / "learning_curve.png"
    draw_learning_curve(load_results(str(folder)), arguments.env, (before.mean, after.mean), picture)
    print(
        f"{arguments.env}, {model.num_timesteps} steps, raw score over {arguments.eval_episodes} episodes:\n"
        f"  before training  {before.mean:9.1f} ± {before.std:.1f}\n"
        f"  after training   {after.mean:9.1f} ± {after.std:.1f}\n"
        f"Model:          {folder / (arguments.env + '.zip')}\n"
        f"Learning curve: {picture}"
    )


def _score(manager: ExperimentManager, model: BaseAlgorithm, n_episodes: int) -> Score:
    env = manager.create_envs(n_envs=1, eval_env=True)
    if (own := model.get_vec_normalize_env()) is not None:
        normalized = unwrap_vec_normalize(env)
        assert normalized is not None
        normalized.obs_rms = own.obs_rms  # what the policy was trained to read
    returns, _ = evaluate_policy(
        model,
        env,
        n_eval_episodes=n_episodes,
        deterministic=manager.deterministic_eval,
        return_episode_rewards=True,
    )
    env.close()
    return Score(float(np.mean(returns)), float(np.std(returns)))
