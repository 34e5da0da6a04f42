"""``as_vec_env`` against DummyVecEnv: the same transitions in every autoreset mode, or an error that says how.

Owns the comparison and the contract; must not know how the adapter works inside.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import (
    NormalizeReward,
    RecordEpisodeStatistics,
    RescaleObservation,
)
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.envs import as_vec_env
from tests.environments import HiddenStateEnv
from tests.envs.cart_poles import cart_poles
from tests.envs.stepping import assert_same_run

MODES = list(AutoresetMode)
mode_ids = [mode.value for mode in MODES]


@pytest.mark.parametrize("counted_by", ["VecMonitor", "RecordEpisodeStatistics", "Monitor"])
@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("mode", MODES, ids=mode_ids)
def test_every_transition_and_episode_is_that_of_dummy_vec_env(
    mode: AutoresetMode, vectorization: str, counted_by: str
) -> None:
    env = cart_poles(mode, vectorization, **({"wrappers": [Monitor]} if counted_by == "Monitor" else {}))
    if counted_by == "RecordEpisodeStatistics":
        env = RecordEpisodeStatistics(env)
    ours = as_vec_env(env)
    theirs: VecEnv = make_vec_env("CartPole-v1", 3, env_kwargs={"max_episode_steps": 20})
    if counted_by == "VecMonitor":
        theirs = VecMonitor(DummyVecEnv([lambda: gym.make("CartPole-v1", max_episode_steps=20)] * 3))
    for vec_env in (ours, theirs):
        vec_env.seed(7)
    seen = assert_same_run(ours, theirs, 150)

    assert isinstance(ours, VecMonitor) is (counted_by == "VecMonitor")
    assert seen["dones"] == seen["episodes"] > seen["truncations"] > 0
    ours.close()
    theirs.close()


@pytest.mark.parametrize("mode", MODES, ids=mode_ids)
@pytest.mark.parametrize(
    "observation, action",
    [
        ("dict", "multi_discrete"),
        ("image", "box"),
        ("discrete", "multi_binary"),
        ("multi_binary", "discrete"),
        ("vector", "uneven_box"),
    ],
)
def test_every_observation_and_action_family_passes_through(observation: str, action: str, mode: AutoresetMode) -> None:
    def make() -> gym.Env[Any, Any]:
        return HiddenStateEnv(observation, action, episode_length=4)

    ours = as_vec_env(SyncVectorEnv([make] * 3, autoreset_mode=mode), monitor_wrapper=False)
    theirs = DummyVecEnv([make] * 3)
    for vec_env in (ours, theirs):
        vec_env.seed(1)

    assert assert_same_run(ours, theirs, 15)["dones"] == 9


class Composite(gym.Env[Any, Any]):
    """Pays what its Dict or Tuple action says."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, action_space: spaces.Space[Any]) -> None:
        self.action_space = action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        gear, force = (action["g"], action["f"]) if isinstance(action, dict) else action
        return np.zeros(1, np.float32), float(gear) + float(force[0]), False, False, {}


@pytest.mark.parametrize("kind", [spaces.Dict, spaces.Tuple])
def test_composite_actions_are_batched(kind: Any) -> None:
    parts = (spaces.Discrete(3), spaces.Box(-1, 1, (1,), np.float32))
    space = kind(dict(zip("gf", parts, strict=True)) if kind is spaces.Dict else parts)
    env = as_vec_env(SyncVectorEnv([lambda: Composite(space)] * 2), monitor_wrapper=False)
    env.reset()
    singles: list[Any] = [(2, np.float32([0.5])), (1, np.float32([0.25]))]
    batch: Any = (np.array([2, 1]), np.float32([[0.5], [0.25]]))
    if kind is spaces.Dict:
        singles = [dict(zip("gf", single, strict=True)) for single in singles]
        batch = dict(zip("gf", batch, strict=True))
    for actions in (singles, batch):
        np.testing.assert_array_equal(env.step(actions)[1], np.float32([2.5, 1.25]))
    with pytest.raises(ValueError, match="Expected 2 actions, got 1"):
        env.step(singles[:1])


