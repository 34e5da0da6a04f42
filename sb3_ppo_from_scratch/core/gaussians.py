"""The families of real-valued actions with their gradients written out, as those of ``core.families``.

Owns formulas that run on NumPy arrays and torch tensors alike; must not know networks or how actions are stored.
"""

from __future__ import annotations

import math

import numpy as np

from sb3_ppo_from_scratch.core.arrays import Array, namespace
from sb3_ppo_from_scratch.core.families import Evaluation, Head

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class DiagonalGaussian:
    """D independent normals with one log σ for all states.

    With u = (a − μ)/σ: ∂log π/∂μ = u/σ ;  ∂log π/∂log σ = u² − 1 ;  ∂H/∂log σ = 1.
    Source: the normal density, differentiated. Matches SB3's ``DiagGaussianDistribution`` to rounding.
    """

    def evaluate(self, head: Head, actions: Array) -> Evaluation:
        """See ``ActionFamily``; ``actions`` is [B, D], ``log_std`` [D]."""
        outputs, log_std = head.outputs, head.log_std
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

    def sample(self, head: Head, generator: np.random.Generator) -> Array:
        """See ``ActionFamily``."""
        assert head.log_std is not None
        return head.outputs + np.exp(head.log_std) * generator.standard_normal(head.outputs.shape, dtype=np.float32)


class StateDependentGaussian:
    """Generalized state-dependent exploration: the noise of an action is a random matrix times the features φ.

    Over the matrix, whose entries have the deviations s_jd, an action is normal with σ_d² = Σ_j φ_j² s_jd² + ε. With
    u = (a − μ)/σ: ∂log π/∂μ = u/σ ;  ∂log π/∂log s_jd = s_jd² φ_j² (u_d² − 1)/σ_d² ;  ∂H/∂log s_jd = s_jd² φ_j²/σ_d².
    No gradient goes into φ, as in SB3. Where all dimensions share a deviation, s_j, the derivatives are sums over d.

    Source: Raffin et al. 2022 (arXiv:2005.05719), section 3, differentiated. Matches SB3's
    ``StateDependentNoiseDistribution`` to rounding.

    :param epsilon: ε > 0
    """

    def __init__(self, epsilon: float) -> None:
        self._epsilon = epsilon

    def evaluate(self, head: Head, actions: Array) -> Evaluation:
        """See ``ActionFamily``; ``actions`` is [B, D]."""
        assert head.log_std is not None
        assert head.latent is not None
        xp = namespace(head.outputs)
        matrix_variances = xp.exp(2 * head.log_std)
        latent_squares = head.latent * head.latent
        variances = xp.broadcast_to(latent_squares @ matrix_variances + self._epsilon, head.outputs.shape)
        differences = actions - head.outputs
        squares = differences * differences / variances
        log_variance = xp.log(variances).sum(axis=-1)
        constant = head.outputs.shape[-1] * _HALF_LOG_TWO_PI
        log_prob = -0.5 * (squares.sum(axis=-1) + log_variance) - constant
        entropy = 0.5 * (log_variance + head.outputs.shape[-1]) + constant
        return Evaluation(log_prob, entropy, (differences, squares, variances, latent_squares, matrix_variances))

    def gradients(
        self, evaluation: Evaluation, log_prob_gradient: Array, entropy_gradient: float
    ) -> tuple[Array, Array | None]:
        """See ``ActionFamily``."""
        differences, squares, variances, latent_squares, matrix_variances = evaluation.memory
        by_log_prob = log_prob_gradient[:, None] / variances
        slopes = (squares - 1) * by_log_prob
        if entropy_gradient != 0.0:
            slopes += entropy_gradient / variances
        if matrix_variances.shape[-1] == 1:
            slopes = slopes.sum(axis=-1)[:, None]
        return differences * by_log_prob, matrix_variances * (latent_squares.T @ slopes)

    def sample(self, head: Head, generator: np.random.Generator) -> Array:
        """See ``ActionFamily``; all chance is in the matrices."""
        assert head.latent is not None
        assert head.exploration is not None
        return head.outputs + (head.latent[:, None] @ head.exploration)[:, 0]
