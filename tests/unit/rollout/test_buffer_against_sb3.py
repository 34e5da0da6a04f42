"""The rollout buffer serves what SB3's two buffers serve, bit for bit, from the same transitions and random order."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import DictRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer

from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from tests.environments import ACTION_SPACES, OBSERVATION_SPACES

T, E = 5, 3
OBSERVATIONS = {**OBSERVATION_SPACES, "double_vector": spaces.Box(-1.0, 1.0, (3,), np.float64)}
ACTIONS = {**ACTION_SPACES, "matrix": spaces.Box(-1.0, 1.0, (2, 2), np.float32)}


def transitions(observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> list[tuple[Any, ...]]:
    """T random steps of E environments: the arguments of ``add``."""
    rng = np.random.default_rng(0)
    # Copies: other tests draw from the same spaces.
    observation_space, action_space = copy.deepcopy((observation_space, action_space))
    for seed, space in enumerate((observation_space, action_space)):
        space.seed(seed)

    def sampled_observations() -> Any:
        samples: list[Any] = [observation_space.sample() for _ in range(E)]
        if isinstance(observation_space, spaces.Dict):
            return {key: np.stack([sample[key] for sample in samples]) for key in observation_space.spaces}
        return np.stack(samples)

    return [
        (
            sampled_observations(),
            np.stack([action_space.sample() for _ in range(E)]),
            rng.normal(size=E).astype(np.float32),
            rng.random(E) < 0.3,
            th.from_numpy(rng.normal(size=(E, 1)).astype(np.float32)),
            th.from_numpy(rng.normal(size=E).astype(np.float32)),
        )
        for _ in range(T)
    ]


def pair(observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> tuple[RolloutBuffer, Any]:
    """Ours and SB3's after the same rollout."""
    stock_class = DictRolloutBuffer if isinstance(observation_space, spaces.Dict) else StockRolloutBuffer
    settings: dict[str, Any] = {"device": "cpu", "gae_lambda": 0.95, "gamma": 0.99, "n_envs": E}
    ours = RolloutBuffer(T, observation_space, action_space, **settings)
    stock = stock_class(T, observation_space, action_space, **settings)  # type: ignore[arg-type]
    for buffer in (ours, stock):
        for transition in transitions(observation_space, action_space):
            buffer.add(*transition)
        buffer.compute_returns_and_advantage(th.arange(E, dtype=th.float32), np.array([True, False, False]))
    return ours, stock


def assert_served_alike(ours: RolloutBuffer, stock: Any, batch_size: int | None) -> None:
    # The second epoch too: SB3 flattens its arrays in place before the first.
    for epoch in range(2):
        served = []
        for buffer in (ours, stock):
            np.random.seed(epoch)
            served.append(list(buffer.get(batch_size)))
        for our_batch, stock_batch in zip(*served, strict=True):
            assert our_batch._fields == stock_batch._fields
            assert_identical(our_batch.observations, stock_batch.observations)
            for our_field, stock_field in zip(our_batch[1:], stock_batch[1:], strict=True):
                assert_identical(our_field, stock_field)


def assert_identical(ours: Any, stock: Any) -> None:
    if isinstance(stock, dict):
        assert isinstance(ours, dict)
        assert list(ours) == list(stock)
        for key, tensor in stock.items():
            assert_identical(ours[key], tensor)
    else:
        assert isinstance(ours, th.Tensor)
        th.testing.assert_close(ours, stock, rtol=0, atol=0)


@pytest.mark.parametrize("family", OBSERVATIONS)
def test_every_observation_family_is_served_alike(family: str) -> None:
    assert_served_alike(*pair(OBSERVATIONS[family], ACTIONS["discrete"]), batch_size=4)


@pytest.mark.parametrize("family", ACTIONS)
def test_every_action_family_is_served_alike(family: str) -> None:
    assert_served_alike(*pair(OBSERVATIONS["vector"], ACTIONS[family]), batch_size=4)


@pytest.mark.parametrize("batch_size", [1, 5, 7, T * E, 1000, None])
@pytest.mark.parametrize("family", ["vector", "dict"])
def test_every_batch_size_is_cut_alike(family: str, batch_size: int | None) -> None:
    assert_served_alike(*pair(OBSERVATIONS[family], ACTIONS["box"]), batch_size)


@pytest.mark.parametrize("name", ["rewards", "values", "log_probs", "episode_starts", "advantages", "returns"])
def test_scalars_are_stored_alike_before_anything_is_served(name: str) -> None:
    ours, stock = pair(OBSERVATIONS["vector"], ACTIONS["discrete"])
    np.testing.assert_array_equal(getattr(ours, name), getattr(stock, name), strict=True)
