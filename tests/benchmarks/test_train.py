"""`python -m benchmarks train`, the program behind `make train`, told from outside."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sb3_ppo_from_scratch import PPO

ROOT = Path(__file__).parents[2]


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "train", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )


# Without and with observations that are normalised, which evaluation has to repeat.
@pytest.mark.parametrize("env_id, n_steps", [("CartPole-v1", 512), ("MountainCarContinuous-v0", 8)])
def test_it_scores_before_and_after_and_leaves_a_model_and_a_picture(env_id: str, n_steps: int, tmp_path: Path) -> None:
    result = program("--env", env_id, "--steps", n_steps, "--eval-episodes", 2, "--out", tmp_path)
    assert result.returncode == 0, result.stderr
    for when in ("before", "after"):
        assert re.search(rf"{when} training +-?\d+\.\d ± \d+\.\d", result.stdout)
    folder = tmp_path / "myppo" / f"{env_id}_1"
    assert PPO.load(folder / f"{env_id}.zip", device="cpu").num_timesteps >= n_steps
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert str(folder / "learning_curve.png") in result.stdout


def test_no_steps_are_refused_by_name(tmp_path: Path) -> None:
    result = program("--steps", 0, "--out", tmp_path)
    assert result.returncode != 0
    assert "argument --steps: 0: give at least 1" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_train_passes_the_game_and_the_steps_on() -> None:
    command = ["make", "--dry-run", "train", "ENV=BreakoutNoFrameskip-v4", "STEPS=7"]
    dry_run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert 'benchmarks train --env "BreakoutNoFrameskip-v4" --steps "7"' in dry_run.stdout
