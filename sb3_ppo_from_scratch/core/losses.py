"""The objective of PPO and its relatives, as losses to be minimised, with the slopes worked out by hand.

Owns formulas on [B] arrays of NumPy or torch; must not know policies, optimizers or rollouts.
The critic's losses are in ``core.value_losses``.
"""

from __future__ import annotations

import torch as th

from sb3_ppo_from_scratch.core.arrays import Array, clip, mean, namespace, unbiased_std
from sb3_ppo_from_scratch.core.records import AdvantageStatistics


def normalized_advantages(advantages: Array) -> Array:
    """(Â − mean Â) / (std Â + 10⁻⁸), with the unbiased standard deviation of the minibatch.

    Source: Huang et al. 2022, "The 37 Implementation Details of PPO", detail 7. Matches SB3 2.9 bit for bit,
    including its exception: one sample alone has no deviation and is returned unchanged.

    :param advantages: [B]
    :return: [B]
    """
    if len(advantages) < 2:
        return advantages
    centred = advantages - mean(advantages)
    return centred / (unbiased_std(advantages, centred) + 1e-8)


def standardized_advantages(advantages: Array, statistics: AdvantageStatistics) -> Array:
    """(Â − μ) / (σ + 10⁻⁸), with the mean and the deviation of the whole rollout, the same for every minibatch.

    Source: rsl_rl's rollout storage, where they are computed once an update. Has no counterpart in SB3.

    :param advantages: [B]
    :param statistics: μ and σ
    :return: [B]
    """
    return (advantages - statistics.mean) / (statistics.std + 1e-8)


def policy_gradient_loss(log_prob: th.Tensor, advantages: th.Tensor) -> th.Tensor:
    """−L^PG = −mean[log π(a|s)·Â], the loss of REINFORCE with a baseline and of A2C.

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 2. Matches the policy loss of SB3's A2C.

    :param log_prob: [B] in nats
    :param advantages: [B]
    :return: scalar
    """
    return -(advantages * log_prob).mean()


def surrogate_loss(ratio: Array, advantages: Array) -> Array:
    """−L^CPI = −mean[r·Â], the importance-sampled objective without any brake.

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 6. Has no counterpart in SB3.

    :param ratio: [B], r = π(a|s) / π_old(a|s)
    :param advantages: [B]
    :return: scalar
    """
    return -mean(advantages * ratio)


def kl_penalised_surrogate_loss(ratio: Array, advantages: Array, kl: Array, kl_coef: float) -> Array:
    """−L^KLPEN = −mean[r·Â − β·KL(π_old ‖ π)].

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 8. Has no counterpart in SB3.

    :param ratio: [B]
    :param advantages: [B]
    :param kl: scalar, in nats: exact, or the estimate ``diagnostics.approx_kl``
    :param kl_coef: β ≥ 0
    :return: scalar
    """
    return surrogate_loss(ratio, advantages) + kl_coef * kl


def kl_penalised_surrogate_slope(ratio: Array, advantages: Array, kl_coef: float) -> Array:
    """∂L^KLPEN/∂log π of each sample, with the k3 estimate of the divergence: r·Â − β·(r − 1).

    The k3 estimate (r − 1) − log r has the derivative r − 1 with respect to log π: the penalty pulls every ratio
    towards 1, the more the further it is away. With β = 0 it is r·Â, the slope of L^CPI. Multiply by −1/B for the
    gradient of the mean loss.

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 8, and Schulman 2020, "Approximating KL Divergence",
    differentiated.

    :param ratio: [B]
    :param advantages: [B]
    :param kl_coef: β ≥ 0
    :return: [B]
    """
    return ratio * advantages - kl_coef * (ratio - 1)


def clipped_surrogate_loss(ratio: Array, advantages: Array, clip_range: float) -> Array:
    """−L^CLIP = −mean[min(r·Â, clip(r, 1 − ε, 1 + ε)·Â)].

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 7. Matches SB3 2.9 bit for bit.

    :param ratio: [B], r = π(a|s) / π_old(a|s)
    :param advantages: [B]
    :param clip_range: ε > 0
    :return: scalar
    """
    unclipped = advantages * ratio
    clipped = advantages * clip(ratio, 1 - clip_range, 1 + clip_range)
    return -mean(namespace(ratio).minimum(unclipped, clipped))


def clipped_surrogate_slope(ratio: Array, advantages: Array, clip_range: float) -> Array:
    """∂L^CLIP/∂r of each sample: Â where the unclipped term is the smaller, 0 where the clip holds.

    The clip holds only once the ratio has passed the boundary that the advantage pulls it towards: r > 1 + ε with
    Â > 0, or r < 1 − ε with Â < 0. On the boundary itself the two terms are equal and the slope is still Â, the
    choice that automatic differentiation of ``clipped_surrogate_loss`` makes (within one rounding beyond it, autograd
    may see a tie and answer Â/2). Multiply by r for ∂/∂log π, and
    by −1/B for the gradient of the mean loss.

    Source: Schulman et al. 2017 (arXiv:1707.06347), figure 1, differentiated.

    :param ratio: [B]
    :param advantages: [B]
    :param clip_range: ε > 0
    :return: [B]
    """
    held_above = (advantages > 0) & (ratio > 1 + clip_range)
    held_below = (advantages < 0) & (ratio < 1 - clip_range)
    return advantages * ~(held_above | held_below)


def entropy_loss(entropy: th.Tensor | None, log_prob: th.Tensor) -> th.Tensor:
    """−mean H[π(·|s)], or its one-sample estimate mean log π(a|s) where H has no closed form.

    Source: Schulman et al. 2017 (arXiv:1707.06347), the bonus S of eq. 9, negated. Matches SB3 2.9 bit for bit.

    :param entropy: [B] in nats, or None (squashed distributions)
    :param log_prob: [B] in nats
    :return: scalar
    """
    if entropy is None:
        return -th.mean(-log_prob)
    return -th.mean(entropy)


def total_loss(policy_loss: Array, value_loss: Array, entropy_loss: Array, vf_coef: float, ent_coef: float) -> Array:
    """−(L^CLIP − c₁·L^VF + c₂·S), the objective of PPO with the sign turned for gradient descent.

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 9. Matches SB3 2.9 bit for bit.

    :param policy_loss: scalar, −L^CLIP
    :param value_loss: scalar, L^VF
    :param entropy_loss: scalar, −S
    :param vf_coef: c₁
    :param ent_coef: c₂
    :return: scalar
    """
    return policy_loss + ent_coef * entropy_loss + vf_coef * value_loss
