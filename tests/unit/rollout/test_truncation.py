"""Claims about time limits: bootstrapped as in SB3, or treated like any other end of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer

from tests.faults.models import ENGINES
from tests.unit.engine_models import model_of

every_engine = pytest.mark.parametrize("engine", ENGINES)


def rolled_out(**settings: Any) -> tuple[Any, list[Any]]:
    """The buffer after a rollout whose episodes all end at time limits, and the rewards of the environment."""
    model, rewards = model_of(time_limit=5, gamma=0.9, **settings), []

    def watch(seen: dict[str, Any], _: dict[str, Any]) -> bool:
        rewards.append(np.array(seen["rewards"]))
        return True

    model.train = lambda: None
    model.learn(32, callback=watch)
    return model.rollout_buffer, rewards


@every_engine
def test_a_time_limit_that_is_terminal_ends_an_episode_like_any_other(engine: str) -> None:
    buffer, _ = rolled_out(engine=engine, truncation="terminal")
    last = buffer.episode_starts[1:] == 1
    assert last.sum() == 6
    assert not buffer.bootstraps.any()
    np.testing.assert_allclose(buffer.returns[:-1][last], buffer.rewards[:-1][last], atol=1e-6)


@every_engine
def test_by_default_the_value_beyond_the_limit_is_credited(engine: str) -> None:
    buffer, _ = rolled_out(engine=engine)
    terminal, _ = rolled_out(engine=engine, truncation="terminal")
    last = buffer.episode_starts[1:] == 1
    assert buffer.bootstraps[:-1][last].all()
    np.testing.assert_array_equal(buffer.rewards, terminal.rewards)
    np.testing.assert_allclose(
        buffer.returns[:-1][last] - terminal.returns[:-1][last], buffer.bootstraps[:-1][last], atol=1e-5
    )


def test_a_users_buffer_gets_the_rewards_of_the_environment() -> None:
    user_class = type("UserBuffer", (StockRolloutBuffer,), {})
    buffer, rewards = rolled_out(truncation="terminal", rollout_buffer_class=user_class)
    np.testing.assert_array_equal(buffer.rewards, np.stack(rewards))
    buffer, rewards = rolled_out(rollout_buffer_class=user_class)
    assert (buffer.rewards != np.stack(rewards)).sum() == 6


def test_it_may_be_assigned() -> None:
    model = model_of(time_limit=5).learn(32)
    assert model.rollout_buffer.bootstraps.any()
    model.truncation = "terminal"
    model.learn(32)
    assert not model.rollout_buffer.bootstraps.any()
