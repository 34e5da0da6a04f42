"""Claim: a run with settings that are known to work provokes no warning, however often it is measured."""

from __future__ import annotations

import math
from typing import Any

import pytest
import stable_baselines3
from stable_baselines3.common.env_util import make_vec_env

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.callbacks import DiagnosticsCallback
from tests.cartpole import cartpole_model


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("algorithm", [PPO, stable_baselines3.PPO])
def test_cartpole_with_the_zoos_settings_is_healthy(algorithm: Any, seed: int) -> None:
    """With warnings as errors, as everywhere in these tests."""
    callback = DiagnosticsCallback(max_cost=math.inf)
    cartpole_model(algorithm, seed).learn(8_192, callback=callback)
    assert callback.logger.name_to_value == {}  # the last row is dumped


def test_a_healthy_a2c_is_healthy() -> None:
    model = stable_baselines3.A2C("MlpPolicy", make_vec_env("CartPole-v1", 8, seed=0), seed=0, device="cpu")
    model.learn(4_000, callback=DiagnosticsCallback(max_cost=math.inf))
