"""From what the policy sampled to what the environment receives.

Owns clipping, unscaling and casting; must not know what is stored or learnt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy

from sb3_ppo_from_scratch.core.arrays import clip


def environment_actions(
    actions: npt.NDArray[Any], action_space: spaces.Space[Any], policy: BasePolicy
) -> npt.NDArray[Any]:
    """Sampled actions as the environment takes them; other families than Box pass through.

    A squashed policy's [−1, 1] is scaled to the bounds, any other Gaussian is clipped to them (as SB3 does), and
    for a Box of integers the result is rounded and cast (SB3 hands floats to the environment).

    :param actions: [E, *action_space.shape], as sampled
    :param action_space: of one environment
    :param policy: says whether its actions are squashed, and unscales them
    :return: [E, *action_space.shape]
    """
    if not isinstance(action_space, spaces.Box):
        return actions
    if policy.squash_output:
        return in_environment_dtype(policy.unscale_action(actions), action_space)
    return in_environment_dtype(clip(actions, action_space.low, action_space.high), action_space)


def in_environment_dtype(actions: npt.NDArray[Any], action_space: spaces.Space[Any]) -> npt.NDArray[Any]:
    """Round to the nearest integer for a Box of integers, narrow for one of float16; return anything else as it is.

    :param actions: [..., *action_space.shape], within the bounds
    :param action_space: of one environment
    :return: the same shape
    """
    if not isinstance(action_space, spaces.Box) or action_space.dtype in (np.float32, np.float64):
        return actions
    if np.issubdtype(action_space.dtype, np.integer):
        rounded = np.rint(actions)
        # The largest 64-bit integers have no float of their own: a bound that was rounded up must not wrap.
        with np.errstate(invalid="ignore"):
            integers = rounded.astype(action_space.dtype)
        at_most = np.where(rounded >= action_space.high, action_space.high, integers)
        return np.where(rounded <= action_space.low, action_space.low, at_most)
    return actions.astype(action_space.dtype)


def stored_action_space(action_space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The space that a rollout buffer must be given to hold what was sampled: a Box of integers becomes one of floats.

    :param action_space: of one environment
    :return: the same space, or its float32 counterpart
    """
    if isinstance(action_space, spaces.Box) and action_space.dtype not in (np.float32, np.float64):
        low, high = action_space.low.astype(np.float32), action_space.high.astype(np.float32)
        return spaces.Box(low, high, dtype=np.float32)
    return action_space
