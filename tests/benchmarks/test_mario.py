"""SuperMarioBros 1-1: what one sees, what is paid, when it ends, and what is said without the package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack

from benchmarks.mario import ENV_ID, environment, register

NOOP, RIGHT_AND_RUN = 0, 3
FRAME_IS_READY = 24  # where a saved state of cynes 0.1.2 has this flag


@pytest.fixture
def _needs_package() -> None:
    pytest.importorskip("gymnasium_mariobros")
    pytest.importorskip("cv2")


@pytest.fixture(scope="module")
def env() -> Iterator[gym.Env[np.ndarray, int]]:
    pytest.importorskip("gymnasium_mariobros")
    pytest.importorskip("cv2")
    register()
    env = gym.make(ENV_ID)
    yield env
    env.close()


def episode(env: gym.Env[np.ndarray, int], actions: Any, seed: int) -> tuple[list[np.ndarray], list[float], bool, Any]:
    frame, info = env.reset(seed=seed)
    frames, rewards, terminated = [frame], [], False
    for action in actions:
        frame, reward, terminated, truncated, info = env.step(action)
        frames.append(frame)
        rewards.append(float(reward))
        assert not truncated
        if terminated:
            break
    return frames, rewards, terminated, info


@pytest.mark.parametrize("module", ["gymnasium_mariobros", "cv2"])
@pytest.mark.parametrize("call", [register, environment])
def test_without_the_package_the_extra_is_named(module: str, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium_mariobros", sys)  # anything that imports, if it is not there
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(gym.registry, ENV_ID, raising=False)
    with pytest.raises(ImportError, match=rf"needs {module}.*pip install 'sb3_ppo_from_scratch\[mario\]'"):
        call()
    assert ENV_ID not in gym.registry


@pytest.mark.usefixtures("_needs_package")
def test_registering_twice_changes_nothing() -> None:
    register()
    spec = gym.spec(ENV_ID)
    register()
    assert gym.spec(ENV_ID) is spec
    assert spec.max_episode_steps is None


def test_it_keeps_the_interface(env: gym.Env[np.ndarray, int]) -> None:
    check_env(env)
    assert env.observation_space == gym.spaces.Box(0, 255, (84, 84, 1), np.uint8)
    assert env.action_space == gym.spaces.Discrete(7)


def test_running_into_the_first_enemy_pays_pixels_less_ticks_less_death(env: gym.Env[np.ndarray, int]) -> None:
    _, start = env.reset()
    assert start["x_pos"] == 40
    _, rewards, terminated, info = episode(env, [RIGHT_AND_RUN] * 40, seed=0)
    assert terminated
    assert not info["flag_get"]
    assert sum(rewards) == (info["x_pos"] - 40) - (start["time"] - info["time"]) - 25
    assert len(rewards) == 26  # 104 frames
    assert info["x_pos"] == 312


def test_the_same_actions_give_the_same_episode_under_every_seed(env: gym.Env[np.ndarray, int]) -> None:
    actions = np.random.default_rng(0).integers(0, 7, 60)
    frames, rewards, _, _ = episode(env, actions, seed=1)
    again, rewards_again, _, _ = episode(env, actions, seed=2)
    np.testing.assert_array_equal(frames, again)
    assert rewards == rewards_again
    assert len({frame.tobytes() for frame in frames}) > 30  # the picture moves


@pytest.mark.parametrize("garbage", [0, 1])
def test_what_the_emulator_leaves_uninitialised_changes_nothing(
    garbage: int, env: gym.Env[np.ndarray, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    import cynes
    from gymnasium_mariobros import nes_env

    class Console(cynes.NES):  # type: ignore[misc]  # the package has no types
        def __init__(self, path: str) -> None:
            super().__init__(path)
            state = self.save().copy()
            state[FRAME_IS_READY] = garbage
            self.load(state)

    monkeypatch.setattr(cynes, "NES", Console)
    monkeypatch.setattr(nes_env, "NES", Console)
    actions = np.random.default_rng(0).integers(0, 7, 30)
    frames, rewards, _, info = episode(env, actions, seed=0)
    other_frames, other_rewards, _, other_info = episode(environment(), actions, seed=0)
    np.testing.assert_array_equal(frames, other_frames)
    assert (rewards, info) == (other_rewards, other_info)


@pytest.mark.usefixtures("_needs_package")
@pytest.mark.parametrize("through", ["factory", "spec"])
def test_it_runs_in_worker_processes(through: str) -> None:
    register()
    factory = environment if through == "factory" else gym.spec(ENV_ID).make
    vec_env = VecFrameStack(make_vec_env(factory, 2, seed=0, vec_env_cls=SubprocVecEnv), 4)
    try:
        first = vec_env.reset()
        assert isinstance(first, np.ndarray)
        assert first.shape == (2, 84, 84, 4)
        assert first.dtype == np.uint8
        np.testing.assert_array_equal(first[0], first[1])
        _, rewards, dones, _ = vec_env.step(np.array([NOOP, RIGHT_AND_RUN]))
        assert rewards.tolist() == [0.0, 1.0]  # a pixel to the right
        assert not dones.any()
    finally:
        vec_env.close()


@pytest.mark.slow
def test_standing_still_ends_with_the_clock(env: gym.Env[np.ndarray, int]) -> None:
    _, start = env.reset()
    _, rewards, terminated, info = episode(env, [NOOP] * 2_100, seed=0)
    assert terminated
    assert len(rewards) == 2_000
    assert info["time"] == 0
    assert sum(rewards) == -start["time"] - 25
