"""Identity environments, one for each action family: the best action is what the environment shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from stable_baselines3.common.envs import (
    IdentityEnv,
    IdentityEnvBox,
    IdentityEnvMultiBinary,
    IdentityEnvMultiDiscrete,
)
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_ppo_from_scratch import PPO

EPISODE_LENGTH = 20

# The environment, and the steps it is given.
TASKS: dict[str, tuple[Callable[[], gym.Env[Any, Any]], int]] = {
    "discrete": (lambda: IdentityEnv(3, ep_length=EPISODE_LENGTH), 2048),
    "box": (lambda: IdentityEnvBox(eps=0.3, ep_length=EPISODE_LENGTH), 6144),
    "multi_discrete": (lambda: IdentityEnvMultiDiscrete(2, ep_length=EPISODE_LENGTH), 3072),
    "multi_binary": (lambda: IdentityEnvMultiBinary(2, ep_length=EPISODE_LENGTH), 3072),
}


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("task", TASKS)
def test_the_identity_is_learnt_to_near_perfection(task: str, engine: str) -> None:
    make_env, n_steps = TASKS[task]
    model = PPO(
        "MlpPolicy",
        DummyVecEnv([make_env] * 4),
        n_steps=32,
        batch_size=32,
        n_epochs=4,
        learning_rate=3e-3,
        gamma=0.0,  # the next state does not depend on the action
        policy_kwargs={"net_arch": [16]},
        seed=0,
        device="cpu",
        engine=engine,
    )
    evaluation = Monitor(make_env())
    evaluation.action_space.seed(0)
    # Sampled actions, since the mode of an untrained policy may be right by luck.
    before, _ = evaluate_policy(model, evaluation, n_eval_episodes=10, deterministic=False)
    model.learn(n_steps)
    after, _ = evaluate_policy(model, evaluation, n_eval_episodes=10)
    assert float(before) < 0.7 * EPISODE_LENGTH  # type: ignore[arg-type]
    assert float(after) >= 0.95 * EPISODE_LENGTH  # type: ignore[arg-type]
