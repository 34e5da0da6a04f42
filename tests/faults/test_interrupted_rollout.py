"""A rollout that is cut short leaves the stored observation and the environment at the same state.

The environment shows (episode, step), so that a transition which never happened shows as a gap.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import stable_baselines3
from stable_baselines3.common.callbacks import (
    BaseCallback,
    EvalCallback,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnRewardThreshold,
)
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from tests.faults.environments import CountingEnv
from tests.faults.models import ENGINES, tiny_model

EPISODE_LENGTHS = (5, 3, 100)


def _counting_env(n_envs: int) -> VecEnv:
    return DummyVecEnv([lambda length=length: Monitor(CountingEnv(length)) for length in EPISODE_LENGTHS[:n_envs]])


class _StopAt(BaseCallback):
    """Ends the training at one step, in one of the ways in which users end it."""

    def __init__(self, call: int, how: str) -> None:
        super().__init__()
        self._call, self._how = call, how

    def _on_step(self) -> bool:
        if self.n_calls < self._call:
            return True
        if self._how == "raises":
            raise RuntimeError("stop here")
        if self._how == "is_interrupted":
            raise KeyboardInterrupt
        return False


def _learn_and_stop(model: Any, callback: Any) -> None:
    try:
        model.learn(1000, callback=callback)
    except (RuntimeError, KeyboardInterrupt) as reason:
        assert str(reason) in ("stop here", "")  # noqa: PT017


def _assert_consecutive(observations: Any, episode_starts: Any, lengths: tuple[int, ...]) -> None:
    """Every stored state follows from the one before it, and starts are marked where the step count is zero."""
    for env, length in enumerate(lengths[: observations.shape[1]]):
        states = [tuple(int(number) for number in state) for state in observations[:, env]]
        for (episode, step), following in pairwise(states):
            assert following == ((episode + 1, 0) if step + 1 == length else (episode, step + 1))
        np.testing.assert_array_equal(episode_starts[:, env] == 1, [step == 0 for _, step in states])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("how", ["returns_false", "raises", "is_interrupted"])
# The third and fifth steps end episodes, the first and the last are the ends of the rollout.
@pytest.mark.parametrize("call", [1, 3, 4, 5, 16, 20])
def test_training_goes_on_from_the_state_where_it_was_stopped(call: int, how: str, n_envs: int, engine: str) -> None:
    model = tiny_model(_counting_env(n_envs), engine=engine)
    _learn_and_stop(model, _StopAt(call, how))
    assert model.num_timesteps == call * n_envs
    model.learn(16 * n_envs, reset_num_timesteps=False)
    buffer = model.rollout_buffer
    _assert_consecutive(buffer.observations, buffer.episode_starts, EPISODE_LENGTHS)
    # The first stored state is the one that the last step before the stop led to.
    episode, step = divmod(call, 5)
    assert tuple(buffer.observations[0, 0]) == (episode + 1, step)


def test_stock_ppo_stores_a_transition_that_never_happened() -> None:
    model = tiny_model(_counting_env(1), stable_baselines3.PPO)
    _learn_and_stop(model, _StopAt(4, "returns_false"))
    model.learn(16, reset_num_timesteps=False)
    assert model.rollout_buffer.returns.shape == (16, 1)
    # Flattened in place by SB3, but in the order of the steps where there is one environment.
    steps = model.rollout_buffer.observations[:, 1].tolist()
    assert steps[:2] == [3.0, 0.0]  # four steps were done, so that (1, 4) was to come first


def _after_two_episodes() -> BaseCallback:
    return StopTrainingOnMaxEpisodes(max_episodes=2)


def _after_a_good_evaluation() -> BaseCallback:
    stop = StopTrainingOnRewardThreshold(reward_threshold=1.0)
    return EvalCallback(_counting_env(1), callback_on_new_best=stop, n_eval_episodes=1, eval_freq=7, verbose=0)


@pytest.mark.parametrize("make_callback", [_after_two_episodes, _after_a_good_evaluation])
def test_the_stopping_callbacks_of_sb3_lose_no_state(make_callback: Callable[[], BaseCallback]) -> None:
    model = tiny_model(_counting_env(1))
    _learn_and_stop(model, make_callback())
    assert 0 < model.num_timesteps < 16
    model.learn(16, reset_num_timesteps=False)
    _assert_consecutive(model.rollout_buffer.observations, model.rollout_buffer.episode_starts, EPISODE_LENGTHS)


@pytest.mark.parametrize("engine", ENGINES)
def test_repeated_stops_lose_no_state(engine: str) -> None:
    model = tiny_model(_counting_env(3), engine=engine)
    for call in (1, 2, 3, 4):
        model.learn(1000, callback=_StopAt(call, "returns_false"), reset_num_timesteps=False)
    model.learn(16 * 3, reset_num_timesteps=False)
    _assert_consecutive(model.rollout_buffer.observations, model.rollout_buffer.episode_starts, EPISODE_LENGTHS)
    assert tuple(model.rollout_buffer.observations[0, 2]) == (1, 10)


def test_the_interrupted_rollout_itself_is_not_learnt_from() -> None:
    model = tiny_model(_counting_env(1))
    before = {name: tensor.clone() for name, tensor in model.policy.state_dict().items()}
    _learn_and_stop(model, _StopAt(9, "returns_false"))
    assert all(tensor.equal(before[name]) for name, tensor in model.policy.state_dict().items())
    assert model._n_updates == 0


def test_normalised_observations_go_on_from_the_state_where_training_was_stopped() -> None:
    env = VecNormalize(_counting_env(1), norm_obs=False, norm_reward=True)
    model = tiny_model(env)
    _learn_and_stop(model, _StopAt(4, "returns_false"))
    model.learn(16, reset_num_timesteps=False)
    _assert_consecutive(model.rollout_buffer.observations, model.rollout_buffer.episode_starts, EPISODE_LENGTHS)
    assert tuple(model.rollout_buffer.observations[0, 0]) == (1, 4)


def test_a_new_count_of_steps_starts_from_a_reset() -> None:
    model = tiny_model(_counting_env(1))
    _learn_and_stop(model, _StopAt(4, "returns_false"))
    model.learn(16)
    assert tuple(model.rollout_buffer.observations[0, 0]) == (2, 0)
    assert model.rollout_buffer.episode_starts[0, 0] == 1
