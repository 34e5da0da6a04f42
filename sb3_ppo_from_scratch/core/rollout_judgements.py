"""From what a rollout looks like to findings: are rewards, returns and the critic healthy?

Owns the reasoning and the words of the remedies; must not know models, environments, or how findings are shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from sb3_ppo_from_scratch.core.health import (
    Finding,
    RolloutStatistics,
    Thresholds,
)
from sb3_ppo_from_scratch.core.judgements import NORMALISE, Verdicts


def rollout_verdicts(statistics: RolloutStatistics, limits: Thresholds) -> Verdicts:
    """Numbers that are none, and the scale of the returns.

    :param statistics: of one rollout
    :param limits: of health
    :return: for not_finite and reward_scale
    """
    verdicts: Verdicts = {"not_finite": None, "reward_scale": None}
    if not statistics.is_finite:
        verdicts["not_finite"] = Finding(
            "not_finite",
            "Advantages or returns contain NaN or infinity.",
            "Look for it in the environment's rewards and observations first (VecCheckNan says where), then lower "
            "learning_rate or max_grad_norm.",
        )
        return verdicts
    scale = statistics.return_rms
    if scale > limits.max_return_scale or 0 < statistics.return_std < 1e-4:
        verdicts["reward_scale"] = Finding(
            "reward_scale",
            f"The returns have a root mean square of {scale:.3g} and a deviation of {statistics.return_std:.3g}, far "
            "from the order 1 that initial weights, max_grad_norm and clip_range_vf are made for.",
            NORMALISE,
        )
    return verdicts


def critic_verdicts(rollouts: Sequence[RolloutStatistics], limits: Thresholds) -> Verdicts:
    """Whether the critic is of use by now.

    The variances of several rollouts are pooled: within a single one returns may hardly vary, and then nothing is
    left to explain. Nor is it a fault to miss a tenth of what the returns are worth.

    :param rollouts: late in training
    :param limits: of health
    :return: for explained_variance
    """
    variance = sum(rollout.return_std**2 for rollout in rollouts)
    scale = sum(rollout.return_rms**2 for rollout in rollouts)
    if all(rollout.reward_rms == 0 for rollout in rollouts):
        return {"explained_variance": None}  # there is nothing to explain but the critic's own first guesses
    # A rollout whose returns do not vary explains nothing and leaves nothing to explain.
    varying = (rollout for rollout in rollouts if rollout.return_std > 0)
    unexplained = sum(rollout.return_std**2 * (1 - rollout.explained_variance) for rollout in varying)
    if not (unexplained > (1 - limits.min_explained_variance) * variance and unexplained > 0.01 * scale):
        return {"explained_variance": None}
    return {
        "explained_variance": Finding(
            "explained_variance",
            f"Over {len(rollouts)} rollouts the critic explains {1 - unexplained / variance:.2f} of the returns' "
            f"variance, below {limits.min_explained_variance:g} late in training: the advantages are mostly noise.",
            "Give the critic more (vf_coef, n_epochs, a larger or separate network), raise gae_lambda, check that "
            "observations tell what the return depends on, and normalise the rewards (VecNormalize).",
        )
    }


def drift_verdicts(
    statistics: RolloutStatistics, first_rollouts: Sequence[RolloutStatistics], limits: Thresholds
) -> Verdicts:
    """Growth of rewards or returns. What stays below 10 is left alone: a first reward ever is no drift.

    :param statistics: of one rollout
    :param first_rollouts: what it is compared with, at least one
    :param limits: of health
    :return: for scale_drift
    """
    n_rollouts = len(first_rollouts)
    for name, first, now in (
        ("rewards", sum(rollout.reward_rms for rollout in first_rollouts) / n_rollouts, statistics.reward_rms),
        ("returns", sum(rollout.return_rms for rollout in first_rollouts) / n_rollouts, statistics.return_rms),
    ):
        if now > 10 and now > limits.max_drift * first:
            observation = (
                f"The root mean square of the {name} grew from {first:.3g} to {now:.3g}: the critic's target runs away."
            )
            return {"scale_drift": Finding("scale_drift", observation, NORMALISE)}
    return {"scale_drift": None}
