"""Two vector environments stepped side by side with the same actions, and everything they return compared.

Owns the comparison; must not know how either environment works.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv


def assert_same_run(ours: VecEnv, theirs: VecEnv, n_steps: int) -> Counter[str]:
    """Reset both, take random steps, and demand the same bits of both.

    :param ours: to be checked
    :param theirs: to be matched
    :param n_steps: how many
    :return: how often each thing worth comparing occurred: dones, episodes, truncations, rewards
    """
    seen: Counter[str] = Counter()
    ours.action_space.seed(0)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert_same_value(ours.reset(), theirs.reset(), "first observations")
    for step in range(n_steps):
        action = np.array([ours.action_space.sample() for _ in range(ours.num_envs)])
        our_step, their_step = ours.step(action), theirs.step(action)
        for name, our_part, their_part in zip(
            ("observations", "rewards", "dones", "infos"), our_step, their_step, strict=True
        ):
            assert_same_value(our_part, their_part, f"{name} of step {step}")
        assert_same_value(ours.unwrapped.reset_infos, theirs.unwrapped.reset_infos, f"reset infos of step {step}")
        seen["rewards"] += int(np.count_nonzero(our_step[1]))
        seen["dones"] += int(our_step[2].sum())
        seen["episodes"] += sum("episode" in info for info in our_step[3])
        seen["truncations"] += sum(info["TimeLimit.truncated"] for info in our_step[3])
    return seen


def assert_same_value(ours: Any, theirs: Any, what: str) -> None:
    """Same type, same shape and dtype, same bits; only the seconds of an episode may differ.

    :param ours: array, number, or list, dict of such
    :param theirs: what it must be
    :param what: they are, for the message
    """
    if isinstance(theirs, dict):
        # DummyVecEnv's dicts of observations are ordered ones.
        assert isinstance(ours, dict), what
        assert sorted(ours) == sorted(theirs), what
        for key in theirs:
            if key != "t":
                assert_same_value(ours[key], theirs[key], f"{key} in {what}")
    elif isinstance(theirs, list | tuple):
        assert type(ours) is type(theirs), what
        assert len(ours) == len(theirs), what
        for i, (our_part, their_part) in enumerate(zip(ours, theirs, strict=True)):
            assert_same_value(our_part, their_part, f"{what}[{i}]")
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype, what
        np.testing.assert_array_equal(ours, theirs, err_msg=what, strict=True)
    else:
        assert type(ours) is type(theirs), f"{what}: {type(ours)} instead of {type(theirs)}"
        assert ours == theirs, f"{what}: {ours} instead of {theirs}"
