"""The objective of one minibatch: the choices that a user has, and their gradient at the heads of the network.

Owns the composition of ``core.losses``, ``core.value_losses`` and ``core.families``; must not know networks or
optimizers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sb3_ppo_from_scratch.core import diagnostics, losses, value_losses
from sb3_ppo_from_scratch.core.arrays import Array, mean, namespace
from sb3_ppo_from_scratch.core.families import ActionFamily, Head
from sb3_ppo_from_scratch.core.records import AdvantageStatistics, LossTerms, Minibatch, UpdateSettings
from sb3_ppo_from_scratch.core.value_losses import Criterion


class PolicyObjective(NamedTuple):
    """One of the paper's surrogate objectives; both functions take log r [B], r [B], Â [B] and the settings.

    :param loss: scalar, to be minimised
    :param slope: [B], ∂objective/∂log π of each sample; −1/B times it is the gradient of the loss
    :param penalises_kl: whether ``kl_coef`` counts
    :param adapts_kl_coef: whether ``kl_coef`` follows the divergence from update to update
    """

    loss: Callable[[Array, Array, Array, UpdateSettings], Array]
    slope: Callable[[Array, Array, Array, UpdateSettings], Array]
    penalises_kl: bool = False
    adapts_kl_coef: bool = False


class ValueClip(NamedTuple):
    """What ``clip_range_vf`` does; both functions take V, V_old, R [B], the range and the criterion.

    :param loss: scalar, to be minimised
    :param slope: [B], ∂/∂V of each sample's loss; 1/B times it is the gradient
    """

    loss: Callable[[Array, Array, Array, float | None, Criterion], Array]
    slope: Callable[[Array, Array, Array, float | None, Criterion], Array]


def _clipped_loss(_: Array, ratio: Array, advantages: Array, settings: UpdateSettings) -> Array:
    return losses.clipped_surrogate_loss(ratio, advantages, settings.clip_range)


def _clipped_slope(_: Array, ratio: Array, advantages: Array, settings: UpdateSettings) -> Array:
    return losses.clipped_surrogate_slope(ratio, advantages, settings.clip_range) * ratio


def _penalised_loss(log_ratio: Array, ratio: Array, advantages: Array, settings: UpdateSettings) -> Array:
    kl = diagnostics.approx_kl(log_ratio, ratio)
    return losses.kl_penalised_surrogate_loss(ratio, advantages, kl, settings.kl_coef)


def _penalised_slope(_: Array, ratio: Array, advantages: Array, settings: UpdateSettings) -> Array:
    return losses.kl_penalised_surrogate_slope(ratio, advantages, settings.kl_coef)


def _unclipped_loss(_: Array, ratio: Array, advantages: Array, __: UpdateSettings) -> Array:
    return losses.surrogate_loss(ratio, advantages)


def _unclipped_slope(_: Array, ratio: Array, advantages: Array, __: UpdateSettings) -> Array:
    return ratio * advantages


# Equations 7, 8, 8 with an adaptive coefficient, and 6 of Schulman et al. 2017 (arXiv:1707.06347).
POLICY_OBJECTIVES = {
    "clip": PolicyObjective(_clipped_loss, _clipped_slope),
    "kl_penalty": PolicyObjective(_penalised_loss, _penalised_slope, penalises_kl=True),
    "adaptive_kl": PolicyObjective(_penalised_loss, _penalised_slope, penalises_kl=True, adapts_kl_coef=True),
    "unclipped": PolicyObjective(_unclipped_loss, _unclipped_slope),
}
VALUE_CLIPS = {
    "sb3": ValueClip(value_losses.value_loss, value_losses.value_loss_slope),
    "openai": ValueClip(value_losses.larger_value_loss, value_losses.larger_value_loss_slope),
}
VALUE_LOSSES = {
    "mse": value_losses.MEAN_SQUARED_ERROR,
    "half_mse": value_losses.HALF_MEAN_SQUARED_ERROR,
    "huber": value_losses.MEAN_HUBER,
}


def scaled_advantages(advantages: Array, by_minibatch: bool, of_rollout: AdvantageStatistics | None) -> Array:
    """The advantages of a minibatch as they enter the objective.

    :param advantages: [B], as estimated
    :param by_minibatch: whiten them by their own mean and deviation
    :param of_rollout: else whiten them by these; None leaves them as they are
    :return: [B]
    """
    if by_minibatch:
        return losses.normalized_advantages(advantages)
    return advantages if of_rollout is None else losses.standardized_advantages(advantages, of_rollout)


class HeadGradients(NamedTuple):
    """∂loss/∂(what the network puts out).

    :param outputs: [B, K], with respect to logits or means
    :param values: [B]
    :param log_std: in its shape, or None
    """

    outputs: Array
    values: Array
    log_std: Array | None


def objective(
    family: ActionFamily,
    head: Head,
    values: Array,
    minibatch: Minibatch,
    settings: UpdateSettings,
) -> tuple[LossTerms, HeadGradients]:
    """Loss terms and gradients, in NumPy or torch, without automatic differentiation.

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 9, minimised and differentiated. With the default settings it
    matches what SB3 2.9 has autograd compute, to rounding.

    :param family: of the actions
    :param head: describes their distribution now
    :param values: [B], V(s) now
    :param minibatch: B transitions, arrays of the same library
    :param settings: of this update
    :return: the terms and the gradients
    """
    n_samples = len(values)
    advantages = scaled_advantages(minibatch.advantages, settings.normalize_advantage, settings.advantage_statistics)
    evaluation = family.evaluate(head, minibatch.actions)
    log_ratio = evaluation.log_prob - minibatch.old_log_prob
    ratio = namespace(log_ratio).exp(log_ratio)

    surrogate, value_clip = POLICY_OBJECTIVES[settings.objective], VALUE_CLIPS[settings.value_clip]
    criterion = VALUE_LOSSES[settings.value_loss]
    of_critic = (values, minibatch.old_values, minibatch.returns, settings.clip_range_vf, criterion)
    policy_loss = surrogate.loss(log_ratio, ratio, advantages, settings)
    value_loss = value_clip.loss(*of_critic)
    entropy = evaluation.entropy
    entropy_loss = -(mean(entropy) if entropy.ndim else entropy)
    terms = LossTerms(
        loss=losses.total_loss(policy_loss, value_loss, entropy_loss, settings.vf_coef, settings.ent_coef),
        policy_loss=policy_loss,
        value_loss=value_loss,
        entropy_loss=entropy_loss,
        approx_kl=diagnostics.approx_kl(log_ratio, ratio),
        clip_fraction=diagnostics.clip_fraction(ratio, settings.clip_range),
        approx_kl_k1=diagnostics.approx_kl_k1(log_ratio),
    )

    log_prob_gradient = surrogate.slope(log_ratio, ratio, advantages, settings) * (-1.0 / n_samples)
    output_gradient, log_std_gradient = family.gradients(evaluation, log_prob_gradient, -settings.ent_coef / n_samples)
    value_gradient = value_clip.slope(*of_critic) * (settings.vf_coef / n_samples)
    return terms, HeadGradients(output_gradient, value_gradient, log_std_gradient)
