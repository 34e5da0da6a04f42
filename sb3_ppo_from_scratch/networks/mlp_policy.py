"""An SB3 policy of two perceptrons, run in NumPy on the policy's own parameters.

Owns the pair of chains (actor, critic) and their features; must not know losses, rollouts or optimizers.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.preprocessing import is_image_space, preprocess_obs

from sb3_ppo_from_scratch.core.arrays import stacked
from sb3_ppo_from_scratch.core.families import ActionFamily, Head
from sb3_ppo_from_scratch.core.records import FrameStacks, Minibatch, PackedRollout
from sb3_ppo_from_scratch.networks.blas import threads_for
from sb3_ppo_from_scratch.networks.flat_parameters import FlatAdam, FlatParameters
from sb3_ppo_from_scratch.networks.mlp import FloatArray, Layer, backward, forward, layers_of
from sb3_ppo_from_scratch.networks.observations import as_tensors


class MlpPolicy:
    """Actor and critic as chains of dense layers.

    :param policy: recognised, on the CPU, with features that are the flattened observation
    :param family: of its actions
    """

    def __init__(self, policy: ActorCriticPolicy, family: ActionFamily) -> None:
        self.policy = policy
        self.family = family
        self.parameters = FlatParameters(policy.optimizer.param_groups[0]["params"])
        self.optimizer = FlatAdam(policy.optimizer, self.parameters)
        space = policy.observation_space
        self._observation_is_feature = isinstance(space, spaces.Box) and not is_image_space(space)
        self._memory: tuple[list[FloatArray], list[FloatArray]] | None = None
        self._largest_layer = max(parameter.numel() for parameter in policy.parameters())
        self._take_views()

    def _take_views(self) -> None:
        policy = self.policy
        self._address = self.parameters.values.data_ptr()
        self._actor = layers_of([*policy.mlp_extractor.policy_net, policy.action_net], self._arrays_of)
        self._critic = layers_of([*policy.mlp_extractor.value_net, policy.value_net], self._arrays_of)
        self._log_std: FloatArray | None = None
        self._log_std_gradient: FloatArray | None = None
        if hasattr(policy, "log_std"):
            self._log_std, self._log_std_gradient = self._arrays_of(policy.log_std)

    @property
    def is_complete(self) -> bool:
        """Whether every layer has a counterpart."""
        return self._actor is not None and self._critic is not None

    def _arrays_of(self, parameter: th.Tensor) -> tuple[FloatArray, FloatArray]:
        assert parameter.grad is not None
        return parameter.detach().numpy(), parameter.grad.numpy()

    def bind(self) -> None:
        """Make sure that the chains still look at the policy's parameters."""
        self.parameters.bind()
        # Sharing a tensor with another process moves the vector itself.
        if self.parameters.values.data_ptr() != self._address:
            self._take_views()

    def features(self, observations: Any) -> FloatArray:
        """What the first layers read.

        :param observations: [B, *obs_shape] array or tensor, or a dict of such
        :return: [B, F] float32
        """
        if self._observation_is_feature:
            return np.asarray(observations, dtype=np.float32).reshape(len(observations), -1)
        with th.no_grad():
            tensors = as_tensors(observations, self.policy.device)
            preprocessed = preprocess_obs(
                tensors, self.policy.observation_space, normalize_images=self.policy.normalize_images
            )
            features: th.Tensor = self.policy.pi_features_extractor(preprocessed)
        array: FloatArray = features.numpy()
        return array

    def forward(self, features: FloatArray) -> tuple[Head, FloatArray]:
        """See ``Counterpart``.

        :param features: [B, F]
        :return: the actor's head, and values [B]
        """
        actor, critic = forward(self._chain(self._actor), features), forward(self._chain(self._critic), features)
        self._memory = (actor, critic)
        return Head(actor[-1], self._log_std, actor[-2] if self.policy.use_sde else None), critic[-1][:, 0]

    def backward(self, output_gradient: FloatArray, value_gradient: FloatArray, log_std_gradient: Any) -> None:
        """Fill the gradients of all parameters.

        :param output_gradient: [B, K]
        :param value_gradient: [B]
        :param log_std_gradient: in the shape of the parameter, or None
        """
        assert self._memory is not None
        actor, critic = self._memory
        backward(self._chain(self._actor), actor, output_gradient)
        backward(self._chain(self._critic), critic, value_gradient[:, None])
        if self._log_std_gradient is not None:
            self._log_std_gradient[:] = log_std_gradient

    def computing(self, n_rows: int) -> AbstractContextManager[None]:
        """See ``Counterpart``."""
        return threads_for(n_rows, self._largest_layer)

    def loaded(self, rollout: PackedRollout) -> PackedRollout:
        """See ``Counterpart``."""
        observations = rollout.observations
        if isinstance(observations, FrameStacks):
            observations = stacked(*observations)
        return rollout._replace(observations=self.features(observations))

    def indices(self, order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """See ``Counterpart``."""
        return order

    def drawn(self, rollout: PackedRollout, indices: npt.NDArray[np.int64]) -> Minibatch:
        """See ``Counterpart``."""
        scalars = rollout.scalars.take(indices, axis=1)
        return Minibatch(rollout.observations.take(indices, axis=0), rollout.actions.take(indices, axis=0), *scalars)

    def prepared(self, minibatch: Minibatch) -> Minibatch:
        """See ``Counterpart``."""
        return Minibatch(self.features(minibatch.observations), *(column.numpy() for column in minibatch[1:]))

    @staticmethod
    def _chain(layers: list[Layer] | None) -> list[Layer]:
        assert layers is not None
        return layers
