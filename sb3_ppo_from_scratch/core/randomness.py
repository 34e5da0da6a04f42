"""Random numbers of our own, so that nobody else's draws change what is learnt.

Owns the generators' states; must not know what is drawn.
"""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple

import numpy as np
import torch as th


class PrivateTorchRandom:
    """A context in which torch's global generators continue a private sequence, and afterwards the public one.

    Code that draws from torch's global state (any policy's ``forward``, dropout) can be kept apart from other code
    that does so, such as a stochastic evaluation between two updates.

    :param seed: of the private sequence
    :param device: whose generator is meant beside the CPU's
    """

    def __init__(self, seed: int, device: th.device) -> None:
        self._device = device if device.type == "cuda" else None
        public = self._states()
        th.manual_seed(seed)
        self._private = self._states()
        self._restore(public)
        self._public = public

    def __enter__(self) -> None:
        self._public = self._states()
        self._restore(self._private)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._private = self._states()
        self._restore(self._public)

    def _states(self) -> tuple[th.Tensor, th.Tensor | None]:
        return th.get_rng_state(), None if self._device is None else th.cuda.get_rng_state(self._device)

    def _restore(self, states: tuple[th.Tensor, th.Tensor | None]) -> None:
        th.set_rng_state(states[0])
        if self._device is not None and states[1] is not None:
            th.cuda.set_rng_state(states[1], self._device)


class Generators(NamedTuple):
    """Everything that one model draws from.

    :param numpy: actions and the order of minibatches
    :param torch: whatever a policy draws by itself
    """

    numpy: np.random.Generator
    torch: PrivateTorchRandom


def seeded_generators(seed: int, device: th.device) -> Generators:
    """New generators.

    :param seed: the same seed gives the same sequences
    :param device: of the policy
    :return: independent of every other generator, also of those that got the same number: an environment's, whose noise
        actions would otherwise repeat, and the one that the weights were drawn from
    """
    for_numpy, for_torch = np.random.SeedSequence(seed).spawn(2)
    return Generators(np.random.default_rng(for_numpy), PrivateTorchRandom(int(for_torch.generate_state(1)[0]), device))
