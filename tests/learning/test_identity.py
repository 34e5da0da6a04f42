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

# The environment, the steps it is given, and the reward per step of acting at random.
TASKS: dict[str, tuple[Callable[[], gym.Env[Any, Any]], int, float]] = {
    "discrete": (lambda: IdentityEnv(3, ep_length=EPISODE_LENGTH), 2048, 1 / 3),
    "box": (lambda: IdentityEnvBox(eps=0.3, ep_length=EPISODE_LENGTH), 6144, 0.28),
    "multi_discrete": (lambda: IdentityEnvMultiDiscrete(2, ep_length=EPISODE_LENGTH), 3072, 1 / 4),
    "multi_binary": (lambda: IdentityEnvMultiBinary(2, ep_length=EPISODE_LENGTH), 3072, 1 / 4),
}


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("task", TASKS)
def test_the_identity_is_learnt_to_near_perfection(task: str, engine: str) -> None:
    make_env, n_steps, random_reward = TASKS[task]
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
    model.learn(n_steps)
    mean_reward, _ = evaluate_policy(model, Monitor(make_env()), n_eval_episodes=10)
    assert random_reward < 0.5
    assert float(mean_reward) >= 0.95 * EPISODE_LENGTH  # type: ignore[arg-type]
