"""What an environment returned stays the environment's: time limits are credited beside its rewards."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from sb3_ppo_from_scratch.rollout.minibatches import environment_major
from tests.faults.environments import UNIT_BOX, ArrayVecEnv
from tests.faults.models import ENGINES, tiny_model

GAMMA = 0.9
REWARD_DTYPES = [np.int8, np.int64, np.uint8, np.bool_, np.float16, np.float32, np.float64]


class UserBuffer(StockRolloutBuffer):
    """What a user of SB3 may have written."""


def _truncated_steps(model: Any) -> Any:
    return np.arange(model.n_steps) % 2 == 1


def _learnt_advantages(model: Any) -> Any:
    """[T, E] advantages, whatever the buffer did to its arrays when it served them."""
    advantages = environment_major(model.rollout_buffer.advantages, model.n_steps, model.n_envs)
    return advantages.reshape(model.n_envs, model.n_steps).T


def _expected_advantages(model: Any, recorder: _ValueRecorder) -> Any:
    """For λ = 0: r + γ·V(next) − V, where what comes next is the terminal observation every other step."""
    return 1 + GAMMA * np.array(recorder.next_values) - np.array(recorder.values)


class _ValueRecorder:
    """Computes V of each observation and of what truly followed it, from copies of what the environment showed."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.next_values: list[Any] = []

    def __call__(self, local_variables: dict[str, Any], _: dict[str, Any]) -> bool:
        policy, infos = local_variables["self"].policy, local_variables["infos"]
        following = np.stack(
            [info.get("terminal_observation", obs) for info, obs in zip(infos, local_variables["new_obs"], strict=True)]
        )
        tensor, _unused = policy.obs_to_tensor(following)
        self.values.append(local_variables["values"].detach().numpy().flatten())
        self.next_values.append(policy.predict_values(tensor).detach().numpy().flatten())
        return True


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("buffer_class", [None, StockRolloutBuffer, UserBuffer])
@pytest.mark.parametrize("reward_dtype", REWARD_DTYPES)
def test_a_time_limit_is_bootstrapped_whatever_the_dtype_of_the_rewards(
    reward_dtype: Any, buffer_class: type[Any] | None, engine: str
) -> None:
    model = tiny_model(
        ArrayVecEnv(reward_dtype=reward_dtype),
        engine=engine,
        gamma=GAMMA,
        gae_lambda=0.0,
        rollout_buffer_class=buffer_class,
    )
    recorder = _ValueRecorder()
    model.learn(32, callback=recorder)
    np.testing.assert_allclose(_learnt_advantages(model), _expected_advantages(model, recorder), rtol=1e-3, atol=1e-5)


def test_stock_ppo_loses_the_bootstrap_of_integer_rewards() -> None:
    model = tiny_model(ArrayVecEnv(reward_dtype=np.int64), stable_baselines3.PPO, gamma=GAMMA, gae_lambda=0.0)
    recorder = _ValueRecorder()
    model.learn(32, callback=recorder)
    error = np.abs(_learnt_advantages(model) - _expected_advantages(model, recorder))
    assert error[_truncated_steps(model)].max() > 0.1
    assert error[~_truncated_steps(model)].max() < 1e-5


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("buffer_class", [None, UserBuffer])
@pytest.mark.parametrize("reward_dtype", [np.int64, np.float32, np.float64])
def test_nothing_that_the_environment_returned_is_modified(
    reward_dtype: Any, buffer_class: type[Any] | None, n_envs: int, engine: str
) -> None:
    env = ArrayVecEnv(n_envs, reward_dtype)
    tiny_model(env, engine=engine, rollout_buffer_class=buffer_class).learn(33 * n_envs)
    assert len(env.handed_out) > 96
    assert env.modified() == []


def test_stock_ppo_writes_into_the_rewards_of_the_environment() -> None:
    env = ArrayVecEnv()
    tiny_model(env, stable_baselines3.PPO).learn(32)
    assert len(env.modified()) == 8  # one reward array for each time limit


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("buffer_class", [None, UserBuffer])
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # torch, on reading an observation
def test_write_protected_arrays_train_the_same_model(buffer_class: type[Any] | None, engine: str) -> None:
    parameters = []
    for writeable in (True, False):
        env = ArrayVecEnv(writeable=writeable)
        model = tiny_model(env, engine=engine, rollout_buffer_class=buffer_class).learn(64)
        parameters.append(model.policy.state_dict())
    assert all(tensor.equal(parameters[1][name]) for name, tensor in parameters[0].items())


def test_write_protected_arrays_cause_no_warning() -> None:
    th.set_warn_always(True)  # torch says this once a process
    try:
        model = tiny_model(ArrayVecEnv(writeable=False)).learn(32)
    finally:
        th.set_warn_always(False)
    assert model.num_timesteps == 32


@pytest.mark.parametrize("reward_dtype", REWARD_DTYPES)
def test_the_buffer_keeps_the_rewards_of_the_environment(reward_dtype: Any) -> None:
    model = tiny_model(ArrayVecEnv(reward_dtype=reward_dtype), gamma=GAMMA).learn(32)
    buffer = model.rollout_buffer
    assert isinstance(buffer, RolloutBuffer)
    np.testing.assert_array_equal(buffer.rewards, np.ones((16, 2)))
    struck = _truncated_steps(model)
    assert np.all(buffer.bootstraps[struck] != 0)
    assert np.all(buffer.bootstraps[~struck] == 0)


def test_a_bootstrap_of_one_rollout_does_not_reach_into_the_next() -> None:
    # 15 steps a rollout and a time limit every second step: the struck rows alternate.
    model = tiny_model(ArrayVecEnv(), n_steps=15, batch_size=30).learn(60)
    struck = model.rollout_buffer.bootstraps[:, 0] != 0
    np.testing.assert_array_equal(struck, np.arange(15) % 2 == 0)


def test_callbacks_see_the_rewards_of_the_environment_at_a_time_limit() -> None:
    seen: list[Any] = []

    def watch(local_variables: dict[str, Any], _: dict[str, Any]) -> bool:
        seen.append(local_variables["rewards"])
        return True

    tiny_model(ArrayVecEnv()).learn(32, callback=watch)
    np.testing.assert_array_equal(np.stack(seen), np.ones((16, 2)))


@pytest.mark.parametrize("wrapper", [VecMonitor, VecNormalize])
def test_wrapped_environments_keep_their_arrays(wrapper: Any) -> None:
    env = ArrayVecEnv(reward_dtype=np.float64)
    tiny_model(wrapper(env)).learn(64)
    assert env.modified() == []


class _OneArrayEnv(gym.Env[Any, Any]):
    """Always returns the same array, as environments do that keep their state in it."""

    observation_space, action_space = UNIT_BOX, spaces.Discrete(2)

    def __init__(self) -> None:
        self._state = np.zeros(2, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._state[:] = 0
        return self._state, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._state += 1 / 16
        return self._state, 1.0, False, bool(self._state[0] == 0.5), {}


def test_an_environment_that_reuses_its_array_is_stored_state_by_state() -> None:
    model = tiny_model(DummyVecEnv([_OneArrayEnv])).learn(16)
    np.testing.assert_array_equal(model.rollout_buffer.observations[:, 0, 0], np.arange(16) % 8 / 16)
