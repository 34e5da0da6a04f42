"""Owns `rl_zoo3.train --algo myppo` and what its options do to the agent that it writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.zoo.configuration import own_configuration
from tests.zoo.conftest import Run
from tests.zoo.processes import python_error, python_output, zoo_output

NO_EVALUATION = ("--eval-freq", -1, "--seed", 1)
CALLBACK = """
from stable_baselines3.common.callbacks import BaseCallback

class TellEnvironments(BaseCallback):
    def _on_training_start(self):
        print(f"environments: {self.training_env.num_envs} in a {type(self.training_env.unwrapped).__name__}")

    def _on_step(self):
        return True
"""


def train(folder: Path, *arguments: object, env: str = "CartPole-v1") -> tuple[str, PPO, dict[str, Any]]:
    """Train in a process of its own; return its output, the agent it wrote and the settings it recorded."""
    output = zoo_output("train", "--env", env, *NO_EVALUATION, *arguments, folder=folder)
    run = folder / "logs" / "myppo" / f"{env}_1"
    return output, PPO.load(run / f"{env}.zip", device="cpu"), recorded_settings(run / env)


def recorded_settings(folder: Path) -> dict[str, Any]:
    # rl_zoo3 writes a tagged OrderedDict, which only the unsafe loader reads.
    settings: dict[str, Any] = yaml.unsafe_load((folder / "config.yml").read_text())
    return dict(settings)


def test_plain_training_uses_our_settings_and_writes_an_agent(trained: Run) -> None:
    assert f"Loading hyperparameters from: {own_configuration()}" in trained.output
    written = {path.relative_to(trained.folder).as_posix() for path in trained.folder.rglob("*")}
    assert written >= {"CartPole-v1.zip", "best_model.zip", "0.monitor.csv", "CartPole-v1/args.yml"}
    ours = yaml.safe_load(own_configuration().read_text())["CartPole-v1"]
    assert recorded_settings(trained.folder / "CartPole-v1") == ours
    assert list(np.load(trained.folder / "evaluations.npz")["timesteps"]) == [256, 512]

    agent = PPO.load(trained.agent, device="cpu")
    assert (agent.n_envs, agent.n_steps, agent.batch_size) == (8, 32, 256)
    assert (agent.num_timesteps, agent._n_updates) == (512, 2 * 20)


def test_continue_from_a_zip(trained: Run, tmp_path: Path) -> None:
    output, continued, _ = train(tmp_path, "-i", trained.agent, "-n", 512)
    assert "Loading pretrained agent" in output
    # rl_zoo3 counts the timesteps of each call anew; updates and optimizer steps go on.
    assert continued.num_timesteps == 512
    assert continued._n_updates == 4 * 20
    before, after = PPO.load(trained.agent, device="cpu"), continued
    optimizer_steps = [next(iter(agent.policy.optimizer.state.values()))["step"].item() for agent in (before, after)]
    assert optimizer_steps == [2 * 20, 4 * 20]
    unchanged = map(torch.equal, before.policy.parameters(), after.policy.parameters())
    assert not any(list(unchanged))


def test_hyperparams_override_our_settings(tmp_path: Path) -> None:
    overridden = ["n_steps:16", "batch_size:64", "learning_rate:1e-4", "policy_kwargs:dict(net_arch=[8])"]
    beyond_sb3 = ["objective:'adaptive_kl'", "kl_coef:0.5", "kl_target:0.02"]
    _, agent, settings = train(tmp_path, "-n", 128, "--hyperparams", *overridden, *beyond_sb3)
    assert settings["n_steps"] == agent.n_steps == 16
    assert settings["gae_lambda"] == agent.gae_lambda == 0.8
    assert agent.policy.optimizer.param_groups[0]["lr"] == 1e-4
    assert agent.policy.mlp_extractor.latent_dim_pi == 8
    assert (settings["objective"], settings["kl_coef"]) == ("adaptive_kl", 0.5)
    assert (agent.objective, agent.kl_coef, agent.kl_target) == ("adaptive_kl", 0.25, 0.02)


def test_a_configuration_file_of_the_users_replaces_ours(tmp_path: Path) -> None:
    options = {"value_loss": "huber", "advantage_normalization": "rollout", "desired_kl": 0.01}
    mine = {"CartPole-v1": {"policy": "MlpPolicy", "n_timesteps": 64, "n_steps": 64, "n_epochs": 3, **options}}
    (tmp_path / "mine.yml").write_text(yaml.safe_dump(mine))
    output, agent, settings = train(tmp_path, "--conf-file", "mine.yml")
    assert "Loading hyperparameters from: mine.yml" in output
    assert settings == mine["CartPole-v1"]
    assert (agent.n_envs, agent.num_timesteps, agent._n_updates) == (1, 64, 3)
    assert {name: getattr(agent, name) for name in options} == options
    assert agent.learning_rate_factor == 1.5


@pytest.mark.parametrize(
    "content, expected",
    [
        pytest.param("Acrobot-v1: {policy: MlpPolicy}", "Hyperparameters not found", id="without-the-environment"),
        pytest.param(None, "FileNotFoundError", id="missing"),
    ],
)
def test_a_configuration_file_of_the_users_is_never_replaced(
    tmp_path: Path, content: str | None, expected: str
) -> None:
    if content is not None:
        (tmp_path / "myppo.yml").write_text(content)
    arguments = ["--algo", "myppo", "--env", "CartPole-v1", "--conf-file", "myppo.yml"]
    assert expected in python_error("-m", "rl_zoo3.train", *arguments, folder=tmp_path)


def test_subprocess_environments_and_a_progress_bar(tmp_path: Path) -> None:
    (tmp_path / "tell.py").write_text(CALLBACK)
    overridden = ["n_envs:2", "n_steps:32", "batch_size:64", "callback:'tell.TellEnvironments'"]
    output, agent, _ = train(tmp_path, "-n", 128, "--vec-env", "subproc", "--progress", "--hyperparams", *overridden)
    assert "environments: 2 in a SubprocVecEnv" in output
    assert "128/128" in output
    assert agent.num_timesteps == 128


def test_an_environment_without_an_entry_falls_back_to_rl_zoo3(tmp_path: Path) -> None:
    output, agent, _ = train(tmp_path, "-n", 64, "--hyperparams", "n_steps:64", "n_epochs:1", env="CartPoleNoVel-v1")
    (line,) = [line for line in output.splitlines() if line.startswith("myppo has no entry")]
    assert line == "myppo has no entry of its own for CartPoleNoVel-v1: using rl_zoo3's ppo.yml"
    assert "Using 'default' hyperparameters" in output
    assert agent.num_timesteps == 64


def test_the_console_script_trains(tmp_path: Path) -> None:
    # `rl_zoo3 train` is this module's main function.
    python_output(
        "-m", "rl_zoo3.cli", "train", "--algo", "myppo", "--env", "CartPole-v1", "-n", 256, *NO_EVALUATION,
        folder=tmp_path,
    )  # fmt: skip
    assert PPO.load(tmp_path / "logs/myppo/CartPole-v1_1/CartPole-v1.zip", device="cpu").num_timesteps == 256


SMALL = ["n_envs:2", "n_steps:64", "batch_size:64", "n_epochs:1"]
PONG = "PongNoFrameskip-v4"


def test_pong_trains_on_native_frames_and_is_evaluated_on_those_of_sb3(tmp_path: Path) -> None:
    arguments = ["--env", PONG, "-n", 256, "--eval-freq", 256, "--eval-episodes", 1, "--hyperparams", *SMALL]
    output = zoo_output("train", *arguments, folder=tmp_path)
    run = tmp_path / "logs" / "myppo" / f"{PONG}_1"
    agent = PPO.load(run / f"{PONG}.zip", device="cpu")
    assert "Playing 2 games natively, with a stack of 4 frames" in output
    assert "Stacking 4 frames" in output  # of the evaluation
    assert recorded_settings(run / PONG)["native_atari"] is True
    assert agent.observation_space.shape == (4, 84, 84)
    assert (agent.num_timesteps, agent._n_updates) == (256, 2)
    assert {path.name for path in run.glob("*.monitor.csv")} == {"0.monitor.csv", "1.monitor.csv"}
    # A whole game of raw points, not a point that clipping or a lost life made.
    assert -21 <= np.load(run / "evaluations.npz")["results"].item() <= -15


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--hyperparams", *SMALL, "native_atari:False"], "Stacking 4 frames"),
        (["--vec-env", "subproc", "--hyperparams", *SMALL], "another vectorized environment was asked for"),
    ],
)
def test_pong_trains_on_sb3s_wrappers_where_that_is_asked_for(tmp_path: Path, arguments: list[Any], said: str) -> None:
    output, agent, settings = train(tmp_path, "-n", 128, *arguments, env=PONG)
    assert said in output
    assert "natively" not in output
    assert settings["env_wrapper"] == ["stable_baselines3.common.atari_wrappers.AtariWrapper"]
    assert agent.observation_space.shape == (4, 84, 84)
    actions, _ = agent.predict(np.zeros((3, 4, 84, 84), np.uint8))
    assert actions.shape == (3,)
