"""Validation of observation and action spaces.

Owns the error messages; must not know how anything is used, and changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from sb3_ppo_from_scratch.settings import InvalidArgumentError


class UnsupportedSpaceError(InvalidArgumentError, NotImplementedError):
    """A space that no policy can read or sample; SB3 raises NotImplementedError for some of them."""


def check_observation_space(space: spaces.Space[Any]) -> None:
    """Refuse observation spaces that no SB3 policy can read.

    :raises UnsupportedSpaceError: naming the space and the remedy
    """
    if isinstance(space, spaces.Dict) and space.spaces:
        for key, subspace in space.spaces.items():
            if isinstance(subspace, (spaces.Dict, spaces.Tuple)):
                raise UnsupportedSpaceError(
                    f"The observation space nests {subspace} under {key!r}; flatten it with "
                    "gymnasium.wrappers.FlattenObservation or give each part its own key."
                )
            check_observation_space(subspace)
        return
    if isinstance(space, spaces.Box) and space.shape == ():
        raise UnsupportedSpaceError(f"The observation space {space} has no axis; reshape the observation to (1,).")
    if isinstance(space, spaces.Box) and 0 in space.shape:
        raise UnsupportedSpaceError(f"The observation space {space} holds nothing; leave it out.")
    if not isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
        raise UnsupportedSpaceError(
            f"The observation space {space} is not supported; use Box, Discrete, MultiDiscrete, MultiBinary or a Dict "
            "of these (gymnasium.wrappers.FlattenObservation turns most others into a Box)."
        )
    _check_discrete("observation", space)


def check_action_space(space: spaces.Space[Any], squashed: bool) -> None:
    """Refuse action spaces that PPO cannot sample or that the environment would misread.

    :param space: of one environment
    :param squashed: whether the policy squashes its actions with tanh
    :raises UnsupportedSpaceError: naming the space and the remedy
    """
    if not isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
        raise UnsupportedSpaceError(
            f"The action space {space} is not supported; use Box, Discrete, MultiDiscrete or MultiBinary."
        )
    if isinstance(space, spaces.MultiBinary) and len(space.shape) != 1:
        raise UnsupportedSpaceError(f"The action space {space} has several axes; flatten it to one.")
    if isinstance(space, spaces.Box):
        if 0 in space.shape or not np.issubdtype(space.dtype, np.number):
            raise UnsupportedSpaceError(
                f"The action space {space} holds no numbers; use a Box of floats or integers with at least one entry, "
                "or MultiBinary for truth values."
            )
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise UnsupportedSpaceError(
                f"The action space {space} must have finite bounds; wrap the environment with "
                "gymnasium.wrappers.RescaleAction or clip its space."
            )
        with np.errstate(over="ignore"):
            width = space.high - space.low
        widest = np.finfo(np.float32).max if np.issubdtype(space.dtype, np.floating) else 2**53
        if squashed and not np.all((width >= 0) & (width <= widest)):
            raise UnsupportedSpaceError(
                f"The bounds of {space} are further apart than {space.dtype} can count, so that squashed actions "
                "cannot be scaled to them; use a wider dtype or squash_output=False."
            )
    _check_discrete("action", space)


def _check_discrete(role: str, space: spaces.Space[Any]) -> None:
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim != 1:
        raise UnsupportedSpaceError(f"The {role} space {space} has {space.nvec.ndim} axes; flatten it to one.")
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)) and np.any(space.start):
        raise UnsupportedSpaceError(
            f"The {role} space {space} does not start at 0; shift it with gymnasium.wrappers.Transform"
            f"{role.capitalize()}, since policies count from 0."
        )
