"""The same seed gives the same model: in one process, in another process, and after a first run."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch as th

from sb3_ppo_from_scratch import PPO
from tests.environments import vector_environment

REPOSITORY = Path(__file__).resolve().parents[2]
HEADS: dict[str, dict[str, Any]] = {
    "discrete": {"action": "discrete"},
    "gaussian": {"action": "box"},
    "gsde": {"action": "box", "use_sde": True},
    "multi_binary": {"action": "multi_binary"},
    "dict": {"action": "multi_discrete", "observation": "dict_of_vectors"},
}


def trained_model(head: str, engine: str, seed: int) -> PPO:
    """A model after three rollouts, from nothing but its arguments."""
    spaces = dict(HEADS[head])
    use_sde = spaces.pop("use_sde", False)
    env = vector_environment(2, time_limit=5, **spaces)
    policy = "MultiInputPolicy" if "observation" in spaces else "MlpPolicy"
    model = PPO(
        policy, env, n_steps=32, batch_size=16, n_epochs=3, use_sde=use_sde, seed=seed, device="cpu", engine=engine
    )
    return model.learn(192)


def fingerprint(model: PPO) -> str:
    """A digest of every parameter and buffer of the policy."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.policy.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("head", HEADS)
def test_the_same_seed_gives_the_same_parameters_twice(head: str, engine: str) -> None:
    first = fingerprint(trained_model(head, engine, seed=3))
    th.rand(7)  # whatever happens in between must not matter
    assert fingerprint(trained_model(head, engine, seed=3)) == first


def test_another_seed_gives_other_parameters() -> None:
    assert fingerprint(trained_model("discrete", "auto", 3)) != fingerprint(trained_model("discrete", "auto", 4))


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_another_process_gives_the_same_parameters(engine: str) -> None:
    code = f"""
import torch
torch.set_num_threads(1)
from tests.learning.test_determinism import fingerprint, trained_model
print(fingerprint(trained_model("discrete", {engine!r}, 3)), fingerprint(trained_model("gaussian", {engine!r}, 3)))
"""
    # Another hash seed, so that nothing may hang on the order of a set.
    environment = {**os.environ, "PYTHONHASHSEED": "17", "PYTHONPATH": str(REPOSITORY)}
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        check=True,
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
    )
    here = [fingerprint(trained_model(head, engine, 3)) for head in ("discrete", "gaussian")]
    assert answer.stdout.split()[-2:] == here
