"""The seam between the epochs and the arithmetic: what an update engine must offer.

Owns the contract only; which engine serves which policy is decided in ``engines``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from sb3_ppo_from_scratch.core.arrays import Array
from sb3_ppo_from_scratch.core.records import LossTerms, Minibatch, UpdateSettings


class UpdateEngine(Protocol):
    """Turns minibatches into optimizer steps, each in two halves so that ``target_kl`` can stop in between."""

    def begin(self, rollout_buffer: Any, batch_size: int) -> None:
        """Get ready for one update.

        :param rollout_buffer: full; ours, or any class with the interface of SB3's
        :param batch_size: transitions per minibatch
        """
        ...

    def minibatches(self) -> Iterator[Minibatch]:
        """One epoch over the rollout, in fresh random order.

        :return: minibatches in the form that ``evaluate`` reads
        """
        ...

    def prepared(self, minibatch: Minibatch) -> Minibatch:
        """Bring a minibatch of tensors, as rollout buffers serve it, into the form that ``evaluate`` reads.

        :param minibatch: B transitions
        :return: the same transitions
        """
        ...

    def evaluate(self, minibatch: Minibatch, settings: UpdateSettings) -> LossTerms:
        """Score a minibatch under the current policy.

        :param minibatch: from ``minibatches`` or ``prepared``
        :param settings: of this update
        :return: terms for the log, without graphs
        """
        ...

    def step(self, settings: UpdateSettings) -> Array:
        """Descend along the gradient of the minibatch evaluated last.

        :param settings: of this update
        :return: the joint L2 norm of the gradient before it was clipped, a scalar
        """
        ...

    def finish(self) -> None:
        """End the update: release graphs, leave the optimizer's state complete."""
        ...
