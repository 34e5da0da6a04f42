"""The critic's losses: how an error is measured, and what value clipping makes of it, with the slopes by hand.

Owns formulas on [B] arrays of NumPy or torch; must not know the policy's objective, optimizers or rollouts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sb3_ppo_from_scratch.core.arrays import Array, clip, mean, mean_squared_error, namespace


class Criterion(NamedTuple):
    """How far a prediction V is from its target R, as a function ℓ of the error e = V − R.

    :param mean: predictions [B] and targets [B] to the scalar mean ℓ(e)
    :param each: errors [B] to ℓ(e) [B]
    :param slope: errors [B] to ℓ′(e) [B]
    """

    mean: Callable[[Array, Array], Array]
    each: Callable[[Array], Array]
    slope: Callable[[Array], Array]


def huber(errors: Array) -> Array:
    """ℓ(e) = ½e² where |e| ≤ 1, else |e| − ½: a far-off target pulls no harder than one that is off by 1.

    Source: Huber 1964, "Robust Estimation of a Location Parameter", with the threshold 1, as torch's smooth L1.

    :param errors: [B], in units of the return
    :return: [B]
    """
    distances = abs(errors)
    return namespace(errors).where(distances <= 1, 0.5 * errors * errors, distances - 0.5)


# Source: Schulman et al. 2017 (arXiv:1707.06347), the squared error of eq. 9, without a factor ½, as SB3 2.9.
MEAN_SQUARED_ERROR = Criterion(
    mean=lambda values, returns: mean_squared_error(returns, values),
    each=lambda errors: errors * errors,
    slope=lambda errors: 2 * errors,
)
# The ½ of OpenAI's baselines and CleanRL: the same as half the vf_coef.
HALF_MEAN_SQUARED_ERROR = Criterion(
    mean=lambda values, returns: 0.5 * mean_squared_error(returns, values),
    each=lambda errors: 0.5 * errors * errors,
    slope=lambda errors: errors,
)
# TorchRL's default.
MEAN_HUBER = Criterion(
    mean=lambda values, returns: mean(huber(values - returns)),
    each=huber,
    slope=lambda errors: clip(errors, -1.0, 1.0),
)


def value_loss(
    values: Array,
    old_values: Array,
    returns: Array,
    clip_range_vf: float | None,
    criterion: Criterion = MEAN_SQUARED_ERROR,
) -> Array:
    """mean ℓ(V − R), or with clipping mean ℓ(V_old + clip(V − V_old, −ε_v, ε_v) − R).

    Source: Schulman et al. 2017 (arXiv:1707.06347), the critic's loss of eq. 9. Matches SB3 2.9 bit for bit: its
    clipped prediction replaces the prediction, where OpenAI's baselines take the larger loss.

    :param values: [B], V(s) now
    :param old_values: [B], V(s) at collection
    :param returns: [B], R
    :param clip_range_vf: ε_v > 0 in units of the return, or None for no clipping
    :param criterion: ℓ
    :return: scalar
    """
    if clip_range_vf is not None:
        values = _clipped(values, old_values, clip_range_vf)
    return criterion.mean(values, returns)


def value_loss_slope(
    values: Array,
    old_values: Array,
    returns: Array,
    clip_range_vf: float | None,
    criterion: Criterion = MEAN_SQUARED_ERROR,
) -> Array:
    """∂/∂V of each sample's loss: ℓ′(V − R); with clipping 0 once |V − V_old| > ε_v.

    Multiply by 1/B for the gradient of the mean. On the boundary itself the slope is the unclipped one, as automatic
    differentiation of ``value_loss`` has it.

    Source: ``value_loss``, differentiated.

    :param values: [B], V(s) now
    :param old_values: [B], V(s) at collection
    :param returns: [B], R
    :param clip_range_vf: ε_v > 0, or None for no clipping
    :param criterion: ℓ
    :return: [B]
    """
    slope = criterion.slope(values - returns)
    if clip_range_vf is None:
        return slope
    return slope * (abs(values - old_values) <= clip_range_vf)


def larger_value_loss(
    values: Array,
    old_values: Array,
    returns: Array,
    clip_range_vf: float | None,
    criterion: Criterion = MEAN_SQUARED_ERROR,
) -> Array:
    """mean max{ℓ(V − R), ℓ(V_old + clip(V − V_old, −ε_v, ε_v) − R)}, or without clipping mean ℓ(V − R).

    Taking the larger loss keeps a prediction that has moved the wrong way from being left there.

    Source: OpenAI baselines' ppo2; Huang et al. 2022, "The 37 Implementation Details of PPO", detail 9. Has no
    counterpart in SB3.

    :param values: [B], V(s) now
    :param old_values: [B], V(s) at collection
    :param returns: [B], R
    :param clip_range_vf: ε_v > 0 in units of the return, or None for no clipping
    :param criterion: ℓ
    :return: scalar
    """
    if clip_range_vf is None:
        return criterion.mean(values, returns)
    unclipped = criterion.each(values - returns)
    clipped = criterion.each(_clipped(values, old_values, clip_range_vf) - returns)
    # Not maximum(), whose derivative torch shares out between equals.
    return mean(namespace(values).where(clipped > unclipped, clipped, unclipped))


def larger_value_loss_slope(
    values: Array,
    old_values: Array,
    returns: Array,
    clip_range_vf: float | None,
    criterion: Criterion = MEAN_SQUARED_ERROR,
) -> Array:
    """∂/∂V of each sample's larger loss: 0 where |V − V_old| > ε_v and the clipped loss is the larger, else ℓ′(V − R).

    Multiply by 1/B for the gradient of the mean. Where the two losses are equal the slope is the unclipped one, as
    automatic differentiation of ``larger_value_loss`` has it.

    Source: ``larger_value_loss``, differentiated.

    :param values: [B], V(s) now
    :param old_values: [B], V(s) at collection
    :param returns: [B], R
    :param clip_range_vf: ε_v > 0, or None for no clipping
    :param criterion: ℓ
    :return: [B]
    """
    slope = criterion.slope(values - returns)
    if clip_range_vf is None:
        return slope
    clipped = criterion.each(_clipped(values, old_values, clip_range_vf) - returns)
    held = (abs(values - old_values) > clip_range_vf) & (clipped > criterion.each(values - returns))
    return slope * ~held


def _clipped(values: Array, old_values: Array, clip_range_vf: float) -> Array:
    return old_values + clip(values - old_values, -clip_range_vf, clip_range_vf)
