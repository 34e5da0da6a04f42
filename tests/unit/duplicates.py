"""The ways in which a model is duplicated: saved and loaded, copied, pickled.

Owns them as one parametrization; must not know what a duplicate has to keep.
"""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

from sb3_ppo_from_scratch import PPO
from tests.environments import vector_environment


def by_zip(model: Any, folder: Path, **settings: Any) -> Any:
    """Saved, then loaded with two environments.

    :param model: to duplicate
    :param folder: for the file
    :param settings: that replace those saved
    """
    model.save(folder / "model.zip")
    return PPO.load(folder / "model.zip", env=vector_environment(2), device="cpu", **settings)


every_duplicate = pytest.mark.parametrize(
    "duplicate",
    [by_zip, lambda model, _: copy.deepcopy(model), lambda model, _: pickle.loads(pickle.dumps(model))],
    ids=["zip", "deepcopy", "pickle"],
)
