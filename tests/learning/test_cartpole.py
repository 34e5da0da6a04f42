"""CartPole, the smallest task in which an action matters later, is solved by either engine."""

from __future__ import annotations

import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from sb3_ppo_from_scratch import PPO
from tests.cartpole import cartpole_model


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_cartpole_is_learnt(engine: str) -> None:
    model = cartpole_model(PPO, seed=0, engine=engine)
    evaluation = make_vec_env("CartPole-v1", n_envs=4, seed=100)
    # Sampled actions, since the mode of an untrained policy may balance the pole by luck.
    before, _ = evaluate_policy(model, evaluation, n_eval_episodes=8, deterministic=False)
    model.learn(40_000)
    after, _ = evaluate_policy(model, evaluation, n_eval_episodes=8, deterministic=False)
    assert float(before) < 50  # type: ignore[arg-type]
    assert float(after) > 300  # type: ignore[arg-type]
