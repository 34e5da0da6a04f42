"""Claim: a run with settings that are known to work provokes no warning, however often it is measured."""

from __future__ import annotations

import math
from typing import Any

import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import IdentityEnv
from stable_baselines3.common.vec_env import VecNormalize

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.callbacks import DiagnosticsCallback
from tests.cartpole import cartpole_model


@pytest.mark.parametrize("seed", [0, 1])
# Ours long enough for the critic to be judged.
@pytest.mark.parametrize("algorithm, n_steps", [(PPO, 30_000), (stable_baselines3.PPO, 8_192)])
def test_cartpole_with_the_zoos_settings_is_healthy(algorithm: Any, n_steps: int, seed: int) -> None:
    """With warnings as errors, as everywhere in these tests."""
    callback = DiagnosticsCallback(max_cost=math.inf)
    cartpole_model(algorithm, seed).learn(n_steps, callback=callback)
    assert callback.logger.name_to_value == {}  # the last row is dumped


def test_a_box_with_normalised_rewards_is_healthy() -> None:
    env = VecNormalize(make_vec_env("Pendulum-v1", 4, seed=0), gamma=0.9)
    model = PPO("MlpPolicy", env, learning_rate=1e-3, n_steps=512, gamma=0.9, seed=0, device="cpu")
    model.learn(61_440, callback=DiagnosticsCallback(max_cost=math.inf))


def test_a_task_that_is_solved_and_played_on_is_healthy() -> None:
    """The policy always acts alike at the end, and its updates come to nothing, as they should."""
    model = PPO(
        "MlpPolicy",
        make_vec_env(lambda: IdentityEnv(3, ep_length=20), 4, seed=0),
        learning_rate=3e-3,
        n_steps=64,
        batch_size=64,
        n_epochs=4,
        gamma=0.0,
        policy_kwargs={"net_arch": [16]},
        seed=0,
        device="cpu",
    )
    model.learn(40_960, callback=DiagnosticsCallback(max_cost=math.inf))
    with th.no_grad():
        chances = model.policy.get_distribution(th.arange(3)).distribution.probs.diagonal()
    assert chances.min() > 0.97


def test_a_healthy_a2c_is_healthy() -> None:
    model = stable_baselines3.A2C("MlpPolicy", make_vec_env("CartPole-v1", 8, seed=0), seed=0, device="cpu")
    model.learn(4_000, callback=DiagnosticsCallback(max_cost=math.inf))
