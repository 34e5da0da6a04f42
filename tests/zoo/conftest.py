"""Owns the one agent that most of these tests load; must not know what they do with it."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.zoo.processes import zoo_output


class Run(NamedTuple):
    """What one call of `rl_zoo3.train` left behind."""

    logs: Path
    folder: Path
    agent: Path
    output: str


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two rollouts of CartPole with no setting but the algorithm's name, evaluated after each; only to be read."""
    folder = tmp_path_factory.mktemp("trained")
    arguments = ["--env", "CartPole-v1", "-n", 512, "--eval-freq", 256, "--eval-episodes", 2, "--seed", 1]
    output = zoo_output("train", *arguments, folder=folder)
    run = folder / "logs" / "myppo" / "CartPole-v1_1"
    return Run(folder / "logs", run, run / "CartPole-v1.zip", output)
