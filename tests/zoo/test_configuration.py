"""Owns the shipped settings: that they are complete, typed and consistent, and who is sent elsewhere."""

import inspect
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import yaml

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.zoo import native_atari
from sb3_ppo_from_scratch.zoo.configuration import default_configuration, own_configuration

ENTRIES: dict[str, dict[str, Any]] = yaml.safe_load(own_configuration().read_text())
PROMISED = {
    "atari", "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1",
    "LunarLander-v3", "LunarLanderContinuous-v3", "BipedalWalker-v3", "HalfCheetah-v5", "Hopper-v5",
    "InvertedDoublePendulum-v5", "InvertedPendulum-v5", "Reacher-v5", "Swimmer-v5", "Walker2d-v5",
}  # fmt: skip
READ_BY_RL_ZOO3 = {"n_timesteps", "n_envs", "normalize", "env_wrapper", "frame_stack"}
WORDS = {"policy", "policy_kwargs", "env_wrapper"}
SCHEDULED = {"learning_rate", "clip_range"}


def test_every_promised_environment_has_an_entry_and_none_is_a_catch_all() -> None:
    assert set(ENTRIES) >= PROMISED
    assert "default" not in ENTRIES


@pytest.mark.parametrize("env_id", sorted(set(ENTRIES) - {"atari"}))
def test_every_environment_exists(env_id: str) -> None:
    assert gymnasium.spec(env_id).id == env_id


@pytest.mark.parametrize("env_id", sorted(ENTRIES))
def test_every_setting_is_known_and_a_number_where_one_is_meant(env_id: str) -> None:
    entry = ENTRIES[env_id]
    assert set(entry) <= {*inspect.signature(PPO).parameters, *READ_BY_RL_ZOO3, native_atari.SETTING}
    assert {"policy", "n_timesteps"} <= set(entry)
    for name in set(entry) - WORDS:
        value = entry[name]
        if name in SCHEDULED and isinstance(value, str):
            kind, initial_value = value.split("_")
            assert kind == "lin"
            assert 0 < float(initial_value) < 1
        else:
            assert isinstance(value, (int, float)), f"{name}: {value!r} is not a number"
    assert isinstance(entry["n_timesteps"], int)


@pytest.mark.parametrize("env_id", sorted(ENTRIES))
def test_minibatches_divide_the_rollout(env_id: str) -> None:
    defaults = inspect.signature(PPO).parameters
    entry = {"n_envs": 1, **{name: defaults[name].default for name in ("n_steps", "batch_size")}, **ENTRIES[env_id]}
    assert entry["n_steps"] * entry["n_envs"] % entry["batch_size"] == 0


@pytest.mark.parametrize("env_id, is_atari", [("CartPole-v1", False), ("ALE/Pong-v5", True)])
def test_our_entry_comes_first(env_id: str, is_atari: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert default_configuration(env_id, is_atari, Path("ppo.yml")) == own_configuration()
    assert capsys.readouterr().out == ""


def test_without_an_entry_rl_zoo3s_settings_are_used_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert default_configuration("CarRacing-v3", False, Path("zoo/ppo.yml")) == Path("zoo/ppo.yml")
    assert capsys.readouterr().out == "myppo has no entry of its own for CarRacing-v3: using rl_zoo3's ppo.yml\n"
