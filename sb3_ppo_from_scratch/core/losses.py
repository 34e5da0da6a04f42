"""The objective of PPO and its relatives, as losses to be minimised, with the slopes worked out by hand.

Owns formulas on [B] arrays of NumPy or torch; must not know policies, optimizers or rollouts.
"""

from __future__ import annotations

import torch as th

from sb3_ppo_from_scratch.core.arrays import Array, clip, mean, mean_squared_error, namespace, unbiased_std


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


def policy_gradient_loss(log_prob: th.Tensor, advantages: th.Tensor) -> th.Tensor:
    """−L^PG = −mean[log π(a|s)·Â], the loss of REINFORCE with a baseline and of A2C.

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 2. Matches the policy loss of SB3's A2C.

    :param log_prob: [B] in nats
    :param advantages: [B]
    :return: scalar
    """
    return -(advantages * log_prob).mean()


def surrogate_loss(ratio: th.Tensor, advantages: th.Tensor) -> th.Tensor:
    """−L^CPI = −mean[r·Â], the importance-sampled objective without any brake.

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 6. Has no counterpart in SB3.

    :param ratio: [B], r = π(a|s) / π_old(a|s)
    :param advantages: [B]
    :return: scalar
    """
    return -(advantages * ratio).mean()


def kl_penalised_surrogate_loss(ratio: th.Tensor, advantages: th.Tensor, kl: th.Tensor, kl_coef: float) -> th.Tensor:
    """−L^KLPEN = −mean[r·Â − β·KL(π_old ‖ π)].

    Source: Schulman et al. 2017 (arXiv:1707.06347), eq. 8. Has no counterpart in SB3.

    :param ratio: [B]
    :param advantages: [B]
    :param kl: [B] or scalar, in nats
    :param kl_coef: β ≥ 0
    :return: scalar
    """
    return surrogate_loss(ratio, advantages) + kl_coef * kl.mean()


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


def value_loss(values: Array, old_values: Array, returns: Array, clip_range_vf: float | None) -> Array:
    """mean[(R − V)²], or with clipping mean[(R − V_old − clip(V − V_old, −ε_v, ε_v))²].

    Source: Schulman et al. 2017 (arXiv:1707.06347), the squared error of eq. 9, without a factor ½. Matches SB3 2.9
    bit for bit: its clipped prediction replaces the prediction, where OpenAI's baselines take the larger loss.

    :param values: [B], V(s) now
    :param old_values: [B], V(s) at collection
    :param returns: [B], R
    :param clip_range_vf: ε_v > 0 in units of the return, or None for no clipping
    :return: scalar
    """
    if clip_range_vf is not None:
        values = old_values + clip(values - old_values, -clip_range_vf, clip_range_vf)
    return mean_squared_error(returns, values)


def value_loss_slope(values: Array, old_values: Array, returns: Array, clip_range_vf: float | None) -> Array:
    """∂/∂V of each sample's squared error: −2(R − V); with clipping 0 once |V − V_old| > ε_v.

    Multiply by 1/B for the gradient of the mean. On the boundary itself the slope is the unclipped one, as automatic
    differentiation of ``value_loss`` has it.

    Source: ``value_loss``, differentiated.

    :param values: [B], V(s) now
    :param old_values: [B], V(s) at collection
    :param returns: [B], R
    :param clip_range_vf: ε_v > 0, or None for no clipping
    :return: [B]
    """
    if clip_range_vf is None:
        return 2 * (values - returns)
    change = values - old_values
    return 2 * (values - returns) * (abs(change) <= clip_range_vf)


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
