"""The immutable records that flow from the rollout through the update to the logger.

Owns field names only (they are Stable-Baselines3's); must not compute anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from sb3_ppo_from_scratch.core.arrays import Array


class FrameStacks(NamedTuple):
    """N stacks of C images that share P frames, most of them with their neighbours; see ``arrays.stacked``.

    :param frames: [P, H, W] uint8
    :param index: [N, C] int32, positions in [0, P) of the frames of each stack, the newest last
    """

    frames: Array
    index: Array


class PackedRollout(NamedTuple):
    """A whole rollout of N = T·E transitions as flat columns, cheap to draw minibatches from.

    :param observations: [N, *obs_shape], ``FrameStacks`` of N images, or a dict of arrays
    :param actions: [N, action_dim] float32
    :param scalars: [4, N] float32: old values, old log-probabilities, advantages, returns
    """

    observations: Any
    actions: Array
    scalars: Array


class Minibatch(NamedTuple):
    """A set of B transitions, in the field order of SB3's ``RolloutBufferSamples``.

    A rollout buffer serves tensors; an engine may prepare arrays or tensors of its own in the same fields.

    :param observations: [B, ...] in the dtype of the observation space, or a dict of such tensors
    :param actions: [B, action_dim] float32, as sampled by the policy (before clipping or casting)
    :param old_values: [B] float32, V(s) when the transition was collected
    :param old_log_prob: [B] float32, log π_old(a|s) in nats
    :param advantages: [B] float32, Â, not normalised
    :param returns: [B] float32, R = Â + V_old, the regression target of the critic
    """

    observations: Any
    actions: Array
    old_values: Array
    old_log_prob: Array
    advantages: Array
    returns: Array


class LossTerms(NamedTuple):
    """What one minibatch says before its optimizer step; no term carries a graph.

    :param loss: scalar, policy_loss + ent_coef · entropy_loss + vf_coef · value_loss
    :param policy_loss: scalar, −L^CLIP
    :param value_loss: scalar, mean squared error of the critic
    :param entropy_loss: scalar, −mean entropy in nats
    :param approx_kl: scalar, the k3 estimate of KL(π_old ‖ π) in nats
    :param clip_fraction: scalar, share of samples with |ratio − 1| > clip_range
    """

    loss: Array
    policy_loss: Array
    value_loss: Array
    entropy_loss: Array
    approx_kl: Array
    clip_fraction: Array


@dataclass(frozen=True)
class UpdateSettings:
    """The hyperparameters of one update, every schedule already evaluated.

    :param n_epochs: passes over the rollout
    :param batch_size: transitions per minibatch
    :param clip_range: ε of the clipped surrogate
    :param clip_range_vf: bound on the change of the value prediction; None for no bound
    :param ent_coef: weight of the entropy bonus
    :param vf_coef: weight of the value loss
    :param max_grad_norm: bound on the joint L2 norm of all gradients
    :param normalize_advantage: whiten the advantages of each minibatch
    :param target_kl: stop the update once approx_kl exceeds 1.5 × this, in nats; None never stops
    """

    n_epochs: int
    batch_size: int
    clip_range: float
    clip_range_vf: float | None
    ent_coef: float
    vf_coef: float
    max_grad_norm: float
    normalize_advantage: bool
    target_kl: float | None


@dataclass(frozen=True)
class UpdateReport:
    """What one update did, in the quantities that SB3 logs under ``train/``.

    :param policy_gradient_loss: mean over all minibatches
    :param value_loss: mean over all minibatches
    :param entropy_loss: mean over all minibatches
    :param clip_fraction: mean over all minibatches
    :param approx_kl: mean over the minibatches of the last epoch only, as SB3 logs it
    :param loss: total loss of the last minibatch
    :param n_epochs: epochs begun, an epoch cut short by ``target_kl`` included
    :param stopping_kl: the approx_kl that ended the update early; None if it ran to its end
    """

    policy_gradient_loss: float
    value_loss: float
    entropy_loss: float
    clip_fraction: float
    approx_kl: float
    loss: float
    n_epochs: int
    stopping_kl: float | None
