"""From numbers to findings: is this rollout, this gradient, this update healthy?

Owns the reasoning and the words of the remedies; must not know models, environments, or how findings are shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from sb3_ppo_from_scratch.core.health import (
    Finding,
    FirstMinibatch,
    GradientNorms,
    RolloutStatistics,
    Thresholds,
    UpdateOutcome,
)

# In the order of causation: what stands first explains what follows.
CAUSES = (
    "not_finite",
    "log_probabilities",
    "frame_skip",
    "normalization_gamma",
    "entropy_collapse",
    "dead_policy",
    "reward_scale",
    "scale_drift",
    "joint_clipping",
    "shared_trunk",
    "discount_horizon",
    "kl",
    "clip_fraction_high",
    "clip_fraction_low",
    "explained_variance",
)
# What one measurement proves; everything else is noisy and has to persist.
CERTAIN = frozenset({"not_finite", "log_probabilities", "frame_skip", "normalization_gamma"})

# One entry per cause that was looked for: the finding, or None where all is well.
Verdicts: TypeAlias = dict[str, Finding | None]

_NORMALISE = "Normalise the rewards (VecNormalize, with the algorithm's gamma) or scale them to order 1."


def entropy_share(entropy: float, max_entropy: float, n_continuous: int) -> float:
    """How much of its room a policy explores: 1 is all of it, 0 nothing.

    H / H_max for choices. For D continuous actions exp((H − H_max) / D), the width of the distribution relative to the
    bounds, since a differential entropy has no zero to compare with; it exceeds 1 for distributions wider than those.

    :param entropy: H in nats
    :param max_entropy: H_max in nats, of the uniform distribution
    :param n_continuous: D, 0 for choices
    :return: NaN where there is nothing to choose
    """
    if n_continuous:
        return math.exp(min((entropy - max_entropy) / n_continuous, 700.0))
    return entropy / max_entropy if max_entropy > 0 else math.nan


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
            _NORMALISE,
        )
    return verdicts


def critic_verdicts(rollouts: Sequence[RolloutStatistics], progress_remaining: float, limits: Thresholds) -> Verdicts:
    """Whether the critic is of use, late in training.

    The variances of several rollouts are pooled: within a single one returns may hardly vary, and then nothing is
    left to explain. Nor is it a fault to miss a tenth of what the returns are worth.

    :param rollouts: the latest
    :param progress_remaining: in [0, 1], 1 at the start of training
    :param limits: of health
    :return: for explained_variance, once it is late
    """
    if progress_remaining >= limits.late:
        return {}
    variance = sum(rollout.return_std**2 for rollout in rollouts)
    scale = sum(rollout.return_rms**2 for rollout in rollouts)
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
            return {"scale_drift": Finding("scale_drift", observation, _NORMALISE)}
    return {"scale_drift": None}


def minibatch_verdicts(minibatch: FirstMinibatch, ratio_tolerance: float, limits: Thresholds) -> Verdicts:
    """Whether the stored log-probabilities are the policy's, and whether it still explores.

    :param minibatch: before any step
    :param ratio_tolerance: largest deviation from 1 that rounding explains
    :param limits: of health
    :return: for log_probabilities and entropy_collapse
    """
    verdicts: Verdicts = {"log_probabilities": None, "entropy_collapse": None}
    if not minibatch.ratio_deviation <= ratio_tolerance:
        verdicts["log_probabilities"] = Finding(
            "log_probabilities",
            f"Before the first step a ratio deviates from 1 by {minibatch.ratio_deviation:.3g} (mean "
            f"{minibatch.ratio_mean:.4g}): the stored log-probabilities are stale or belong to other actions, "
            "observations or weights.",
            "Look for dropout or batch normalisation in the policy, actions that are changed before they are stored, "
            "an overridden forward or evaluate_actions, and arrays that the environment reuses.",
        )
    if minibatch.entropy_share < limits.min_entropy:
        verdicts["entropy_collapse"] = Finding(
            "entropy_collapse",
            f"The policy uses {minibatch.entropy_share:.2%} of its room (entropy {minibatch.entropy:.3g} of at most "
            f"{minibatch.max_entropy:.3g} nats): it hardly explores any more.",
            "Raise ent_coef, lower learning_rate or n_epochs, or restart from an earlier checkpoint: actions that are "
            "never taken cannot be learnt about.",
        )
    return verdicts


def gradient_verdicts(gradients: GradientNorms, advantage_std: float, limits: Thresholds) -> Verdicts:
    """Who gets how much of the step.

    :param gradients: of one minibatch
    :param advantage_std: of the rollout: without any, no actor has a gradient
    :param limits: of health
    :return: for not_finite, dead_policy, joint_clipping, and shared_trunk where there is one
    """
    actor, critic = gradients.actor, gradients.critic
    verdicts: Verdicts = {"not_finite": None, "dead_policy": None, "joint_clipping": None}
    if not math.isfinite(gradients.joint):
        verdicts["not_finite"] = Finding(
            "not_finite",
            f"The gradient is not finite (actor {actor:.3g}, critic {critic:.3g}).",
            "Lower learning_rate or max_grad_norm, and normalise observations and rewards (VecNormalize).",
        )
        return verdicts
    if actor < 1e-8 and advantage_std > 0:
        verdicts["dead_policy"] = Finding(
            "dead_policy",
            f"The actor's gradient is {actor:.1e} although advantages vary: nothing can change the policy.",
            "Look for saturated or dead units (smaller initial weights, a lower learning_rate, normalised "
            "observations) and for frozen parameters.",
        )
    if gradients.clip_factor < limits.min_clip_factor and critic > 10 * actor:
        verdicts["joint_clipping"] = Finding(
            "joint_clipping",
            f"Joint clipping leaves {gradients.clip_factor:.2g} of each step because of the critic (gradient norms: "
            f"actor {actor:.2g}, critic {critic:.3g}); the actor's learning rate is in effect "
            f"{gradients.effective_learning_rate:.1e}, until the optimizer's own scaling makes up for it.",
            f"{_NORMALISE} Or lower vf_coef, or raise max_grad_norm.",
        )
    if gradients.shared_critic > 0:
        verdicts["shared_trunk"] = None
        if gradients.shared_critic > limits.max_trunk_dominance * gradients.shared_actor:
            verdicts["shared_trunk"] = Finding(
                "shared_trunk",
                f"On the layers that actor and critic share, the value loss pulls with {gradients.shared_critic:.3g} "
                f"and the policy with {gradients.shared_actor:.2g}: the features serve the critic alone.",
                f"Lower vf_coef or use separate networks (share_features_extractor=False). {_NORMALISE}",
            )
    return verdicts


def update_verdicts(
    outcome: UpdateOutcome, target_kl: float | None, judges_clipping: bool, is_annealed: bool, limits: Thresholds
) -> Verdicts:
    """Whether an update went too far, or nowhere.

    :param outcome: of one update
    :param target_kl: of the algorithm, in nats; None without
    :param judges_clipping: False where clipping means nothing: another objective, or a single step
    :param is_annealed: whether the learning rate has almost come to its end, where updates are meant to be small
    :param limits: of health
    :return: for kl and, as far as they are judged, clip_fraction_high and clip_fraction_low
    """
    verdicts: Verdicts = {"kl": None}
    max_kl = limits.max_kl if target_kl is None else 2 * target_kl
    if outcome.approx_kl > max_kl or outcome.approx_kl_k1 > max_kl:
        verdicts["kl"] = Finding(
            "kl",
            f"An update moved the policy by {outcome.approx_kl:.3g} nats (k3; k1 says {outcome.approx_kl_k1:.3g}), "
            f"beyond {max_kl:.3g}: the rollout no longer describes it.",
            "Lower learning_rate, n_epochs or clip_range, or set target_kl to stop such updates early.",
        )
    if not judges_clipping:
        return verdicts
    verdicts["clip_fraction_high"] = None
    if outcome.clip_fraction > limits.max_clip_fraction:
        verdicts["clip_fraction_high"] = Finding(
            "clip_fraction_high",
            f"{outcome.clip_fraction:.0%} of the ratios lie beyond the clip range, more than "
            f"{limits.max_clip_fraction:.0%}: most of the later steps push against the clip.",
            "Lower learning_rate or n_epochs, or use larger minibatches.",
        )
    if not is_annealed:
        verdicts["clip_fraction_low"] = None
        if outcome.clip_fraction < limits.min_clip_fraction:
            verdicts["clip_fraction_low"] = Finding(
                "clip_fraction_low",
                f"Only {outcome.clip_fraction:.2%} of the ratios ever reach the clip range: the updates are tiny.",
                "Raise learning_rate or n_epochs, and see whether joint clipping eats the step "
                "(diagnostics/clip_factor).",
            )
    return verdicts
