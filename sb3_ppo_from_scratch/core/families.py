"""The families of discrete actions with their gradients written out: log π, entropy, ∂/∂(what the network put out).

Owns what every family offers, and formulas that run on NumPy arrays and torch tensors alike; must not know networks or
how actions are stored. Real-valued actions are in ``core.gaussians``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from sb3_ppo_from_scratch.core.arrays import Array, by_column, largest, namespace, onehot

_TINY = np.finfo(np.float32).tiny


class Head(NamedTuple):
    """What describes the distribution over actions in B states.

    :param outputs: [B, K] of the policy's last layer, logits or means
    :param log_std: of a Gaussian, [D], or [J, D] or [J, 1] if it depends on the state; else None
    :param latent: [B, J], the features that the noise of a state-dependent Gaussian is made of, else None
    :param exploration: [B, J, D], the noise matrices that ``sample`` applies to them, else None
    """

    outputs: Array
    log_std: Array | None = None
    latent: Array | None = None
    exploration: Array | None = None


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
    """A kind of distribution over actions."""

    def evaluate(self, head: Head, actions: Array) -> Evaluation:
        """Log-probability and entropy of actions.

        :param head: describes the distribution
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
        :return: ∂loss/∂outputs [B, K], and ∂loss/∂log_std, in its shape, or None
        """
        ...

    def sample(self, head: Head, generator: np.random.Generator) -> Array:
        """Draw one action per row.

        :param head: describes the distribution, in NumPy arrays
        :param generator: NumPy's
        :return: [B, D]
        """
        ...


class Categorical:
    """One choice among K. ∂log π(a)/∂z_k = 1[k = a] − π_k ;  ∂H/∂z_k = −π_k (log π_k + H).

    Source: the softmax distribution, differentiated. Matches SB3's ``CategoricalDistribution`` to rounding.
    """

    def evaluate(self, head: Head, actions: Array) -> Evaluation:
        """See ``ActionFamily``; ``actions`` is [B, 1]."""
        xp = namespace(head.outputs)
        logits = by_column(head.outputs)
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

    def sample(self, head: Head, generator: np.random.Generator) -> Array:
        """See ``ActionFamily``: the largest of z_k + Gumbel noise, which is distributed as the softmax of z."""
        noise = generator.standard_exponential(head.outputs.shape, dtype=np.float32)
        return (head.outputs - np.log(np.maximum(noise, _TINY))).argmax(axis=-1)[:, None]


class MultiCategorical:
    """D independent categoricals side by side; log-probabilities and entropies add up.

    Source: independence. Matches SB3's ``MultiCategoricalDistribution`` to rounding.

    :param nvec: number of choices of each
    """

    def __init__(self, nvec: Sequence[int]) -> None:
        stops = [sum(nvec[: d + 1]) for d in range(len(nvec))]
        self._slices = [slice(stop - n, stop) for stop, n in zip(stops, nvec, strict=True)]
        self._categorical = Categorical()

    def evaluate(self, head: Head, actions: Array) -> Evaluation:
        """See ``ActionFamily``; ``actions`` is [B, D]."""
        parts = [
            self._categorical.evaluate(Head(head.outputs[:, part]), actions[:, d : d + 1])
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

    def sample(self, head: Head, generator: np.random.Generator) -> Array:
        """See ``ActionFamily``."""
        return np.concatenate(
            [self._categorical.sample(Head(head.outputs[:, part]), generator) for part in self._slices], axis=-1
        )


class Bernoulli:
    """D independent bits. ∂log π(a)/∂z = a − σ(z) ;  ∂H/∂z = −z σ(z) σ(−z).

    Source: the logistic distribution of a bit, differentiated. Matches SB3's ``BernoulliDistribution`` to rounding.
    """

    def evaluate(self, head: Head, actions: Array) -> Evaluation:
        """See ``ActionFamily``; ``actions`` is [B, D] of 0 and 1."""
        outputs = head.outputs
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

    def sample(self, head: Head, generator: np.random.Generator) -> Array:
        """See ``ActionFamily``."""
        probs = 0.5 * (1 + np.tanh(0.5 * head.outputs))  # σ(z), which does not overflow
        return (generator.random(probs.shape, dtype=np.float32) < probs).astype(np.float32)
