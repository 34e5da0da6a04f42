"""What a hand-written counterpart of a policy offers, whichever library computes.

Owns the contract only.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core.arrays import Array
from sb3_ppo_from_scratch.core.families import ActionFamily, Head
from sb3_ppo_from_scratch.core.records import Minibatch, PackedRollout
from sb3_ppo_from_scratch.networks.flat_parameters import FlatAdam, FlatParameters


class Counterpart(Protocol):
    """Actor and critic on the policy's own parameters.

    :ivar policy: the policy
    :ivar family: of its actions
    :ivar parameters: of the policy, as one vector
    :ivar optimizer: of the policy, on that vector
    """

    policy: ActorCriticPolicy
    family: ActionFamily
    parameters: FlatParameters
    optimizer: FlatAdam

    def bind(self) -> None:
        """Make sure that the counterpart still looks at the policy's parameters."""
        ...

    def computing(self, n_rows: int) -> AbstractContextManager[None]:
        """A context for everything that is computed on so many rows at once.

        :param n_rows: B
        """
        ...

    def features(self, observations: Any) -> Any:
        """Observations in the form that ``forward`` reads.

        :param observations: [B, *obs_shape] array, or a dict of such arrays
        """
        ...

    def forward(self, features: Any) -> tuple[Head, Array]:
        """The actor's head and the values [B], without graphs; what ``backward`` needs is kept until the next call.

        :param features: B rows, from ``features``
        """
        ...

    def backward(self, output_gradient: Array, value_gradient: Array, log_std_gradient: Array | None) -> None:
        """Fill the gradients of all parameters.

        :param output_gradient: [B, K]
        :param value_gradient: [B]
        :param log_std_gradient: in the shape of the parameter, or None
        """
        ...

    def loaded(self, rollout: PackedRollout) -> PackedRollout:
        """A rollout in the library, on the device and with the features of the counterpart.

        :param rollout: NumPy arrays
        """
        ...

    def indices(self, order: npt.NDArray[np.int64]) -> Array:
        """An order of samples, as ``drawn`` takes slices of it.

        :param order: [N]
        """
        ...

    def drawn(self, rollout: PackedRollout, indices: Array) -> Minibatch:
        """Some transitions of a rollout.

        :param rollout: from ``loaded``
        :param indices: [B]
        """
        ...

    def prepared(self, minibatch: Minibatch) -> Minibatch:
        """A minibatch of tensors, as rollout buffers serve it, in the form of ``drawn``.

        :param minibatch: B transitions
        """
        ...
