"""Quantities that tell whether an update was healthy; none of them is differentiated.

Owns formulas; must not know when they are logged or what is done about them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sb3_ppo_from_scratch.core.arrays import Array, mean, namespace, share


def approx_kl(log_ratio: Array, ratio: Array | None = None) -> Array:
    """The k3 estimate of KL(π_old ‖ π): mean[(r − 1) − log r], never negative beyond rounding.

    Source: Schulman 2020, "Approximating KL Divergence" (joschu.net/blog/kl-approx.html). Matches ``train/approx_kl``
    of SB3 2.9 bit for bit.

    :param log_ratio: [B], log π(a|s) − log π_old(a|s), actions drawn from π_old
    :param ratio: [B], its exponential, where that is known already
    :return: scalar in nats
    """
    ratio = namespace(log_ratio).exp(log_ratio) if ratio is None else ratio
    return mean((ratio - 1) - log_ratio)


def approx_kl_k1(log_ratio: Array) -> Array:
    """The k1 estimate of KL(π_old ‖ π): mean[−log r], unbiased but able to come out negative.

    Source: Schulman 2020, "Approximating KL Divergence" (joschu.net/blog/kl-approx.html). SB3 does not log it.

    :param log_ratio: [B]
    :return: scalar in nats
    """
    return -mean(log_ratio)


def clip_fraction(ratio: Array, clip_range: float) -> Array:
    """Share of samples whose ratio lies outside [1 − ε, 1 + ε].

    Source: OpenAI baselines' ppo2. Matches ``train/clip_fraction`` of SB3 2.9 bit for bit.

    :param ratio: [B]
    :param clip_range: ε > 0
    :return: scalar in [0, 1]
    """
    return share(abs(ratio - 1) > clip_range)


def explained_variance(predictions: npt.NDArray[np.floating], targets: npt.NDArray[np.floating]) -> float:
    """1 − Var[y − ŷ] / Var[y]: 1 is perfect, 0 no better than a constant, below 0 worse.

    Source: OpenAI baselines. Matches ``train/explained_variance`` of SB3 2.9 bit for bit.

    :param predictions: [N], ŷ, the critic's values
    :param targets: [N], y, the returns
    :return: NaN where the targets do not vary
    :raises ValueError: if the shapes are not one and the same [N]
    """
    if predictions.ndim != 1 or predictions.shape != targets.shape:
        raise ValueError(
            f"predictions {predictions.shape} and targets {targets.shape} must share one shape [N]; flatten both."
        )
    variance = np.var(targets)
    return float("nan") if variance == 0 else float(1 - np.var(targets - predictions) / variance)


class GradientBudget(NamedTuple):
    """What joint gradient clipping leaves of the learning rate.

    :param clip_factor: in (0, 1], by which every gradient is scaled
    :param effective_learning_rate: learning rate × clip_factor
    """

    clip_factor: float
    effective_learning_rate: float


def gradient_budget(grad_norm: float, max_grad_norm: float, learning_rate: float) -> GradientBudget:
    """How far clipping by the joint norm shrinks everyone's step: factor = min(1, max_grad_norm / ‖g‖).

    Source: Pascanu et al. 2013 (arXiv:1211.5063), algorithm 1; ``torch.nn.utils.clip_grad_norm_`` without its 10⁻⁶.

    :param grad_norm: ‖g‖ ≥ 0, joint L2 norm over actor and critic, before clipping
    :param max_grad_norm: bound > 0
    :param learning_rate: > 0
    :return: the clip factor and the learning rate that is left
    """
    factor = 1.0 if grad_norm <= max_grad_norm else max_grad_norm / grad_norm
    return GradientBudget(factor, learning_rate * factor)
