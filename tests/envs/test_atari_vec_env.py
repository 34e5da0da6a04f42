"""What AtariVecEnv promises beyond SB3's bits: SB3's tools work on it, and misuse is told at once.

Owns the contract of one vector environment; must not know the games' dynamics.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common import atari_wrappers
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, VecNormalize, VecVideoRecorder

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.envs import AtariVecEnv

PONG = "PongNoFrameskip-v4"
SHORT = {"max_num_frames_per_episode": 200}
SMALL_PPO: dict[str, Any] = {"n_steps": 4, "batch_size": 4, "n_epochs": 1, "seed": 0, "device": "cpu"}


@pytest.fixture
def env() -> Any:
    env = AtariVecEnv(PONG, 2, seed=0, env_kwargs=SHORT, n_processes=1)
    yield env
    env.close()


def test_the_spaces_are_those_a_policy_sees_behind_vec_transpose_image(env: AtariVecEnv) -> None:
    assert env.observation_space == gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    assert env.action_space == gym.spaces.Discrete(6)


def test_a_new_episode_starts_from_a_zeroed_stack(env: AtariVecEnv) -> None:
    observations = env.reset()
    assert not observations[:, :3].any()
    assert observations[:, 3].any(axis=(1, 2)).all()
    dones = np.zeros(2, bool)
    while not dones.all():
        observations, _, dones, infos = env.step(np.zeros(2, int))

    assert not observations[:, :3].any()
    assert all(info["terminal_observation"].any(axis=(1, 2)).all() for info in infos)


def test_what_a_step_returned_is_not_overwritten_and_may_be_changed() -> None:
    env, untouched = (AtariVecEnv(PONG, 2, seed=0, n_processes=n) for n in (1, 2))
    env.reset()
    untouched.reset()
    actions = np.array([2, 3])
    first = env.step(actions)
    kept = [part.copy() for part in first[:3]]
    untouched.step(actions)
    env.step(actions)
    for part, copy in zip(first[:3], kept, strict=True):
        np.testing.assert_array_equal(part, copy)
        part[...] = 0
    untouched.step(actions)

    np.testing.assert_array_equal(env.step(actions)[0], untouched.step(actions)[0])
    env.close()
    untouched.close()


def test_the_number_of_processes_changes_nothing() -> None:
    runs = []
    for n_processes in (1, 3):
        env = AtariVecEnv("BreakoutNoFrameskip-v4", 5, seed=0, n_processes=n_processes)
        env.action_space.seed(1)
        env.reset()
        runs.append([env.step([env.action_space.sample() for _ in range(5)])[:3] for _ in range(40)])
        env.close()

    for one, three in zip(*runs, strict=True):
        for part, other in zip(one, three, strict=True):
            np.testing.assert_array_equal(part, other)


def test_the_same_seed_plays_the_same_game_again_and_another_seed_another() -> None:
    # With lives as episodes, SB3's reset goes on with the game that is under way.
    env = AtariVecEnv(PONG, 2, seed=0, terminal_on_life_loss=False, n_processes=1)
    assert env.seed(7) == [7, 8]
    first = env.reset()
    env.seed(7)
    again = env.reset()
    env.seed(8)
    other = env.reset()

    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    env.close()


def test_reset_options_are_used_once(env: AtariVecEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = env.get_attr("env")[0]
    received: list[Any] = []
    original = emulator.reset
    monkeypatch.setattr(
        emulator, "reset", lambda **request: received.append(request.get("options")) or original(**request)
    )
    env.set_options({"level": 1})
    env.reset()
    env.set_attr("was_real_done", True)
    env.reset()

    assert received == [{"level": 1}, None]


@pytest.mark.parametrize(
    "actions, error, message",
    [
        ([0, 6], ValueError, "not all within Discrete"),
        ([0, -1], ValueError, "not all within Discrete"),
        ([0, 1, 2], ValueError, r"shape \(2,\).*got shape \(3,\)"),
        ([[0], [1]], ValueError, "got shape"),
        ([0.0, 1.0], TypeError, "whole numbers"),
        ([True, False], TypeError, "whole numbers"),
    ],
)
def test_a_wrong_action_raises_before_any_game_moves(
    env: AtariVecEnv, actions: Any, error: type[Exception], message: str
) -> None:
    env.reset()
    frames = [ale.getFrameNumber() for ale in env.get_attr("ale")]
    with pytest.raises(error, match=message):
        env.step(actions)

    assert [ale.getFrameNumber() for ale in env.get_attr("ale")] == frames
    assert env.step([0, 5])[2].shape == (2,)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"n_envs": 0}, "n_envs=0"),
        ({"n_processes": 0}, "n_processes=0"),
        ({"frame_stack": 0}, "frame_stack=0"),
        ({"noop_max": -1}, "noop_max=-1"),
        ({"frame_skip": 0}, "frame_skip=0"),
        ({"screen_size": 8.5}, r"screen_size=8\.5"),
        ({"action_repeat_probability": 1.5}, r"action_repeat_probability=1\.5"),
        ({"env_id": "Pong-v4"}, "NoFrameskip"),
        ({"env_id": "CartPole-v1"}, "make_vec_env"),
        ({"env_kwargs": {"obs_type": "ram"}}, "obs_type"),
        ({"env_kwargs": {"continuous": True}}, "continuous"),
        ({"env_kwargs": {"max_episode_steps": 9}}, "max_num_frames_per_episode"),
    ],
)
def test_an_argument_that_cannot_be_honoured_is_named_with_a_remedy(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AtariVecEnv(**{"env_id": PONG, **arguments})


@pytest.mark.parametrize("module", ["ale_py", "cv2"])
def test_without_the_extra_the_error_names_it(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{module}.*sb3_ppo_from_scratch\[atari\]"):
        AtariVecEnv(PONG)


@pytest.mark.parametrize("n_processes", [1, 2])
def test_attributes_and_methods_reach_every_game(n_processes: int) -> None:
    env = AtariVecEnv(PONG, 2, seed=0, n_processes=n_processes)
    env.reset()
    env.set_attr("nickname", "left", indices=0)

    assert env.get_attr("lives") == [0, 0]
    assert env.get_attr("render_mode", indices=1) == ["rgb_array"]
    assert env.get_attr("nickname", indices=[0]) == ["left"]
    assert not env.has_attr("nickname")
    assert env.env_method("get_action_meanings", indices=1)[0][:2] == ["NOOP", "FIRE"]
    with pytest.raises(ValueError, match=r"step\(\) of the vector environment"):
        env.env_method("step", 0)
    env.close()


@pytest.mark.parametrize(
    "options", [{}, {"noop_max": 0, "frame_skip": 1, "terminal_on_life_loss": False, "clip_reward": False}]
)
def test_it_counts_as_wrapped_in_what_sb3_would_wrap_it_in(options: dict[str, Any]) -> None:
    ours, theirs = AtariVecEnv(PONG, 2, n_processes=1, **options), make_atari_env(PONG, 2, wrapper_kwargs=options)
    kinds = [kind for kind in vars(atari_wrappers).values() if isinstance(kind, type) and issubclass(kind, gym.Wrapper)]
    for kind in [*kinds, Monitor, gym.wrappers.TimeLimit]:
        assert ours.env_is_wrapped(kind) == theirs.env_is_wrapped(kind), kind
    ours.close()
    theirs.close()


def test_pictures_are_those_of_sb3() -> None:
    env = AtariVecEnv(PONG, 2, seed=0, n_processes=2)
    theirs = make_atari_env(PONG, 2, seed=0)
    env.reset()
    theirs.reset()
    for ours_image, their_image in zip(env.get_images(), theirs.get_images(), strict=True):
        np.testing.assert_array_equal(ours_image, their_image)
    picture = env.render()
    assert picture is not None
    assert picture.shape == (210 * 2, 160, 3)
    env.close()
    theirs.close()


def test_without_a_render_mode_there_are_no_pictures_but_a_warning() -> None:
    env = AtariVecEnv(PONG, 2, env_kwargs={"render_mode": None}, n_processes=1)
    env.reset()
    with pytest.warns(UserWarning, match="rgb_array"):
        assert env.get_images() == [None, None]
    env.close()


def test_video_recorder_records_the_games(env: AtariVecEnv, tmp_path: Path) -> None:
    recorder = VecVideoRecorder(env, str(tmp_path), lambda step: step == 0, video_length=5)
    recorder.reset()
    for _ in range(4):
        recorder.step([0, 0])

    assert recorder.frames_per_sec == 30
    assert [frame.shape for frame in recorder.recorded_frames] == [(210 * 2, 160, 3)] * 5
    assert (recorder.recorded_frames[0] != recorder.recorded_frames[-1]).any()
    recorder.recorded_frames.clear()
    recorder.recording = False


def test_vec_normalize_scales_rewards_and_vec_monitor_warns_of_being_second(env: AtariVecEnv) -> None:
    normalized = VecNormalize(env, norm_obs=False)
    observations = normalized.reset()
    assert normalized.step(np.array([2, 3]))[0].shape == observations.shape
    assert normalized.get_original_reward().dtype == np.float32
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        monitored = VecMonitor(env)
    monitored.reset()
    dones = np.zeros(2, bool)
    while not dones.any():
        _, _, dones, infos = monitored.step(np.zeros(2, int))

    # VecMonitor counts the agent's steps, Monitor raw frames.
    assert infos[int(dones.argmax())]["episode"]["l"] <= SHORT["max_num_frames_per_episode"] / 4


def test_evaluation_needs_no_warning_and_reports_whole_games_in_raw_frames(env: AtariVecEnv) -> None:
    model = PPO("CnnPolicy", env, **SMALL_PPO)
    returns, lengths = evaluate_policy(model, env, n_eval_episodes=2, return_episode_rewards=True)

    assert lengths == [200, 200]
    assert all(float(one).is_integer() for one in returns)


def test_a_policy_learns_on_it_and_plays_in_sb3s_environment(env: AtariVecEnv, tmp_path: Path) -> None:
    evaluation = AtariVecEnv(PONG, 1, seed=1, env_kwargs=SHORT)
    callback = EvalCallback(evaluation, n_eval_episodes=1, eval_freq=4, verbose=0, best_model_save_path=str(tmp_path))
    model = PPO("CnnPolicy", env, **SMALL_PPO).learn(8, callback=callback)
    assert callback.last_mean_reward <= 0
    theirs = VecFrameStack(make_atari_env(PONG, 1, seed=0), 4)
    loaded = PPO.load(tmp_path / "best_model", env=theirs)
    actions, _ = loaded.predict(theirs.reset())

    assert actions.shape == (1,)
    assert model.num_timesteps == 8
    evaluation.close()
    theirs.close()


def test_monitor_files_hold_what_the_infos_told(tmp_path: Path) -> None:
    env = AtariVecEnv(PONG, 2, seed=0, env_kwargs=SHORT, monitor_dir=str(tmp_path))
    env.reset()
    told: list[list[dict[str, Any]]] = [[], []]
    for _ in range(120):
        for episodes, info in zip(told, env.step([0, 0])[3], strict=True):
            episodes.extend([info["episode"]] if "episode" in info else [])
    env.close()
    for i, episodes in enumerate(told):
        with (tmp_path / f"{i}.monitor.csv").open() as file:
            assert '"env_id": "PongNoFrameskip-v4"' in file.readline()
            written = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
        assert written == episodes
        assert len(episodes) == 2