def test_normalized_rewards_are_the_same_in_every_mode() -> None:
    runs = []
    for mode in MODES:
        env = as_vec_env(NormalizeReward(cart_poles(mode)), monitor_wrapper=False)
        env.seed(0)
        env.reset()
        env.action_space.seed(0)
        actions = [np.array([env.action_space.sample() for _ in range(3)]) for _ in range(60)]
        steps = [env.step(action) for action in actions]
        assert sum(dones.sum() for _, _, dones, _ in steps) > 3
        runs.append([rewards for _, rewards, _, _ in steps])

    for same_step, next_step, disabled in zip(runs[1], runs[0], runs[2], strict=True):
        np.testing.assert_array_equal(next_step, same_step)
        np.testing.assert_array_equal(disabled, same_step)


# Gymnasium refuses observation wrappers in SAME_STEP mode.
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_a_memoryless_wrapper_of_observations_also_shapes_the_last_one(mode: AutoresetMode) -> None:
    plain = as_vec_env(SyncVectorEnv([HiddenStateEnv] * 2, autoreset_mode=mode), monitor_wrapper=False)
    scaled = as_vec_env(
        RescaleObservation(SyncVectorEnv([HiddenStateEnv] * 2, autoreset_mode=mode), np.float32(0), np.float32(1)),
        monitor_wrapper=False,
    )
    for env in (plain, scaled):
        env.seed(0)
    np.testing.assert_allclose(scaled.reset(), (plain.reset() + 1) / 2, atol=1e-6)
    for _ in range(7):
        (observations, _, dones, infos), (scaled_observations, _, _, scaled_infos) = (
            env.step(np.array([1, 2])) for env in (plain, scaled)
        )
    assert dones.all()
    np.testing.assert_allclose(scaled_observations, (observations + 1) / 2, atol=1e-6)
    for info, scaled_info in zip(infos, scaled_infos, strict=True):
        last, scaled_last = info["terminal_observation"], scaled_info["terminal_observation"]
        np.testing.assert_allclose(scaled_last, (last + 1) / 2, atol=1e-6)


def test_both_autoreset_modes_of_ales_vector_environment_agree() -> None:
    ale_py = pytest.importorskip("ale_py")
    runs = {}
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
        env = as_vec_env(
            ale_py.AtariVectorEnv("pong", 2, noop_max=0, autoreset_mode=mode, max_num_frames_per_episode=60)
        )
        env.seed(0)
        runs[mode] = [(env.reset(), None, None, None), *(env.step(np.array([2, 3])) for _ in range(40))]
        with pytest.raises(ValueError, match="not all within Discrete"):
            env.step(np.array([0, 6]))
        env.close()
    n_dones = 0
    for same, following in zip(*runs.values(), strict=True):
        for part, other in zip(same[:3], following[:3], strict=True):
            np.testing.assert_array_equal(part, other)
        for info, other_info in zip(same[3] or [], following[3] or [], strict=True):
            assert info["TimeLimit.truncated"] == other_info["TimeLimit.truncated"]
            if "terminal_observation" in info:
                n_dones += 1
                assert info["episode"]["l"] == other_info["episode"]["l"] == 15
                np.testing.assert_array_equal(info["terminal_observation"], other_info["terminal_observation"])
    assert n_dones == 4


@pytest.mark.parametrize("mode", MODES, ids=mode_ids)
def test_ppo_learns_the_same_through_it_as_in_dummy_vec_env(mode: AutoresetMode) -> None:
    settings: dict[str, Any] = {"n_steps": 32, "batch_size": 32, "n_epochs": 2, "seed": 0, "device": "cpu"}
    theirs = make_vec_env("CartPole-v1", 3, env_kwargs={"max_episode_steps": 20})
    models = [PPO("MlpPolicy", env, **settings).learn(192) for env in (as_vec_env(cart_poles(mode)), theirs)]
    parameters = [model.policy.state_dict() for model in models]

    for name, value in parameters[0].items():
        np.testing.assert_array_equal(value.numpy(), parameters[1][name].numpy(), err_msg=name)
    means = [evaluate_policy(model, model.get_env(), 3)[0] for model in models]
    assert means[0] == pytest.approx(means[1])
