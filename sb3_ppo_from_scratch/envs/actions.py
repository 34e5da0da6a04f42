"""Checks of a batch of actions before it reaches a vector environment.

Owns the error messages about actions; must not know any environment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import concatenate, create_empty_array


def checked_actions(actions: Any, space: spaces.Space[Any], n_envs: int) -> Any:
    """One action for each environment, as one batch that the environments can take.

    A native environment that gets a wrong action may wait for ever, so nothing doubtful may pass.

    :param actions: [n_envs, ...] array or a sequence of ``n_envs`` actions; for Dict and Tuple spaces a sequence of
        ``n_envs`` single actions, or a batch laid out as ``gymnasium.vector`` does
    :param space: of a single action
    :param n_envs: how many environments wait for an action
    :return: an array with the space's dtype; for Dict and Tuple spaces a batch as ``gymnasium.vector`` lays it out
    :raises TypeError: if whole numbers are wanted and something else is given
    :raises ValueError: if the number or the shape of the actions is wrong, or a discrete action is out of range
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        return _composite_batch(actions, space, n_envs)
    given = np.asarray(actions)
    wanted = (n_envs, *(space.shape or ()))
    if given.shape != wanted:
        raise ValueError(f"Expected actions of shape {wanted} for {n_envs} environments, got shape {given.shape}.")
    if np.issubdtype(space.dtype, np.integer) and not np.issubdtype(given.dtype, np.integer):
        raise TypeError(f"The actions of {space} are whole numbers, got an array of {given.dtype}.")
    bounds = _bounds(space)
    if bounds is not None and not ((given >= bounds[0]) & (given < bounds[1])).all():
        raise ValueError(f"Actions {given.tolist()} are not all within {space}.")
    return given.astype(space.dtype, copy=False)


def _bounds(space: spaces.Space[Any]) -> tuple[Any, Any] | None:
    """First valid value and first value above the range, where the space is a range of whole numbers."""
    if isinstance(space, spaces.Discrete):
        return space.start, space.start + space.n
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + space.nvec
    if isinstance(space, spaces.MultiBinary):
        return 0, 2
    return None


def _composite_batch(actions: Any, space: spaces.Space[Any], n_envs: int) -> Any:
    if isinstance(actions, dict) or (isinstance(space, spaces.Tuple) and isinstance(actions, tuple)):
        return actions
    singles = list(actions)
    if len(singles) != n_envs:
        raise ValueError(f"Expected {n_envs} actions, got {len(singles)}.")
    for action in singles:
        if not space.contains(action):
            raise ValueError(f"Action {action!r} is not within {space}.")
    empty = create_empty_array(space, n_envs)
    assert isinstance(empty, dict | tuple)
    return concatenate(space, singles, empty)
