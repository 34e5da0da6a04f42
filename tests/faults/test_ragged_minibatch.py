"""A last minibatch of one sample has no deviation to be normalised by, so "auto" never cuts one.

The reference engine keeps the cut of Stable-Baselines3, and says so.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import stable_baselines3
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer

from tests.environments import vector_environment
from tests.faults.models import ENGINES, optimizer_steps, tiny_model

# (n_steps, n_envs, batch_size): all leave one sample over, the last two with less or more than one full minibatch.
LONE = [(16, 1, 5), (16, 1, 3), (11, 3, 4), (9, 1, 2), (3, 3, 8), (17, 1, 16)]
ALONE = "single advantage is used unnormalised"

pytestmark = pytest.mark.filterwarnings("ignore:batch_size=.* does not divide", "ignore:You have specified a mini")


class UserBuffer(StockRolloutBuffer):
    """What a user of SB3 may have written."""


def _watched(model: Any) -> list[Any]:
    """The minibatches that the next update is served, as (observations, advantages)."""
    served: list[Any] = []
    get = model.rollout_buffer.get

    def watching(batch_size: int | None = None) -> Any:
        for minibatch in get(batch_size):
            served.append((minibatch.observations.numpy(), minibatch.advantages.numpy()))
            yield minibatch

    model.rollout_buffer.get = watching
    return served


def _model(n_steps: int, n_envs: int, batch_size: int, algorithm: Any = None, **settings: Any) -> Any:
    arguments = [vector_environment(n_envs, episode_length=None)]
    if algorithm is not None:
        arguments.append(algorithm)
    return tiny_model(*arguments, n_steps=n_steps, batch_size=batch_size, **settings)


@pytest.mark.parametrize("n_steps, n_envs, batch_size", LONE)
def test_auto_serves_every_sample_once_and_never_one_alone(n_steps: int, n_envs: int, batch_size: int) -> None:
    model = _model(n_steps, n_envs, batch_size, n_epochs=3)
    served = _watched(model)
    model.learn(n_steps * n_envs)
    total = n_steps * n_envs
    assert [len(advantages) for _, advantages in served] == 3 * [
        *[batch_size] * (total // batch_size - 1),
        batch_size + 1,
    ]
    stored = model.rollout_buffer.observations.reshape(total, -1)
    for epoch in np.split(np.concatenate([observations for observations, _ in served]), 3):
        np.testing.assert_array_equal(np.unique(epoch, axis=0), np.unique(stored, axis=0))


@pytest.mark.parametrize("n_steps, n_envs, batch_size", [(16, 1, 6), (11, 3, 5), (3, 1, 8), (2, 1, 4)])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_ragged_minibatch_of_two_or_more_keeps_the_cut_of_sb3(
    n_steps: int, n_envs: int, batch_size: int, engine: str
) -> None:
    model = _model(n_steps, n_envs, batch_size, engine=engine)
    served = _watched(model)
    model.learn(n_steps * n_envs)
    n_whole, n_left = divmod(n_steps * n_envs, batch_size)
    assert [len(advantages) for _, advantages in served] == [*[batch_size] * n_whole, n_left]


@pytest.mark.parametrize("n_steps, n_envs, batch_size", LONE)
def test_reference_keeps_the_lone_sample_and_warns(n_steps: int, n_envs: int, batch_size: int) -> None:
    with pytest.warns(UserWarning, match=ALONE):
        model = _model(n_steps, n_envs, batch_size, engine="reference")
    served = _watched(model)
    model.learn(n_steps * n_envs)
    assert len(served[-1][1]) == 1
    stock = _model(n_steps, n_envs, batch_size, stable_baselines3.PPO).learn(n_steps * n_envs)
    parameters = stock.policy.state_dict()
    assert all(tensor.equal(parameters[name]) for name, tensor in model.policy.state_dict().items())


@pytest.mark.parametrize("settings", [{"engine": "auto"}, {"engine": "reference", "normalize_advantage": False}])
def test_there_is_no_warning_of_a_lone_advantage_where_none_is_normalised(settings: dict[str, Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _model(16, 1, 5, **settings)
    assert [str(warning.message) for warning in caught if ALONE in str(warning.message)] == []


def test_a_lone_sample_is_served_alone_where_nothing_is_normalised() -> None:
    # One sample per minibatch is then a request like any other, as in SB3.
    for batch_size, n_minibatches in ((5, 4), (1, 16)):
        model = _model(16, 1, batch_size, normalize_advantage=False).learn(16)
        assert optimizer_steps(model) == n_minibatches


@pytest.mark.parametrize("assigned", [{"batch_size": 5}, {"n_steps": 17}, {"engine": "reference", "batch_size": 5}])
def test_a_lone_sample_that_comes_of_an_assignment_is_treated_alike(assigned: dict[str, Any]) -> None:
    model = _model(16, 1, 4)
    for name, value in assigned.items():
        setattr(model, name, value)
    if model.engine == "reference":
        with pytest.warns(UserWarning, match=ALONE):
            model.learn(16)
    else:
        model.learn(model.n_steps)
        assert optimizer_steps(model) == model.n_steps // model.batch_size


@pytest.mark.parametrize("buffer_class", [UserBuffer])
def test_auto_normalises_every_advantage_of_a_buffer_of_sb3_or_warns(buffer_class: type[Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = _model(16, 1, 5, rollout_buffer_class=buffer_class)
    served = _watched(model)
    model.learn(16)
    lone = min(len(advantages) for _, advantages in served) == 1
    assert not lone or any(ALONE in str(warning.message) for warning in caught)
