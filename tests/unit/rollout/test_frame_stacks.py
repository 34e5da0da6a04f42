"""Claims about frames stacked by an environment: served and learnt from as if the stacks were stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecTransposeImage

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from tests.environments import vector_environment
from tests.unit.rollout.screens import (
    add_steps,
    keeps_frames,
)


def stacked_environment() -> VecEnv:
    """Three environments of single grey images, seen four at a time as SB3's Atari wrappers do."""
    environment = vector_environment(3, observation=spaces.Box(0, 255, (12, 12, 1), np.uint8), time_limit=5)
    return VecTransposeImage(VecFrameStack(environment, n_stack=4))


def test_frame_stacks_of_stable_baselines3_are_served_as_its_own_buffer_serves_them() -> None:
    environment = stacked_environment()
    rng = np.random.default_rng(0)
    spaces_and_device = (environment.observation_space, environment.action_space, "cpu")
    ours = RolloutBuffer(64, *spaces_and_device, n_envs=3)
    theirs = StockRolloutBuffer(64, *spaces_and_device, n_envs=3)
    observations: Any = environment.reset()
    for _ in range(2):
        ours.reset()
        theirs.reset()
        for _ in range(64):
            add_steps(ours, [observations])
            add_steps(theirs, [observations])
            observations, *_ = environment.step(rng.integers(0, 3, 3))
        assert keeps_frames(ours)
        np.testing.assert_array_equal(ours.observations, theirs.observations, strict=True)
        served = []
        buffers: tuple[Any, ...] = (ours, theirs)
        for buffer in buffers:
            np.random.seed(0)
            served.append([batch.observations for batch in buffer.get(50)])
        th.testing.assert_close(*served, rtol=0, atol=0)


def parameters_after_learning(algorithm: type[Any], *, is_plain: bool = False, **settings: Any) -> dict[str, th.Tensor]:
    """Of a perceptron over stacks, after three rollouts; made to store plainly on request."""
    model = algorithm(
        "MlpPolicy", stacked_environment(), n_steps=16, batch_size=12, n_epochs=2, seed=0, device="cpu", **settings
    )
    if is_plain:
        model.rollout_buffer.observations = model.rollout_buffer.observations
    model.learn(3 * 16 * 3)
    if isinstance(model.rollout_buffer, RolloutBuffer):
        assert keeps_frames(model.rollout_buffer) is not is_plain
    parameters: dict[str, th.Tensor] = model.policy.state_dict()
    return parameters


@pytest.mark.parametrize(
    "algorithm, settings",
    [
        pytest.param(stable_baselines3.PPO, {"rollout_buffer_class": RolloutBuffer}, id="stock"),
        pytest.param(PPO, {"engine": "reference"}, id="reference"),
    ],
)
def test_learning_from_frames_is_learning_from_stacks(algorithm: type[Any], settings: dict[str, Any]) -> None:
    ours = parameters_after_learning(algorithm, **settings)
    th.testing.assert_close(ours, dict(parameters_after_learning(stable_baselines3.PPO)), rtol=0, atol=0)


def test_the_auto_engine_learns_the_same_from_frames_and_from_arrays() -> None:
    frames, arrays = (parameters_after_learning(PPO, is_plain=is_plain) for is_plain in (False, True))
    th.testing.assert_close(frames, arrays, rtol=0, atol=0)
