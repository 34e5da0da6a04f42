"""The action families with their gradients written out: log π, entropy, and ∂/∂(what the network put out).

Owns formulas that run on NumPy arrays and torch tensors alike; must not know networks or how actions are stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from sb3_ppo_from_scratch.core.arrays import Array, by_column, largest, namespace, onehot

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_TINY = np.finfo(np.float32).tiny


class Evaluation(NamedTuple):
    """What a family says of actions under one set of parameters.

    :param log_prob: [B], log π(a) in nats
    :param entropy: [B], or a scalar where it is the same for every sample
    :param memory: what ``gradients`` needs, private to the family
    """

    log_prob: Array
    entropy: Array
    memory: tuple[Array, ...]


class ActionFamily(Protocol):
    """A kind of distribution over actions, described by the [B, K] output of the policy's last layer."""

    def evaluate(self, outputs: Array, log_std: Array | None, actions: Array) -> Evaluation:
        """Log-probability and entropy of actions.

        :param outputs: [B, K], logits or means
        :param log_std: [D] of a Gaussian, else None
        :param actions: [B, D]
        :return: see ``Evaluation``
        """
        ...

    def gradients(
        self, evaluation: Evaluation, log_prob_gradient: Array, entropy_gradient: float
    ) -> tuple[Array, Array | None]:
        """The chain rule from log π and H to what the network put out.

        :param evaluation: from ``evaluate``
        :param log_prob_gradient: [B], ∂loss/∂log π(a) of each sample
        :param entropy_gradient: ∂loss/∂H of each sample, the same for all
        :return: ∂loss/∂outputs [B, K], and ∂loss/∂log_std [D] or None
        """
        ...

    def sample(self, outputs: Array, log_std: Array | None, generator: np.random.Generator) -> Array:
        """Draw one action per row.

        :param outputs: [B, K] NumPy array
        :param log_std: [D] of a Gaussian, else None
        :param generator: NumPy's; the arrays are NumPy's too
        :return: [B, D]
        """
        ...


class Categorical:
    """One choice among K. ∂log π(a)/∂z_k = 1[k = a] − π_k ;  ∂H/∂z_k = −π_k (log π_k + H).

    Source: the softmax distribution, differentiated. Matches SB3's ``CategoricalDistribution`` to rounding.
    """

    def evaluate(self, outputs: Array, log_std: Array | None, actions: Array) -> Evaluation:
        """See ``ActionFamily``; ``actions`` is [B, 1], ``log_std`` None."""
        xp = namespace(outputs)
        logits = by_column(outputs)
        shifted = logits - largest(logits)
        exponentials = xp.exp(shifted)
        total = exponentials.sum(0)
        probs = exponentials / total
        log_probs = shifted - xp.log(total)
        chosen = onehot(actions[:, 0], logits)
        entropy = -(probs * log_probs).sum(0)
        return Evaluation((log_probs * chosen).sum(0), entropy, (probs, log_probs, chosen))

    def gradients(
        self, evaluation: Evaluation, log_prob_gradient: Array, entropy_gradient: float
    ) -> tuple[Array, Array | None]:
        """See ``ActionFamily``."""
        probs, log_probs, chosen = evaluation.memory
        gradient = (chosen - probs) * log_prob_gradient
        if entropy_gradient != 0.0:
            gradient -= entropy_gradient * probs * (log_probs + evaluation.entropy)
        return gradient.T, None

    def sample(self, outputs: Array, log_std: Array | None, generator: np.random.Generator) -> Array:
        """See ``ActionFamily``: the largest of z_k + Gumbel noise, which is distributed as the softmax of z."""
        noise = generator.standard_exponential(outputs.shape, dtype=np.float32)
        return (outputs - np.log(np.maximum(noise, _TINY))).argmax(axis=-1)[:, None]


