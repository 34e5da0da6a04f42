"""From a model and its rollout to the numbers that ``core.judgements`` judges.

Owns what is measured and how; must not judge, and must leave parameters, gradients, modes and generators alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from sb3_ppo_from_scratch.callbacks.minibatches import drawn_minibatch, evaluation, left_as_it_was
from sb3_ppo_from_scratch.core import diagnostics, losses
from sb3_ppo_from_scratch.core.adaptation import scaled_learning_rate
from sb3_ppo_from_scratch.core.health import FirstMinibatch, GradientNorms, RolloutStatistics, Thresholds, UpdateOutcome
from sb3_ppo_from_scratch.core.judgements import entropy_share
from sb3_ppo_from_scratch.core.records import Minibatch
from sb3_ppo_from_scratch.options import advantage_statistics, normalized_over
from sb3_ppo_from_scratch.update.objective import VALUE_LOSSES, scaled_advantages

Gradients = Sequence["th.Tensor | None"]


class Probe(NamedTuple):
    """One minibatch, and what it says before the first step.

    :param minibatch: B transitions
    :param first: how it looks to the policy that collected it
    :param gradients: which it would send through the policy
    """

    minibatch: Minibatch
    first: FirstMinibatch
    gradients: GradientNorms


def rollout_statistics(buffer: Any) -> RolloutStatistics:
    """What is stored, in a few numbers.

    :param buffer: full; ours or SB3's
    :return: the statistics
    """
    arrays = (buffer.advantages, buffer.returns, buffer.rewards)
    columns = np.array([np.ravel(array) for array in arrays], dtype=np.float64)
    with np.errstate(invalid="ignore"):  # numbers that are none are a finding, not an error
        means = columns.mean(axis=1)
        stds = np.sqrt(np.square(columns - means[:, None]).mean(axis=1))
    (advantage_mean, return_mean, reward_mean), (advantage_std, return_std, reward_std) = means.tolist(), stds.tolist()
    return RolloutStatistics(
        advantage_mean=advantage_mean,
        advantage_std=advantage_std,
        advantage_max=float(np.abs(columns[0]).max()),
        return_mean=return_mean,
        return_std=return_std,
        return_rms=math.hypot(return_mean, return_std),
        reward_rms=math.hypot(reward_mean, reward_std),
        # What the critic leaves unexplained is the advantage: Â = R − V.
        explained_variance=1 - (advantage_std / return_std) ** 2 if return_std > 0 else math.nan,
        is_finite=math.isfinite(advantage_std + return_std),
    )


def probe(model: OnPolicyAlgorithm, generator: np.random.Generator) -> Probe:
    """Draw a minibatch, score it and differentiate its losses, as the first step of the update will.

    At ratio 1 the clipped, the penalised and the plain surrogate have one and the same gradient, that of A2C too.

    :param model: with a full rollout that no update has touched
    :param generator: which transitions
    :return: the minibatch and the numbers
    """
    minibatch = drawn_minibatch(model.rollout_buffer, getattr(model, "batch_size", 2**62), generator)
    with left_as_it_was(model.policy, training=True), th.enable_grad():
        values, log_prob, entropy = evaluation(model.policy, minibatch)
        log_ratio = log_prob - minibatch.old_log_prob
        policy_loss = losses.surrogate_loss(log_ratio.exp(), _normalized(model, minibatch.advantages))
        actor_loss = policy_loss - _now(model, "ent_coef") * entropy.mean()
        criterion = VALUE_LOSSES[getattr(model, "value_loss", "mse")]
        critic_loss = _now(model, "vf_coef") * criterion.mean(values, minibatch.returns)
        gradients = _gradient_norms(model, actor_loss, critic_loss)
        first = _first_minibatch(model, log_ratio.detach(), float(entropy.mean().detach()))
    return Probe(minibatch, first, gradients)


def update_outcome(model: OnPolicyAlgorithm, minibatch: Minibatch) -> UpdateOutcome:
    """How far the policy has moved since it collected a minibatch.

    :param model: after its update
    :param minibatch: of the rollout before
    :return: measured on that minibatch
    """
    with left_as_it_was(model.policy, training=False), th.no_grad():
        _, log_prob, _ = evaluation(model.policy, minibatch)
        return UpdateOutcome(*_divergence(model, log_prob - minibatch.old_log_prob))


def divergence_target(model: OnPolicyAlgorithm) -> float | None:
    """How far an update is meant to move the policy, in nats, by the strictest of the settings that have a say.

    :param model: PPO's; any other has no such settings
    :return: None without any
    """
    named = ["target_kl", "desired_kl"]
    if getattr(model, "objective", "clip") == "adaptive_kl":
        named.append("kl_target")
    targets = [float(value) for name in named if (value := getattr(model, name, None)) is not None]
    return min(targets, default=None)


def progress_remaining(model: OnPolicyAlgorithm) -> float:
    """How much of the training remains after the steps taken so far.

    :param model: within ``learn``
    :return: in [0, 1]
    """
    return max(0.0, 1.0 - model.num_timesteps / max(model._total_timesteps, 1))


def present_learning_rate(model: OnPolicyAlgorithm) -> float:
    """The learning rate of the next update: the schedule's, and what ``desired_kl`` has made of it.

    :param model: within ``learn``
    :return: ≥ 0
    """
    scheduled = float(model.lr_schedule(progress_remaining(model)))
    if getattr(model, "desired_kl", None) is None:
        return scheduled
    return scaled_learning_rate(scheduled, float(model.learning_rate_factor))  # type: ignore[attr-defined]


def ratio_tolerance(model: OnPolicyAlgorithm, limits: Thresholds) -> float:
    """How far a ratio may be from 1 before the first step, by rounding alone.

    :param model: one that computes in bf16 has 8 bits, where the public methods of its policy have 24
    :param limits: of health
    :return: the tolerance
    """
    return limits.ratio_tolerance * (100 if getattr(model, "precision", "fp32") == "bf16" else 1)


def judges_clipping(model: OnPolicyAlgorithm) -> bool:
    """Whether a clip fraction says anything about the updates of a model.

    :param model: one with another objective does not clip; one that takes a single step sees every ratio at 1
    :return: the answer
    """
    n_samples = model.n_steps * model.n_envs
    n_steps = getattr(model, "n_epochs", 1) * -(-n_samples // getattr(model, "batch_size", n_samples))
    return getattr(model, "objective", "clip") == "clip" and hasattr(model, "clip_range") and bool(n_steps > 1)


def max_entropy(space: spaces.Space[Any]) -> tuple[float, int]:
    """The entropy of the uniform distribution over the actions, in nats, and how many of them are continuous.

    :param space: of the actions
    :return: H_max, NaN for unbounded actions, and D
    """
    if isinstance(space, spaces.Discrete):
        return math.log(space.n), 0
    if isinstance(space, spaces.MultiDiscrete):
        return float(np.log(space.nvec).sum()), 0
    if isinstance(space, spaces.Box):
        width = space.high.astype(np.float64) - space.low
        is_bounded = bool(np.isfinite(width).all() and (width > 0).all())
        return float(np.log(width).sum()) if is_bounded else math.nan, width.size
    return float(np.prod(space.shape or (1,))) * math.log(2), 0


def _first_minibatch(model: OnPolicyAlgorithm, log_ratio: th.Tensor, entropy: float) -> FirstMinibatch:
    ratio = log_ratio.exp()
    largest, n_continuous = max_entropy(model.action_space)
    if model.policy.squash_output:
        largest = math.nan  # the entropy is the estimate −log π, which nothing can be compared with
    return FirstMinibatch(
        float(ratio.mean()),
        float((ratio - 1).abs().max()),
        *_divergence(model, log_ratio),
        entropy=entropy,
        max_entropy=largest,
        entropy_share=entropy_share(entropy, largest, n_continuous),
    )


def _divergence(model: OnPolicyAlgorithm, log_ratio: th.Tensor) -> tuple[float, float, float]:
    clip_range = _now(model, "clip_range") if hasattr(model, "clip_range") else math.nan
    return (
        float(diagnostics.approx_kl(log_ratio)),
        float(diagnostics.approx_kl_k1(log_ratio)),
        # Without a clip range nothing is beyond it, nor within.
        math.nan if math.isnan(clip_range) else float(diagnostics.clip_fraction(log_ratio.exp(), clip_range)),
    )


def _now(model: OnPolicyAlgorithm, name: str) -> float:
    value: float | Callable[[float], float] = getattr(model, name)
    return float(value(progress_remaining(model)) if callable(value) else value)


def _normalized(model: OnPolicyAlgorithm, advantages: th.Tensor) -> th.Tensor:
    defaults = {"normalize_advantage": False, "advantage_normalization": "minibatch"}
    scope = normalized_over({name: getattr(model, name, default) for name, default in defaults.items()})
    of_rollout = advantage_statistics(model.rollout_buffer.advantages) if scope == "rollout" else None
    normalized: th.Tensor = scaled_advantages(advantages, scope == "minibatch", of_rollout)
    return normalized


def _gradient_norms(model: OnPolicyAlgorithm, actor_loss: th.Tensor, critic_loss: th.Tensor) -> GradientNorms:
    parameters = [parameter for parameter in model.policy.parameters() if parameter.requires_grad]
    # Not backward(), which would add to the gradients that the parameters hold, and to nobody else's.
    of_actor, of_critic = (_gradients(loss, parameters) for loss in (actor_loss, critic_loss))
    pairs = list(zip(of_actor, of_critic, strict=True))
    shared = [(actor, critic) for actor, critic in pairs if actor is not None and critic is not None]
    actor, critic, shared_actor, shared_critic = map(
        _norm, (of_actor, of_critic, [actor for actor, _ in shared], [critic for _, critic in shared])
    )
    overlap = 2 * sum(float((actor * critic).sum()) for actor, critic in shared)
    joint = math.sqrt(max(actor**2 + critic**2 + overlap, 0.0))
    budget = diagnostics.gradient_budget(joint, float(model.max_grad_norm), present_learning_rate(model))
    return GradientNorms(actor, critic, joint, shared_actor, shared_critic, *budget)


def _gradients(loss: th.Tensor, parameters: list[th.nn.Parameter]) -> Gradients:
    if not loss.requires_grad:
        return [None] * len(parameters)
    # The other loss still needs the graph; ``left_as_it_was`` lets go of it.
    return th.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)


def _norm(gradients: Gradients) -> float:
    present = [gradient for gradient in gradients if gradient is not None]
    return float(th.nn.utils.get_total_norm(present)) if present else 0.0
