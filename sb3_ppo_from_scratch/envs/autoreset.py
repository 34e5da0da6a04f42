"""How a vector environment of Gymnasium begins new episodes, and how to begin some of them at once.

Owns autoreset modes and their gaps in Gymnasium's own classes; must not know what SB3 expects.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics
from numpy.typing import NDArray

# In NEXT_STEP mode a vector environment need not understand reset_mask, and nothing tells whether it does.
_RESETS_BY_MASK = {"SyncVectorEnv", "AsyncVectorEnv", "AtariVectorEnv"}
_REMEDY = (
    "construct it with autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP, or with gymnasium.make_vec("
    "..., vectorization_mode='sync', vector_kwargs={'autoreset_mode': AutoresetMode.SAME_STEP})."
)
# What wrappers remember of each environment's episode, and what a reset of some makes them forget of all.
_MEMORIES: dict[type[VectorWrapper[Any, Any, Any, Any, Any]], tuple[str, ...]] = {
    RecordEpisodeStatistics: ("episode_start_times", "episode_returns", "episode_lengths", "prev_dones"),
    NormalizeReward: ("accumulated_reward", "_prev_dones"),
}


def usable_autoreset_mode(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """The mode, if new episodes can be begun in the step that ended the old ones.

    :param env: wrapped or not
    :return: from the environment's metadata
    :raises ValueError: if the metadata does not say, or if NEXT_STEP mode would insert fake transitions that cannot
        be avoided; says how to construct the environment instead
    """
    if "autoreset_mode" not in env.metadata:
        raise ValueError(
            f"{env} does not say when it resets: its metadata lacks 'autoreset_mode'. Set it to a member of "
            "gymnasium.vector.AutoresetMode in the environment's class."
        )
    mode = AutoresetMode(env.metadata["autoreset_mode"])
    base = env.unwrapped
    if any(isinstance(wrapper, NormalizeObservation) for wrapper in wrappers_of(env)):
        raise ValueError(
            f"{env}: NormalizeObservation cannot begin some episodes and not others; use SB3's VecNormalize."
        )
    if mode is AutoresetMode.NEXT_STEP:
        if not any(kind.__name__ in _RESETS_BY_MASK for kind in type(base).__mro__):
            raise ValueError(f"{env} resets one step late, which would teach transitions that never were: {_REMEDY}")
        # Gymnasium 1.4: its worker forgets that it was reset, and resets again at the next step.
        if not getattr(base, "shared_memory", True):
            raise ValueError(f"{env} resets twice without shared memory: pass shared_memory=True, or {_REMEDY}")
    return mode


def reset_only(env: VectorEnv[Any, Any, Any], mask: NDArray[np.bool_]) -> tuple[Any, dict[str, Any]]:
    """Begin new episodes in some environments, leaving the others where they are.

    :param env: whose mode ``usable_autoreset_mode`` accepts, and is not SAME_STEP
    :param mask: [n_envs] bool, at least one true
    :return: observations and infos; only the rows of the mask mean anything
    """
    kept = [
        (wrapper, name, np.array(getattr(wrapper, name)))
        for wrapper in wrappers_of(env)
        for kind, names in _MEMORIES.items()
        if isinstance(wrapper, kind)
        for name in names
    ]
    result = env.reset(options={"reset_mask": mask.copy()})
    # Gymnasium 1.4: the mask is popped before RecordEpisodeStatistics looks for it; NormalizeReward does not look.
    for wrapper, name, values in kept:
        getattr(wrapper, name)[~mask] = values[~mask]
    return result


def wrappers_of(env: VectorEnv[Any, Any, Any]) -> list[VectorWrapper[Any, Any, Any, Any, Any]]:
    """The wrappers around a vector environment.

    :param env: wrapped or not
    :return: from the outside in
    """
    found = []
    while isinstance(env, VectorWrapper):
        found.append(env)
        env = env.env
    return found
