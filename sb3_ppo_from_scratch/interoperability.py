"""What saved files of stock SB3 and of this package need from each other.

Owns the one mention of SB3's rollout buffers; must not know how a model is trained.
"""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.buffers import DictRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer

from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer


def rollout_buffer_class(requested: type[Any] | None) -> type[Any]:
    """The buffer class to build: ours in place of SB3's own two, which a zip of stock PPO names; else as asked.

    :param requested: as the user passed it or a saved file names it; None for the default
    :return: a class with the constructor of SB3's rollout buffers
    """
    if requested in (None, StockRolloutBuffer, DictRolloutBuffer):
        return RolloutBuffer
    assert requested is not None
    return requested
