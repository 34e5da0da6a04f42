"""``as_vec_env`` as a VecEnv: what reaches the parts, and what is refused with a remedy."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers.vector import (
    DictInfoToList,
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
)
from stable_baselines3.common.monitor import Monitor

from sb3_ppo_from_scratch.envs import AtariVecEnv, GymnasiumVecEnv, as_vec_env
from tests.environments import HiddenStateEnv
from tests.envs.cart_poles import cart_poles


def test_infos_may_be_a_list() -> None:
    env = as_vec_env(DictInfoToList(RecordEpisodeStatistics(cart_poles(AutoresetMode.NEXT_STEP))))
    env.reset()
    episodes = [info["episode"]["l"] for _ in range(40) for info in env.step([0, 0, 0])[3] if "episode" in info]

    assert len(episodes) > 6
    assert max(episodes) < 20


class LateResetting(VectorEnv[Any, Any, Any]):
    """A native vector environment that says little about itself."""

    def __init__(self, **metadata: Any) -> None:
        self.metadata = metadata
        self.num_envs = 2
        self.single_observation_space = spaces.Box(-1, 1, (1,), np.float32)
        self.single_action_space = spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return np.zeros((2, 1), np.float32), {}

    def step(self, actions: Any) -> Any:
        done = np.ones(2, bool)
        return np.ones((2, 1), np.float32), np.ones(2), done, ~done, {"speed": 3.0, "colours": ["red", "blue"]}


@pytest.mark.parametrize(
    "env, error, message",
    [
        (lambda: LateResetting(autoreset_mode=AutoresetMode.NEXT_STEP), ValueError, "SAME_STEP"),
        (LateResetting, ValueError, "autoreset_mode"),
        (lambda: NormalizeObservation(cart_poles(AutoresetMode.NEXT_STEP)), ValueError, "VecNormalize"),
        (lambda: gym.make("CartPole-v1"), TypeError, r"gymnasium\.vector\.VectorEnv"),
        (
            lambda: AsyncVectorEnv([HiddenStateEnv] * 2, shared_memory=False),
            ValueError,
            "shared_memory=True",
        ),
    ],
    ids=[
        "unknown kind that resets late",
        "mode not told",
        "running mean",
        "single environment",
        "gap in AsyncVectorEnv",
    ],
)
def test_what_cannot_be_translated_correctly_is_refused_with_a_remedy(
    env: Any, error: type[Exception], message: str
) -> None:
    refused = env()
    with pytest.raises(error, match=message):
        as_vec_env(refused)
    refused.close()


def test_a_native_environment_that_can_be_reset_by_mask_is_taken() -> None:
    env = as_vec_env(LateResetting(autoreset_mode=AutoresetMode.DISABLED), monitor_wrapper=False)
    env.reset()
    observations, _, _, infos = env.step(np.array([0, 1]))

    np.testing.assert_array_equal(observations, np.zeros((2, 1)))
    assert [(info["speed"], info["colours"]) for info in infos] == [(3.0, "red"), (3.0, "blue")]
    assert [float(info["terminal_observation"][0]) for info in infos] == [1.0, 1.0]
    assert not env.has_attr("anything")
    assert env.env_is_wrapped(Monitor) == [False, False]


def test_an_end_without_its_last_observation_is_an_error() -> None:
    env = as_vec_env(LateResetting(autoreset_mode=AutoresetMode.SAME_STEP), monitor_wrapper=False)
    env.reset()
    with pytest.raises(RuntimeError, match="final_obs"):
        env.step(np.array([0, 1]))


def test_returned_observations_are_not_overwritten() -> None:
    env = as_vec_env(SyncVectorEnv([HiddenStateEnv] * 2, copy=False), monitor_wrapper=False)
    first = env.reset()
    kept = np.copy(first)
    second = env.step(np.array([1, 1]))[0]
    kept_second = np.copy(second)
    env.step(np.array([2, 2]))

    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(second, kept_second)


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_attributes_and_methods_reach_the_parts(vectorization: str) -> None:
    env = as_vec_env(cart_poles(AutoresetMode.SAME_STEP, vectorization), monitor_wrapper=False)
    env.reset()
    env.set_attr("gravity", 5.0)

    assert env.get_attr("gravity", indices=[0, 2]) == [5.0, 5.0]
    assert not env.has_attr("wings"), "and asking must not end a worker"
    assert env.env_method("get_wrapper_attr", "gravity") == [5.0] * 3
    with pytest.raises(ValueError, match=r"reset\(\) of the vector environment"):
        env.env_method("reset")
    if vectorization == "sync":
        env.set_attr("gravity", 6.0, indices=1)
        assert env.get_attr("gravity") == [5.0, 6.0, 5.0]
        assert env.env_is_wrapped(gym.wrappers.TimeLimit) == [True] * 3
    else:
        with pytest.raises(ValueError, match="leave out indices"):
            env.set_attr("gravity", 6.0, indices=1)
    env.close()


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_whoever_counts_episodes_is_seen_as_a_monitor(vectorization: str) -> None:
    for monitored, env in (
        (False, cart_poles(AutoresetMode.SAME_STEP, vectorization)),
        (True, cart_poles(AutoresetMode.SAME_STEP, vectorization, wrappers=[Monitor])),
        (True, NormalizeReward(RecordEpisodeStatistics(cart_poles(AutoresetMode.SAME_STEP, vectorization)))),
    ):
        adapter = GymnasiumVecEnv(env)
        assert adapter.env_is_wrapped(Monitor) == [monitored] * 3
        adapter.close()


def test_reset_options_must_be_one_and_the_same() -> None:
    env = as_vec_env(cart_poles(AutoresetMode.SAME_STEP), monitor_wrapper=False)
    env.set_options({"low": 0.01, "high": 0.02})
    observations = env.reset()
    assert isinstance(observations, np.ndarray)
    assert ((observations >= 0.01) & (observations <= 0.02)).all()
    env.set_options([{"low": 0.0}, {}, {}])
    with pytest.raises(ValueError, match="same reset options"):
        env.reset()


def test_misuse_is_told_at_once() -> None:
    env = as_vec_env(cart_poles(AutoresetMode.SAME_STEP), monitor_wrapper=False)
    with pytest.raises(RuntimeError, match=r"Call reset\(\) first"):
        env.step(np.array([0, 0, 0]))
    env.reset()
    with pytest.raises(RuntimeError, match=r"call step_async\(\) first"):
        env.step_wait()
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        env.step(np.array([0, 0]))
    with pytest.raises(ValueError, match="not all within Discrete"):
        env.step(np.array([0, 0, 2]))
    env.close()
    env.close()
    with pytest.raises(RuntimeError, match="closed"):
        env.reset()


def test_pictures_come_from_the_parts() -> None:
    env = as_vec_env(SyncVectorEnv([lambda: gym.make("CartPole-v1", render_mode="rgb_array")] * 2))
    env.reset()
    picture = env.render()
    assert picture is not None
    assert picture.shape == (800, 600, 3)
    env.close()
    silent = as_vec_env(cart_poles(AutoresetMode.SAME_STEP))
    with pytest.warns(UserWarning, match="rgb_array"):
        assert list(silent.get_images()) == [None] * 3


def test_atari_and_adapter_are_the_rooms_public_names() -> None:
    from sb3_ppo_from_scratch import envs

    assert sorted(envs.__all__) == ["AtariVecEnv", "GymnasiumVecEnv", "as_vec_env"]
    assert envs.AtariVecEnv is AtariVecEnv
