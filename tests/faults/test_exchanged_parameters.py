"""Claim: of two models that exchanged parameters, training one leaves the other alone (SB3's share Adam's moments)."""

from __future__ import annotations

from typing import Any

import pytest
import stable_baselines3
import torch as th

from sb3_ppo_from_scratch import PPO
from tests.faults.environments import ArrayVecEnv
from tests.faults.models import ENGINES, tiny_model


def moments(model: Any) -> list[th.Tensor]:
    return [value.clone() for state in model.policy.optimizer.state.values() for value in state.values()]


def moments_change(algorithm: Any, **settings: Any) -> bool:
    """Whether a model's moments change while another one learns that has taken over its parameters."""
    source, taker = (tiny_model(ArrayVecEnv(), algorithm, **settings) for _ in range(2))
    source.learn(32)
    taker.set_parameters(source.get_parameters())
    before = moments(source)
    taker.learn(32)
    assert before != []
    return not all(th.equal(mine, now) for mine, now in zip(before, moments(source), strict=True))


@pytest.mark.parametrize("engine", ENGINES)
def test_training_one_leaves_the_moments_of_the_other(engine: str) -> None:
    assert not moments_change(PPO, engine=engine)


def test_stock_shares_them() -> None:
    assert moments_change(stable_baselines3.PPO)