class MultiCategorical:
    """D independent categoricals side by side; log-probabilities and entropies add up.

    Source: independence. Matches SB3's ``MultiCategoricalDistribution`` to rounding.

    :param nvec: number of choices of each
    """

    def __init__(self, nvec: Sequence[int]) -> None:
        stops = [sum(nvec[: d + 1]) for d in range(len(nvec))]
        self._slices = [slice(stop - n, stop) for stop, n in zip(stops, nvec, strict=True)]
        self._categorical = Categorical()

    def evaluate(self, outputs: Array, log_std: Array | None, actions: Array) -> Evaluation:
        """See ``ActionFamily``; ``actions`` is [B, D], ``log_std`` None."""
        parts = [
            self._categorical.evaluate(outputs[:, part], None, actions[:, d : d + 1])
            for d, part in enumerate(self._slices)
        ]
        log_prob: Array = sum(part.log_prob for part in parts)
        entropy: Array = sum(part.entropy for part in parts)
        return Evaluation(log_prob, entropy, tuple(parts))

    def gradients(
        self, evaluation: Evaluation, log_prob_gradient: Array, entropy_gradient: float
    ) -> tuple[Array, Array | None]:
        """See ``ActionFamily``."""
        xp = namespace(log_prob_gradient)
        parts = [
            self._categorical.gradients(part, log_prob_gradient, entropy_gradient)[0] for part in evaluation.memory
        ]
        return xp.concatenate(parts, axis=-1), None

    def sample(self, outputs: Array, log_std: Array | None, generator: np.random.Generator) -> Array:
        """See ``ActionFamily``."""
        return np.concatenate(
            [self._categorical.sample(outputs[:, part], None, generator) for part in self._slices], axis=-1
        )


class Bernoulli:
    """D independent bits. ∂log π(a)/∂z = a − σ(z) ;  ∂H/∂z = −z σ(z) σ(−z).

    Source: the logistic distribution of a bit, differentiated. Matches SB3's ``BernoulliDistribution`` to rounding.
    """

    def evaluate(self, outputs: Array, log_std: Array | None, actions: Array) -> Evaluation:
        """See ``ActionFamily``; ``actions`` is [B, D] of 0 and 1, ``log_std`` None."""
        xp = namespace(outputs)
        # softplus(z) = max(z, 0) + log(1 + exp(−|z|)) does not overflow.
        softplus = xp.clip(outputs, 0, None) + xp.log1p(xp.exp(-xp.abs(outputs)))
        probs = xp.exp(outputs - softplus)
        log_prob = (actions * outputs - softplus).sum(axis=-1)
        entropy = (softplus - outputs * probs).sum(axis=-1)
        return Evaluation(log_prob, entropy, (probs, outputs, actions))

    def gradients(
        self, evaluation: Evaluation, log_prob_gradient: Array, entropy_gradient: float
    ) -> tuple[Array, Array | None]:
        """See ``ActionFamily``."""
        probs, outputs, actions = evaluation.memory
        gradient = (actions - probs) * log_prob_gradient[:, None]
        if entropy_gradient != 0.0:
            gradient -= entropy_gradient * outputs * probs * (1 - probs)
        return gradient, None

    def sample(self, outputs: Array, log_std: Array | None, generator: np.random.Generator) -> Array:
        """See ``ActionFamily``."""
        probs = 0.5 * (1 + np.tanh(0.5 * outputs))  # σ(z), which does not overflow
        return (generator.random(outputs.shape, dtype=np.float32) < probs).astype(np.float32)


class DiagonalGaussian:
    """D independent normals with one log σ for all states.

    With u = (a − μ)/σ: ∂log π/∂μ = u/σ ;  ∂log π/∂log σ = u² − 1 ;  ∂H/∂log σ = 1.
    Source: the normal density, differentiated. Matches SB3's ``DiagGaussianDistribution`` to rounding.
    """

    def evaluate(self, outputs: Array, log_std: Array | None, actions: Array) -> Evaluation:
        """See ``ActionFamily``; ``actions`` is [B, D], ``log_std`` [D]."""
        assert log_std is not None
        xp = namespace(outputs)
        inverse_std = xp.exp(-log_std)
        standardised = (actions - outputs) * inverse_std
        total_log_std = log_std.sum()
        dimensions = outputs.shape[-1]
        squares = standardised * standardised
        log_prob = -0.5 * squares.sum(axis=-1) - (total_log_std + dimensions * _HALF_LOG_TWO_PI)
        entropy = total_log_std + dimensions * (0.5 + _HALF_LOG_TWO_PI)
        return Evaluation(log_prob, entropy, (standardised, squares, inverse_std))

    def gradients(
        self, evaluation: Evaluation, log_prob_gradient: Array, entropy_gradient: float
    ) -> tuple[Array, Array | None]:
        """See ``ActionFamily``."""
        standardised, squares, inverse_std = evaluation.memory
        mean_gradient = standardised * log_prob_gradient[:, None] * inverse_std
        log_std_gradient = log_prob_gradient @ (squares - 1) + entropy_gradient * len(log_prob_gradient)
        return mean_gradient, log_std_gradient

    def sample(self, outputs: Array, log_std: Array | None, generator: np.random.Generator) -> Array:
        """See ``ActionFamily``."""
        assert log_std is not None
        return outputs + np.exp(log_std) * generator.standard_normal(outputs.shape, dtype=np.float32)
