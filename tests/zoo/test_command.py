"""Owns the explicit route, `python -m sb3_ppo_from_scratch.zoo`, with torch's autoload switched off."""

from pathlib import Path

import pytest

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.zoo.__main__ import COMMANDS, main
from tests.zoo.conftest import Run
from tests.zoo.processes import python_error, python_output

COMMAND = ("-m", "sb3_ppo_from_scratch.zoo")
WITHOUT_HOOK = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def test_without_the_hook_rl_zoo3_alone_does_not_know_the_algorithm(tmp_path: Path) -> None:
    output = python_error("-m", "rl_zoo3.train", "--algo", "myppo", folder=tmp_path, **WITHOUT_HOOK)
    assert "invalid choice: 'myppo'" in output


def test_train_with_subprocess_environments(tmp_path: Path) -> None:
    arguments = ["--algo", "myppo", "--env", "CartPole-v1", "-n", 256, "--eval-freq", -1, "--vec-env", "subproc"]
    overridden = ["--hyperparams", "n_envs:2", "n_steps:128"]
    output = python_output(*COMMAND, "train", *arguments, *overridden, folder=tmp_path, **WITHOUT_HOOK)
    assert "Saving to logs/myppo/CartPole-v1_1" in output
    assert PPO.load(tmp_path / "logs/myppo/CartPole-v1_1/CartPole-v1.zip", device="cpu").num_timesteps == 256


def test_enjoy(trained: Run, tmp_path: Path) -> None:
    arguments = ["--algo", "myppo", "--env", "CartPole-v1", "-f", trained.logs, "--no-render", "-n", 600]
    output = python_output(*COMMAND, "enjoy", *arguments, folder=tmp_path, **WITHOUT_HOOK)
    assert "Mean reward: " in output


def test_every_command_is_a_module_of_rl_zoo3(tmp_path: Path) -> None:
    # Found, not imported: some need packages that are not ours to require.
    script = "import importlib.util, sys; print([name for name in sys.argv[1:] if not importlib.util.find_spec(name)])"
    modules = [module for module in COMMANDS.values() if ".plots." not in module]
    assert python_output("-c", script, *modules, folder=tmp_path, **WITHOUT_HOOK) == "[]\n"


def test_an_unknown_command_lists_the_known_ones() -> None:
    with pytest.raises(SystemExit, match="unknown command 'trian'") as error:
        main(["trian", "--algo", "myppo"])
    assert all(command in str(error.value) for command in COMMANDS)


@pytest.mark.parametrize("arguments, status", [([], 2), (["--help"], 0)])
def test_usage(arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == status
    assert "plots.plot_train" in capsys.readouterr().out
