"""Coefficients that follow the divergence of an update from its target: the KL penalty's weight, the learning rate.

Owns the rules, as functions of numbers; must not know when an update happens or where a coefficient is kept.
"""

from __future__ import annotations

# Within which β stays, so that a long stretch on one side of the target can be made up for.
KL_COEF_BOUNDS = (1e-8, 1e8)
# Within which a learning rate is moved, as in rsl_rl.
LEARNING_RATE_BOUNDS = (1e-5, 1e-2)


def adapted_kl_coef(kl_coef: float, kl: float, kl_target: float) -> float:
    """β of the next update: β/2 if d < d_targ / 1.5, 2β if d > 1.5·d_targ, else β.

    Source: Schulman et al. 2017 (arXiv:1707.06347), section 4. The bounds are ours, in the manner of TF-Agents.

    :param kl_coef: β > 0 of the update
    :param kl: d, the divergence that it ended with, in nats
    :param kl_target: d_targ > 0, in nats
    :return: β within ``KL_COEF_BOUNDS``; unchanged where d is NaN
    """
    lowest, highest = KL_COEF_BOUNDS
    if kl < kl_target / 1.5:
        return max(kl_coef / 2, lowest)
    if kl > 1.5 * kl_target:
        return min(kl_coef * 2, highest)
    return kl_coef


def scaled_learning_rate(learning_rate: float, factor: float) -> float:
    """What a factor makes of a learning rate: within ``LEARNING_RATE_BOUNDS``, or where the rate itself lies outside.

    :param learning_rate: ≥ 0, as the user chose it
    :param factor: > 0, that the rule below has come to
    :return: the rate
    """
    lowest, highest = LEARNING_RATE_BOUNDS
    return max(min(learning_rate * factor, max(learning_rate, highest)), min(learning_rate, lowest))


def adapted_learning_rate(learning_rate: float, kl: float, desired_kl: float) -> float:
    """The rate of the next update: rate/1.5 if d > 2·d_des, rate·1.5 if 0 < d < d_des / 2, else the same.

    A rate that was chosen outside the bounds is never moved further out, nor pushed against the rule.

    Source: rsl_rl's ``schedule="adaptive"`` (Rudin et al. 2022, arXiv:2109.11978), which applies it before every
    minibatch to the exact divergence; here it is applied once an update.

    :param learning_rate: ≥ 0, of the update
    :param kl: d, the divergence that it ended with, in nats; 0 says nothing, since nothing was measured after a step
    :param desired_kl: d_des > 0, in nats
    :return: the rate, moved within ``LEARNING_RATE_BOUNDS``; unchanged where d is NaN
    """
    lowest, highest = LEARNING_RATE_BOUNDS
    if kl > 2 * desired_kl:
        return min(learning_rate, max(learning_rate / 1.5, lowest))
    if 0 < kl < desired_kl / 2:
        return max(learning_rate, min(learning_rate * 1.5, highest))
    return learning_rate
