"""An SB3 policy with any features extractor, run by torch without distribution objects.

Owns the forward pass up to logits (or means) and values, and the way gradients enter there; must not know losses.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.preprocessing import is_image_space, preprocess_obs
from stable_baselines3.common.torch_layers import NatureCNN

from sb3_ppo_from_scratch.core.arrays import stacked
from sb3_ppo_from_scratch.core.families import ActionFamily, Head
from sb3_ppo_from_scratch.core.records import FrameStacks, Minibatch, PackedRollout
from sb3_ppo_from_scratch.networks.flat_parameters import FlatAdam, FlatParameters
from sb3_ppo_from_scratch.networks.memory import keep_freed_memory
from sb3_ppo_from_scratch.networks.nature_cnn import (
    gathered_blocks,
    is_rearrangeable,
    nature_features,
    needed_blocks,
)
from sb3_ppo_from_scratch.networks.observations import as_tensors, rows_of
from sb3_ppo_from_scratch.networks.recognition import may_draw

# Rollouts whose stacks take fewer bytes are put together once; of larger ones, only each minibatch is.
_WHOLE_STACKS = 2**28


class TorchPolicy:
    """Actor and critic as torch modules; the gradient of the loss enters at their outputs.

    :param policy: recognised
    :param family: of its actions
    :param dtype: of the features extractor and the hidden layers; heads always compute in float32
    :param randomness: a context in which modules that may draw (dropout, for instance) do so
    :param compile_update: let ``torch.compile`` translate what is differentiated; acting stays eager
    """

    def __init__(
        self,
        policy: ActorCriticPolicy,
        family: ActionFamily,
        dtype: th.dtype = th.float32,
        randomness: AbstractContextManager[None] | None = None,
        compile_update: bool = False,
    ) -> None:
        if policy.device.type == "cpu":
            keep_freed_memory()
        self.policy = policy
        self.family = family
        self.parameters = FlatParameters(policy.optimizer.param_groups[0]["params"])
        self.optimizer = FlatAdam(policy.optimizer, self.parameters)
        self._dtype = dtype
        self._randomness = randomness if randomness is not None and may_draw(policy) else nullcontext()
        space = policy.observation_space
        self._rearranged = (
            policy.share_features_extractor
            and isinstance(space, spaces.Box)
            and is_rearrangeable(policy.features_extractor, space.shape)
        )
        is_scaled = policy.normalize_images and is_image_space(space)
        self._scale = 1.0 / 255.0 if is_scaled else 1.0
        self._differentiated = th.compile(self._outputs) if compile_update else self._outputs
        self._heads: tuple[th.Tensor, th.Tensor] | None = None

    def bind(self) -> None:
        """Make sure that the flat vector is still what the policy's parameters look at."""
        self.parameters.bind()

    def features(self, observations: Any) -> Any:
        """Observations on the device, rearranged but not yet widened to floats.

        :param observations: [B, *obs_shape] array or tensor, or a dict of such
        :return: a tensor with B rows, or a dict of such tensors
        """
        tensors = as_tensors(observations, self.policy.device)
        return needed_blocks(tensors) if self._rearranged else tensors

    def forward(self, features: Any) -> tuple[Head, th.Tensor]:
        """See ``Counterpart``; where gradients are enabled, the graph is kept for ``backward``.

        :param features: B rows, from ``features``
        :return: the actor's head, and values [B], all detached and float32
        """
        policy = self.policy
        with self._randomness:
            outputs, values, latent = (
                self._differentiated(features) if th.is_grad_enabled() else self._outputs(features)
            )
        self._heads = (outputs, values)
        log_std = policy.log_std.detach() if hasattr(policy, "log_std") else None
        return Head(outputs.detach(), log_std, latent.detach() if policy.use_sde else None), values.detach()

    def _outputs(self, features: Any) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        policy = self.policy
        pi_features, vf_features = self._extracted(features)
        latent_pi = self._hidden(policy.mlp_extractor.policy_net, pi_features).float()
        latent_vf = self._hidden(policy.mlp_extractor.value_net, vf_features).float()
        return policy.action_net(latent_pi), policy.value_net(latent_vf)[:, 0], latent_pi

    def backward(self, output_gradient: th.Tensor, value_gradient: th.Tensor, log_std_gradient: Any) -> None:
        """Fill the gradients of all parameters, and let go of the graph.

        :param output_gradient: [B, K]
        :param value_gradient: [B]
        :param log_std_gradient: in the shape of the parameter, or None
        """
        assert self._heads is not None
        gradients = th.autograd.grad(
            self._heads,
            self.policy.optimizer.param_groups[0]["params"],  # in the order of the flat vector
            (output_gradient, value_gradient),
            allow_unused=True,
            materialize_grads=True,
        )
        th.cat([gradient.flatten() for gradient in gradients], out=self.parameters.gradients)
        if log_std_gradient is not None:
            self.policy.log_std.grad.copy_(log_std_gradient)  # type: ignore[union-attr]
        self._heads = None

    def computing(self, n_rows: int) -> AbstractContextManager[None]:
        """See ``Counterpart``: torch has threads of its own."""
        return nullcontext()

    def loaded(self, rollout: PackedRollout) -> PackedRollout:
        """See ``Counterpart``: one transfer a rollout, images still in their own dtype."""
        device = self.policy.device
        observations = rollout.observations
        return PackedRollout(
            self._loaded_stacks(observations) if isinstance(observations, FrameStacks) else self.features(observations),
            th.as_tensor(rollout.actions, device=device),
            th.as_tensor(rollout.scalars, device=device),
        )

    def indices(self, order: npt.NDArray[np.int64]) -> th.Tensor:
        """See ``Counterpart``: one transfer an epoch."""
        return th.as_tensor(order, device=self.policy.device)

    def drawn(self, rollout: PackedRollout, indices: th.Tensor) -> Minibatch:
        """See ``Counterpart``."""
        return Minibatch(
            self._rows(rollout.observations, indices),
            rollout.actions.index_select(0, indices),
            *rollout.scalars.index_select(1, indices),
        )

    def _loaded_stacks(self, stacks: FrameStacks) -> Any:
        frames = as_tensors(stacks.frames, self.policy.device)
        index = as_tensors(stacks.index, self.policy.device).long()
        if not self._rearranged:
            return FrameStacks(frames, index)
        frames = needed_blocks(frames[:, None])
        if index.numel() * frames[0].numel() > _WHOLE_STACKS:
            return FrameStacks(frames, index)
        return gathered_blocks(frames, index, frames.dtype)

    def _rows(self, observations: Any, indices: th.Tensor) -> Any:
        if not isinstance(observations, FrameStacks):
            return rows_of(observations, indices)
        index = observations.index.index_select(0, indices)
        if self._rearranged:
            return gathered_blocks(observations.frames, index, self._dtype)
        return stacked(observations.frames, index)

    def prepared(self, minibatch: Minibatch) -> Minibatch:
        """See ``Counterpart``."""
        return minibatch._replace(observations=self.features(minibatch.observations))

    def _extracted(self, features: Any) -> tuple[th.Tensor, th.Tensor]:
        policy = self.policy
        if self._rearranged:
            assert isinstance(policy.features_extractor, NatureCNN)
            extracted = nature_features(policy.features_extractor, features, self._scale, self._dtype)
            return extracted, extracted
        observations = preprocess_obs(features, policy.observation_space, normalize_images=policy.normalize_images)
        with self._narrowed():
            pi_features = policy.pi_features_extractor(observations)
            shared = policy.share_features_extractor
            return pi_features, pi_features if shared else policy.vf_features_extractor(observations)

    def _hidden(self, layers: th.nn.Sequential, features: th.Tensor) -> th.Tensor:
        with self._narrowed():
            hidden: th.Tensor = layers(features)
        return hidden

    def _narrowed(self) -> AbstractContextManager[None]:
        return th.autocast(self.policy.device.type, self._dtype, enabled=self._dtype != th.float32)
