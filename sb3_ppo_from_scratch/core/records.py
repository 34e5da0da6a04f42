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
    :param policy_loss: scalar, the objective of the policy, negated
    :param value_loss: scalar, what is minimised of the critic's error
    :param entropy_loss: scalar, −mean entropy in nats
    :param approx_kl: scalar, the k3 estimate of KL(π_old ‖ π) in nats
    :param clip_fraction: scalar, share of samples with |ratio − 1| > clip_range
    :param approx_kl_k1: scalar, the k1 estimate of KL(π_old ‖ π) in nats
    """

    loss: Array
    policy_loss: Array
    value_loss: Array
    entropy_loss: Array
    approx_kl: Array
    clip_fraction: Array
    approx_kl_k1: Array


class AdvantageStatistics(NamedTuple):
    """Of all advantages of a rollout.

    :param mean: μ
    :param std: σ, unbiased
    """

    mean: float
    std: float


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
    :param objective: of the policy, a key of ``update.objective.POLICY_OBJECTIVES``
    :param kl_coef: β, weight of the divergence from π_old in the objectives that penalise it
    :param value_clip: a key of ``update.objective.VALUE_CLIPS``
    :param value_loss: a key of ``update.objective.VALUE_LOSSES``
    :param advantage_statistics: whiten every minibatch with those of the rollout; None does not
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
    objective: str = "clip"
    kl_coef: float = 0.0
    value_clip: str = "sb3"
    value_loss: str = "mse"
    advantage_statistics: AdvantageStatistics | None = None


@dataclass(frozen=True)
class UpdateReport:
    """What one update did, in the quantities that SB3 logs under ``train/`` and a few more.

    :param policy_gradient_loss: mean over all minibatches
    :param value_loss: mean over all minibatches
    :param entropy_loss: mean over all minibatches
    :param clip_fraction: mean over all minibatches
    :param approx_kl: mean over the minibatches of the last epoch only, as SB3 logs it
    :param approx_kl_k1: likewise
    :param grad_norm: joint L2 norm of the gradient before clipping, mean over all steps; NaN if none was taken
    :param loss: total loss of the last minibatch
    :param n_epochs: epochs begun, an epoch cut short by ``target_kl`` included
    :param stopping_kl: the approx_kl that ended the update early; None if it ran to its end
    :param minibatches: the terms of all M minibatches in their order, each [M] float32
    :param epoch_starts: number of the first minibatch of each epoch
    """

    policy_gradient_loss: float
    value_loss: float
    entropy_loss: float
    clip_fraction: float
    approx_kl: float
    approx_kl_k1: float
    grad_norm: float
    loss: float
    n_epochs: int
    stopping_kl: float | None
    minibatches: LossTerms
    epoch_starts: tuple[int, ...]
