"""The engine for recognised policies: no autograd through the loss, no distribution objects, one flat Adam step.

Owns the order of operations; must not know whether NumPy or torch computes, nor epochs, schedules or logging.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from sb3_ppo_from_scratch.core.arrays import Array
from sb3_ppo_from_scratch.core.records import LossTerms, Minibatch, PackedRollout, UpdateSettings
from sb3_ppo_from_scratch.networks.counterpart import Counterpart
from sb3_ppo_from_scratch.update.objective import HeadGradients, objective


class FusedEngine:
    """One minibatch, one optimizer step, through the hand-written counterpart of a policy.

    :param network: the policy's counterpart
    :param generator: of the order of minibatches
    """

    def __init__(self, network: Counterpart, generator: np.random.Generator) -> None:
        self._network = network
        self._generator = generator
        self._context = ExitStack()
        self._rollout_buffer: Any = None
        self._batch_size = 0
        self._rollout: PackedRollout | None = None
        self._gradients: HeadGradients | None = None

    def begin(self, rollout_buffer: Any, batch_size: int) -> None:
        """See ``UpdateEngine``."""
        self._network.policy.set_training_mode(True)
        self._network.bind()
        self._network.optimizer.bind()
        self._rollout_buffer, self._batch_size = rollout_buffer, batch_size
        packed = rollout_buffer.packed() if hasattr(rollout_buffer, "packed") else None
        self._rollout = None if packed is None else self._network.loaded(packed)
        self._context.enter_context(self._network.computing(batch_size))

    def minibatches(self) -> Iterator[Minibatch]:
        """See ``UpdateEngine``: drawn from the packed rollout, or served by a buffer that has its own way."""
        if self._rollout is None:
            yield from map(self.prepared, self._rollout_buffer.get(self._batch_size))
            return
        order = self._network.indices(self._generator.permutation(self._rollout.scalars.shape[-1]))
        for part in self._rollout_buffer.slices(self._batch_size):
            yield self._network.drawn(self._rollout, order[part])

    def prepared(self, minibatch: Minibatch) -> Minibatch:
        """See ``UpdateEngine``."""
        return self._network.prepared(minibatch)

    def evaluate(self, minibatch: Minibatch, settings: UpdateSettings) -> LossTerms:
        """See ``UpdateEngine``. Agrees with the reference engine to rounding."""
        network = self._network
        head, values = network.forward(minibatch.observations)
        terms, self._gradients = objective(network.family, head, values, minibatch, settings)
        return terms

    def step(self, settings: UpdateSettings) -> Array:
        """See ``UpdateEngine``."""
        assert self._gradients is not None
        self._network.backward(self._gradients.outputs, self._gradients.values, self._gradients.log_std)
        grad_norm = self._network.parameters.clip_gradients(settings.max_grad_norm)
        self._network.optimizer.step()
        return grad_norm

    def finish(self) -> None:
        """See ``UpdateEngine``."""
        self._context.close()
        self._network.optimizer.publish()
        self._rollout_buffer, self._rollout, self._gradients = None, None, None
