"""What a buffer holds, and what it serves."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.buffers import RolloutBuffer as StockBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import FakeImageEnv
from stable_baselines3.common.vec_env import VecEnv

from benchmarks.throughput.memory import digest_of_served, fill, measure_buffer
from benchmarks.throughput.models import make_model
from sb3_ppo_from_scratch import RolloutBuffer

STEPS, ENVS, SHAPE = 8, 2, (4, 36, 36)


def images() -> VecEnv:
    kwargs = {"screen_height": 36, "screen_width": 36, "n_channels": 4, "channel_first": True}
    return make_vec_env(FakeImageEnv, n_envs=ENVS, seed=0, env_kwargs=kwargs)


def filled(kind: Any) -> Any:
    env = images()
    buffer = kind(STEPS, env.observation_space, env.action_space, device="cpu", n_envs=ENVS)
    observations = np.random.default_rng(5).integers(256, size=(STEPS, ENVS, *SHAPE), dtype=np.uint8)
    for i, now in enumerate(observations):
        values = th.full((ENVS,), float(i)) + th.tensor([0.0, 0.5])
        buffer.add(now, np.zeros((ENVS, 1)), np.zeros(ENVS), np.zeros(ENVS), values, th.zeros(ENVS))
    buffer.compute_returns_and_advantage(last_values=th.zeros(ENVS), dones=np.zeros(ENVS, dtype=bool))
    return buffer


def test_the_digest_knows_no_order_but_every_pixel() -> None:
    ours, stock = filled(RolloutBuffer), filled(StockBuffer)
    assert digest_of_served(ours) == digest_of_served(ours) == digest_of_served(stock)
    stock.observations[3, ..., 0, 0, 0] += 1
    assert digest_of_served(ours) != digest_of_served(stock)


def test_fill_makes_a_full_buffer() -> None:
    env = images()
    buffer = StockBuffer(STEPS, env.observation_space, env.action_space, device="cpu", n_envs=ENVS)
    assert fill(buffer, env, np.random.default_rng(0)) == STEPS * ENVS
    assert buffer.full
    assert buffer.episode_starts[0].all()


@pytest.mark.parametrize("algorithm", ["ours", "stock"])
def test_what_is_held_is_at_least_the_observations(algorithm: str) -> None:
    env = images()
    settings = {"policy": "CnnPolicy", "n_steps": 64, "batch_size": 64, "n_epochs": 1}
    make = partial(make_model, algorithm, env, settings, seed=0, device="cpu")
    make()  # imports what torch imports on first use, which is slow while memory is traced
    segment = measure_buffer(make, env, seed=0)
    assert segment.steps == 64 * ENVS
    assert segment.held_bytes is not None
    assert segment.held_bytes > 64 * ENVS * np.prod(SHAPE)
