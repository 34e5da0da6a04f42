"""What a run goes on from after a crash: model, statistics and rows of the same moment, or none of them.

Owns that a checkpoint is complete or not there; must not know when one is written.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from benchmarks.head_to_head.table import Row

_PREFIX = "checkpoint-"
_MODEL = "model.zip"
_STATE = "state.json"
_STATISTICS = "vecnormalize.pkl"


@dataclass(frozen=True)
class State:
    """What a checkpoint says beside the model, which brings its steps and the returns of its last episodes.

    :param training_seconds: spent in ``learn()`` so far, without evaluations
    :param rows: of the table so far, the one of this moment included
    """

    training_seconds: float
    rows: list[Row]


def save_checkpoint(folder: Path, model: OnPolicyAlgorithm, state: State) -> None:
    """Write a checkpoint, then remove its predecessor.

    :param folder: of the run
    :param model: between two updates
    :param state: of the same moment
    """
    unfinished = folder / "checkpoint.part"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    model.save(unfinished / _MODEL)
    if (normalize := model.get_vec_normalize_env()) is not None:
        normalize.save(str(unfinished / _STATISTICS))
    (unfinished / _STATE).write_text(json.dumps(asdict(state)), encoding="utf-8")
    for path in (*unfinished.iterdir(), unfinished):
        _flush(path)
    older = _checkpoints(folder)
    os.replace(unfinished, folder / f"{_PREFIX}{model.num_timesteps:012d}")
    for path in older:
        shutil.rmtree(path)


def latest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint to go on from.

    :param folder: of the run
    :return: None if there is none
    """
    return max(_checkpoints(folder), default=None)


def saved_state(checkpoint: Path) -> State:
    """What a checkpoint says beside the model.

    :param checkpoint: its folder
    """
    return State(**json.loads((checkpoint / _STATE).read_text(encoding="utf-8")))


def saved_model(
    checkpoint: Path, kind: type[OnPolicyAlgorithm], env: VecEnv, *, seed: int, device: str
) -> OnPolicyAlgorithm:
    """The model of a checkpoint, to go on training.

    :param checkpoint: its folder
    :param kind: of the model
    :param env: to train on, given the statistics of the checkpoint if it normalises
    :param seed: of what happens from now on, for otherwise the first steps of the run would be drawn again
    :param device: where torch computes
    """
    if (normalize := unwrap_vec_normalize(env)) is not None:
        saved = VecNormalize.load(str(checkpoint / _STATISTICS), normalize.venv)
        normalize.obs_rms, normalize.ret_rms = saved.obs_rms, saved.ret_rms
    model = kind.load(checkpoint / _MODEL, env=env, device=device)
    model.set_random_seed(seed)
    return model


def _checkpoints(folder: Path) -> list[Path]:
    return list(folder.glob(f"{_PREFIX}*"))


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
