"""CartPole, the smallest task in which an action matters later, is solved by either engine."""

from __future__ import annotations

import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.utils import LinearSchedule

from sb3_ppo_from_scratch import PPO


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_cartpole_is_learnt(engine: str) -> None:
    model = PPO(
        "MlpPolicy",
        make_vec_env("CartPole-v1", n_envs=8, seed=0),
        n_steps=32,
        batch_size=128,
        n_epochs=10,
        gamma=0.98,
        gae_lambda=0.8,
        learning_rate=LinearSchedule(2e-3, 0.0, 1.0),
        seed=0,
        device="cpu",
        engine=engine,
    )
    evaluation = make_vec_env("CartPole-v1", n_envs=4, seed=100)
    # Sampled actions, since the mode of an untrained policy may balance the pole by luck.
    before, _ = evaluate_policy(model, evaluation, n_eval_episodes=8, deterministic=False)
    model.learn(40_000)
    after, _ = evaluate_policy(model, evaluation, n_eval_episodes=8, deterministic=False)
    assert float(before) < 50  # type: ignore[arg-type]
    assert float(after) > 300  # type: ignore[arg-type]
