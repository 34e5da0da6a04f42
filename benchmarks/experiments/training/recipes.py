"""What one setting of an experiment is made of.

Owns the form of a setting; must not know which settings there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """Everything but task, seed and steps.

    :param n_envs: environments, one after the other in one process
    :param norm_obs: observations by their running mean and standard deviation
    :param norm_reward: rewards by the running standard deviation of discounted returns
    :param ppo: arguments of PPO
    :param plays_at_random: uniformly random actions instead of PPO, for the score that counts as nothing
    """

    n_envs: int = 1
    norm_obs: bool = True
    norm_reward: bool = False
    ppo: Mapping[str, Any] = field(default_factory=dict)
    plays_at_random: bool = False

    def but(self, **changes: Any) -> Recipe:
        """The same with something else.

        :param changes: of fields, or of PPO's arguments
        """
        fields = {name: changes.pop(name) for name in list(changes) if name in self.__dataclass_fields__}
        return replace(self, **fields, ppo={**self.ppo, **changes})


Recipes = Mapping[str, Recipe]


@dataclass(frozen=True)
class LinearDecay:
    """A schedule that falls to nothing; a class, so that models which use it can be saved.

    :param initial: value at the beginning
    """

    initial: float

    def __call__(self, progress_remaining: float) -> float:
        """The value now.

        :param progress_remaining: from 1 to 0
        """
        return self.initial * progress_remaining
