"""The seam between the epochs and the arithmetic: what an update engine must offer, and which one serves.

Owns the choice and its reason; must not compute losses itself.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core.records import LossTerms, Minibatch, UpdateSettings
from sb3_ppo_from_scratch.update.reference import ReferenceEngine

ENGINES = ("auto", "reference")


class UpdateEngine(Protocol):
    """Turns one minibatch into one optimizer step, in two halves so that ``target_kl`` can stop in between.

    :cvar min_batch_size: smallest ragged last minibatch that the engine wants to see when it normalises advantages
    """

    min_batch_size: ClassVar[int]

    def evaluate(self, minibatch: Minibatch, settings: UpdateSettings) -> LossTerms:
        """Score the minibatch under the current policy.

        :param minibatch: B transitions
        :param settings: of this update
        :return: the loss, with its graph, and detached terms for the log
        """
        ...

    def step(self, loss: th.Tensor, settings: UpdateSettings) -> None:
        """Descend along the gradient of the loss that ``evaluate`` returned last.

        :param loss: scalar with a graph
        :param settings: of this update
        """
        ...


class AutoEngine(ReferenceEngine):
    """The engine that may be faster than SB3, and mends what bitwise equality forbids to mend.

    It differs from the reference in one place: a last minibatch of a single sample, whose advantage cannot be
    normalised, joins the one before it.
    """

    min_batch_size: ClassVar[int] = 2


def select_engine(name: str, policy: ActorCriticPolicy) -> UpdateEngine:
    """The engine that serves a policy.

    :param name: "auto" or "reference"
    :param policy: whose parameters are to be updated
    :return: a fresh engine, bound to the policy
    """
    return ReferenceEngine(policy) if name == "reference" else AutoEngine(policy)
