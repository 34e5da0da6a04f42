"""A process that does one run: `python -m benchmarks.experiments.training.worker OUT RUN`.

Owns building environment and model from a recipe, and the result; must not know other runs.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from benchmarks.experiments.provenance import facts
from benchmarks.experiments.training.episodes import Episodes, EpisodesCallback, play_at_random
from benchmarks.experiments.training.runs import Run, read_result, write_result
from benchmarks.files import locked
from benchmarks.processes import BUSY
from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.rollout.actors import DivergedError


def main() -> None:
    """Do one run, unless it is finished or another process is at it."""
    out, run = Path(sys.argv[1]), Run(**json.loads(sys.argv[2]))
    run.result(out).parent.mkdir(parents=True, exist_ok=True)
    with locked(run.beside(out, ".lock"), wait=False) as held:
        if not held:
            raise SystemExit(BUSY)
        if read_result(out, run) is None:
            write_result(out, run, trained(run))


def trained(run: Run) -> dict[str, Any]:
    """Train from beginning to end.

    :param run: what is asked
    :return: how it went, JSON's types only
    """
    began, made_with = time.process_time(), facts()
    recipe = run.recipe
    env = VecNormalize(
        make_vec_env(run.task, recipe.n_envs, seed=run.seed),
        norm_obs=recipe.norm_obs,
        norm_reward=recipe.norm_reward,
        gamma=recipe.ppo.get("gamma", 0.99),
    )
    diverged = False
    if recipe.plays_at_random:
        episodes = play_at_random(env, run.steps, run.seed)
    else:
        episodes = Episodes()
        model = PPO("MlpPolicy", env, seed=run.seed, device="cpu", **recipe.ppo)
        diverged = not learn(model, run.steps, episodes)
    env.close()
    seconds = round(time.process_time() - began, 1)
    return {**episodes.summary(), "diverged": diverged, "cpu_seconds": seconds, **made_with}


def learn(model: PPO, steps: int, episodes: Episodes) -> bool:
    """Train until the end or until the policy is not made of numbers any more, which is a result as well.

    :param model: to train
    :param steps: environment steps over all environments
    :param episodes: to add to
    :return: whether the end was reached
    """
    try:
        model.learn(steps, callback=EpisodesCallback(episodes), log_interval=None)
    except DivergedError:
        return False
    return True


if __name__ == "__main__":
    main()
