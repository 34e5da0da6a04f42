"""Log-probability, entropy and divergence of the action families, from their parameters alone.

Owns the formulas, left to autograd; must not know networks, action spaces or ``torch.distributions`` objects.
``core.families`` and ``core.gaussians`` write out the gradients of five of them and are tested against this module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch as th
from torch.nn import functional

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
# SB3 keeps the Jacobian of tanh and the standard deviation of gSDE away from zero by this much.
_EPSILON = 1e-6


def categorical_log_prob(logits: th.Tensor, actions: th.Tensor) -> th.Tensor:
    """log π(a) = z_a − log Σ_k exp z_k.

    Source: the softmax distribution. Matches SB3's ``CategoricalDistribution.log_prob`` to rounding.

    :param logits: [B, K], unnormalised log-probabilities z
    :param actions: [B] integer, in [0, K)
    :return: [B] in nats
    """
    return functional.log_softmax(logits, dim=-1).gather(-1, actions.long().unsqueeze(-1)).squeeze(-1)


def categorical_entropy(logits: th.Tensor) -> th.Tensor:
    """H = −Σ_k π_k log π_k.

    Source: Shannon entropy. Matches SB3's ``CategoricalDistribution.entropy`` to rounding.

    :param logits: [B, K]
    :return: [B] in nats, in [0, log K]
    """
    entropy: th.Tensor = th.special.entr(functional.softmax(logits, dim=-1)).sum(dim=-1)
    return entropy


def categorical_kl(logits: th.Tensor, other_logits: th.Tensor) -> th.Tensor:
    """KL(π ‖ π') = Σ_k π_k (log π_k − log π'_k), exact rather than sampled.

    Source: Schulman et al. 2017 (arXiv:1707.06347), the constraint of eq. 4 and the penalty of eq. 5.

    :param logits: [B, K] of π, the policy that collected the data
    :param other_logits: [B, K] of π'
    :return: [B] in nats, ≥ 0
    """
    log_probs = functional.log_softmax(logits, dim=-1)
    probs = log_probs.exp()
    differences = log_probs - functional.log_softmax(other_logits, dim=-1)
    return th.where(probs > 0, probs * differences, 0.0).sum(dim=-1)  # an impossible action costs nothing


def multi_categorical_log_prob(logits: th.Tensor, actions: th.Tensor, nvec: Sequence[int]) -> th.Tensor:
    """log π(a) = Σ_d log π_d(a_d), one independent categorical per dimension.

    Source: independence. Matches SB3's ``MultiCategoricalDistribution.log_prob`` to rounding.

    :param logits: [B, Σ nvec], the dimensions side by side
    :param actions: [B, D] integer, actions[:, d] in [0, nvec[d])
    :param nvec: D numbers of choices
    :return: [B] in nats
    """
    parts = th.split(logits, list(nvec), dim=-1)
    return th.stack([categorical_log_prob(z, actions[..., d]) for d, z in enumerate(parts)], dim=-1).sum(dim=-1)


def multi_categorical_entropy(logits: th.Tensor, nvec: Sequence[int]) -> th.Tensor:
    """H = Σ_d H_d.

    Source: independence. Matches SB3's ``MultiCategoricalDistribution.entropy`` to rounding.

    :param logits: [B, Σ nvec]
    :param nvec: D numbers of choices
    :return: [B] in nats
    """
    return th.stack([categorical_entropy(z) for z in th.split(logits, list(nvec), dim=-1)], dim=-1).sum(dim=-1)


def bernoulli_log_prob(logits: th.Tensor, actions: th.Tensor) -> th.Tensor:
    """log π(a) = Σ_d [a_d log σ(z_d) + (1 − a_d) log σ(−z_d)].

    Source: independent Bernoulli bits. Matches SB3's ``BernoulliDistribution.log_prob`` to rounding.

    :param logits: [B, D]
    :param actions: [B, D] of 0 and 1
    :return: [B] in nats
    """
    bits = actions.to(logits.dtype)
    return -functional.binary_cross_entropy_with_logits(logits, bits, reduction="none").sum(dim=-1)


def bernoulli_entropy(logits: th.Tensor) -> th.Tensor:
    """H = Σ_d [softplus(z_d) − z_d σ(z_d)].

    Source: −σ log σ − (1 − σ) log(1 − σ), simplified. Matches SB3's ``BernoulliDistribution.entropy`` to rounding.

    :param logits: [B, D]
    :return: [B] in nats, in [0, D log 2]
    """
    return (functional.softplus(logits) - logits * th.sigmoid(logits)).sum(dim=-1)


def gaussian_log_prob(mean: th.Tensor, log_std: th.Tensor, actions: th.Tensor) -> th.Tensor:
    """log π(a) = −Σ_d [½((a_d − μ_d)/σ_d)² + log σ_d + ½ log 2π].

    Source: the diagonal normal density. Matches SB3's ``DiagGaussianDistribution.log_prob`` to rounding.

    :param mean: [B, D]
    :param log_std: [D] or [B, D] (state-dependent, as gSDE has it), log σ
    :param actions: [B, D]
    :return: [B] in nats
    """
    standardised = (actions - mean) * th.exp(-log_std)
    return -(0.5 * standardised.square() + log_std + _HALF_LOG_TWO_PI).sum(dim=-1)


def gaussian_entropy(log_std: th.Tensor) -> th.Tensor:
    """H = Σ_d [log σ_d + ½ log 2πe]; it does not depend on the mean.

    Source: differential entropy of the normal. Matches SB3's ``DiagGaussianDistribution.entropy`` to rounding.

    :param log_std: [..., D], log σ
    :return: [...] in nats; may be negative
    """
    return (log_std + 0.5 + _HALF_LOG_TWO_PI).sum(dim=-1)


def squashed_gaussian_log_prob(mean: th.Tensor, log_std: th.Tensor, actions: th.Tensor) -> th.Tensor:
    """log π(a) = log N(atanh a; μ, σ) − Σ_d log(1 − a_d² + 10⁻⁶), for a = tanh(u), u ~ N(μ, σ).

    Source: change of variables, Haarnoja et al. 2018 (arXiv:1801.01290), appendix C. Matches the log-probability of
    SB3's squashed ``StateDependentNoiseDistribution`` to rounding. The entropy has no closed form; SB3 estimates it by
    −log π.

    :param mean: [B, D], before squashing
    :param log_std: [D] or [B, D], before squashing
    :param actions: [B, D] in [−1, 1], moved strictly inside before they are inverted, as SB3 does
    :return: [B] in nats
    """
    inside = 1.0 - th.finfo(actions.dtype).eps
    actions = actions.clamp(-inside, inside)
    pre_squash = th.atanh(actions)
    jacobian = th.log(1.0 - actions.square() + _EPSILON).sum(dim=-1)
    return gaussian_log_prob(mean, log_std, pre_squash) - jacobian


def state_dependent_log_std(latent: th.Tensor, log_std: th.Tensor) -> th.Tensor:
    """log σ_d(s) = ½ log(Σ_j φ_j(s)² σ_jd² + 10⁻⁶), the action noise of gSDE.

    Source: Raffin et al. 2022 (arXiv:2005.05719), section 3, with SB3's ε. Matches the standard deviation inside SB3's
    ``StateDependentNoiseDistribution`` (without ``use_expln``) to rounding.

    :param latent: [B, J], features φ(s)
    :param log_std: [J, D], log σ of the exploration matrix (expand the [J, 1] of ``full_std=False`` first)
    :return: [B, D], log σ of the action
    """
    variance = th.mm(latent.square(), th.exp(2.0 * log_std))
    return 0.5 * th.log(variance + _EPSILON)
