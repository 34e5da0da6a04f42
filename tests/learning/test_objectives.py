"""Every objective, and every other way to lose, learns the identity as the default does."""

from __future__ import annotations

from typing import Any

import pytest
import torch as th
from stable_baselines3.common.envs import IdentityEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_ppo_from_scratch import PPO

EPISODE_LENGTH = 20
OPTIONS: dict[str, dict[str, Any]] = {
    "kl_penalty": {"objective": "kl_penalty"},
    "adaptive_kl": {"objective": "adaptive_kl", "kl_target": 0.02},
    "unclipped": {"objective": "unclipped"},
    "desired_kl": {"desired_kl": 0.02},
    "openai_huber": {"value_clip": "openai", "clip_range_vf": 0.2, "value_loss": "huber"},
    "rollout": {"advantage_normalization": "rollout"},
    "terminal": {"truncation": "terminal"},
}
ENGINES: dict[str, dict[str, Any]] = {
    "numpy": {"engine": "auto"},
    "torch": {"engine": "auto", "policy_kwargs": {"net_arch": [16], "activation_fn": th.nn.SiLU}},
    "reference": {"engine": "reference"},
}


def make_env() -> Monitor[Any, Any]:
    return Monitor(IdentityEnv(3, ep_length=EPISODE_LENGTH))


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_identity_is_learnt(options: dict[str, Any], engine: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"policy_kwargs": {"net_arch": [16]}, **engine, **options}
    model = PPO(
        "MlpPolicy",
        DummyVecEnv([make_env] * 4),
        n_steps=32,
        batch_size=32,
        n_epochs=4,
        learning_rate=3e-3,
        gamma=0.0,
        seed=0,
        device="cpu",
        **settings,
    )
    evaluation = make_env()
    evaluation.action_space.seed(0)
    before, _ = evaluate_policy(model, evaluation, n_eval_episodes=10, deterministic=False)
    model.learn(2560)
    after, _ = evaluate_policy(model, evaluation, n_eval_episodes=10)
    assert float(before) < 0.7 * EPISODE_LENGTH  # type: ignore[arg-type]
    assert float(after) >= 0.95 * EPISODE_LENGTH  # type: ignore[arg-type]
