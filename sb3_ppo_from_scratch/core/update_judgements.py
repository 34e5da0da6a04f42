"""From a minibatch, its gradients and the update to findings: does the policy explore, and is it moved as it should?

Owns the reasoning and the words of the remedies; must not know models, environments, or how findings are shown.
"""

from __future__ import annotations

import math

from sb3_ppo_from_scratch.core.health import (
    Finding,
    FirstMinibatch,
    GradientNorms,
    RolloutStatistics,
    Thresholds,
    UpdateOutcome,
)
from sb3_ppo_from_scratch.core.judgements import NORMALISE, Verdicts


def minibatch_verdicts(
    minibatch: FirstMinibatch, statistics: RolloutStatistics, ratio_tolerance: float, limits: Thresholds
) -> Verdicts:
    """Whether the stored log-probabilities are the policy's, and whether it still explores.

    Where advantages are next to nothing the task may be solved, and a policy that always acts alike its solution.

    :param minibatch: before any step
    :param statistics: of the rollout
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
    if minibatch.entropy_share < limits.min_entropy and statistics.advantage_std > 0.01 * statistics.return_rms:
        verdicts["entropy_collapse"] = Finding(
            "entropy_collapse",
            f"The policy uses {minibatch.entropy_share:.2%} of its room (entropy {minibatch.entropy:.3g}, "
            f"{minibatch.max_entropy:.3g} nats of a uniform one): it hardly explores, and cannot learn about actions "
            "that it never takes.",
            "Unless the task is solved: raise ent_coef, lower learning_rate or n_epochs, or go back to an earlier "
            "checkpoint. A new model with a wide Box needs its actions rescaled to [-1, 1] (RescaleAction).",
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
            f"{NORMALISE} Or lower vf_coef, or raise max_grad_norm.",
        )
    if gradients.shared_critic > 0:
        verdicts["shared_trunk"] = None
        if gradients.shared_critic > limits.max_trunk_dominance * gradients.shared_actor:
            verdicts["shared_trunk"] = Finding(
                "shared_trunk",
                f"On the layers that actor and critic share, the value loss pulls with {gradients.shared_critic:.3g} "
                f"and the policy with {gradients.shared_actor:.2g}: the features serve the critic alone.",
                f"Lower vf_coef or use separate networks (share_features_extractor=False). {NORMALISE}",
            )
    return verdicts


def update_verdicts(
    outcome: UpdateOutcome,
    target: float | None,
    *,
    judges_high_clipping: bool,
    judges_low_clipping: bool,
    limits: Thresholds,
) -> Verdicts:
    """Whether an update went too far, or nowhere.

    :param outcome: of one update
    :param target: of the divergence, in nats; None without
    :param judges_high_clipping: False where clipping means nothing: another objective, or a single step
    :param judges_low_clipping: False, moreover, where updates are meant to be small, or cannot be otherwise
    :param limits: of health
    :return: for kl and, as far as they are judged, clip_fraction_high and clip_fraction_low
    """
    verdicts: Verdicts = {"kl": None}
    max_kl = limits.max_kl if target is None else 2 * target
    if outcome.approx_kl > max_kl or outcome.approx_kl_k1 > max_kl:
        verdicts["kl"] = Finding(
            "kl",
            f"An update moved the policy by {outcome.approx_kl:.3g} nats (k3; k1 says {outcome.approx_kl_k1:.3g}), "
            f"beyond {max_kl:.3g}: the rollout no longer describes it.",
            "Lower learning_rate or n_epochs, narrow clip_range or raise kl_coef, whichever the objective has, or set "
            "target_kl to stop such updates early.",
        )
    if judges_high_clipping:
        verdicts["clip_fraction_high"] = None
        if outcome.clip_fraction > limits.max_clip_fraction:
            verdicts["clip_fraction_high"] = Finding(
                "clip_fraction_high",
                f"{outcome.clip_fraction:.0%} of the ratios lie beyond the clip range, more than "
                f"{limits.max_clip_fraction:.0%}: most of the later steps push against the clip.",
                "Lower learning_rate or n_epochs, or use larger minibatches.",
            )
    if judges_low_clipping:
        verdicts["clip_fraction_low"] = None
        if outcome.clip_fraction < limits.min_clip_fraction:
            verdicts["clip_fraction_low"] = Finding(
                "clip_fraction_low",
                f"Only {outcome.clip_fraction:.2%} of the ratios ever reach the clip range: the updates are tiny.",
                "Raise learning_rate or n_epochs, and see whether joint clipping eats the step "
                "(diagnostics/clip_factor).",
            )
    return verdicts
