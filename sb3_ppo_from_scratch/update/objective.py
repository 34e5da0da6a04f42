"""PPO's objective of one minibatch with its gradient at the heads of the network, written out.

Owns the composition of ``core.losses`` and ``core.families``; must not know networks or optimizers.
"""

from __future__ import annotations

from typing import NamedTuple

from sb3_ppo_from_scratch.core import diagnostics, losses
from sb3_ppo_from_scratch.core.arrays import Array, mean, namespace
from sb3_ppo_from_scratch.core.families import ActionFamily
from sb3_ppo_from_scratch.core.records import LossTerms, Minibatch, UpdateSettings


class HeadGradients(NamedTuple):
    """∂loss/∂(what the network puts out).

    :param outputs: [B, K], with respect to logits or means
    :param values: [B]
    :param log_std: [D], or None
    """

    outputs: Array
    values: Array
    log_std: Array | None


def objective(
    family: ActionFamily,
    outputs: Array,
    log_std: Array | None,
    values: Array,
    minibatch: Minibatch,
    settings: UpdateSettings,
) -> tuple[LossTerms, HeadGradients]:
    """Loss terms and gradients, in NumPy or torch, without automatic differentiation.

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 9, minimised and differentiated. Matches what SB3 2.9 has
    autograd compute, to rounding.

    :param family: of the actions
    :param outputs: [B, K], logits or means
    :param log_std: [D], or None
    :param values: [B], V(s) now
    :param minibatch: B transitions, arrays of the same library
    :param settings: of this update
    :return: the terms and the gradients
    """
    n_samples = len(values)
    advantages = minibatch.advantages
    if settings.normalize_advantage:
        advantages = losses.normalized_advantages(advantages)
    evaluation = family.evaluate(outputs, log_std, minibatch.actions)
    log_ratio = evaluation.log_prob - minibatch.old_log_prob
    ratio = namespace(log_ratio).exp(log_ratio)

    policy_loss = losses.clipped_surrogate_loss(ratio, advantages, settings.clip_range)
    value_loss = losses.value_loss(values, minibatch.old_values, minibatch.returns, settings.clip_range_vf)
    entropy = evaluation.entropy
    entropy_loss = -(mean(entropy) if entropy.ndim else entropy)
    terms = LossTerms(
        loss=losses.total_loss(policy_loss, value_loss, entropy_loss, settings.vf_coef, settings.ent_coef),
        policy_loss=policy_loss,
        value_loss=value_loss,
        entropy_loss=entropy_loss,
        approx_kl=diagnostics.approx_kl(log_ratio),
        clip_fraction=diagnostics.clip_fraction(ratio, settings.clip_range),
    )

    slope = losses.clipped_surrogate_slope(ratio, advantages, settings.clip_range)
    log_prob_gradient = slope * ratio * (-1.0 / n_samples)
    output_gradient, log_std_gradient = family.gradients(evaluation, log_prob_gradient, -settings.ent_coef / n_samples)
    value_slope = losses.value_loss_slope(values, minibatch.old_values, minibatch.returns, settings.clip_range_vf)
    return terms, HeadGradients(output_gradient, value_slope * (settings.vf_coef / n_samples), log_std_gradient)
