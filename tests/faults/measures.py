"""What a hyperparameter did, measured from a trained model rather than read off its attribute.

Owns the solving of formulas for their settings; must not know how a setting got there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th

from tests.faults.models import logged, optimizer_steps

Measure = Callable[[Any], Any]


def measured_gamma(model: Any) -> float:
    """The γ in Â = r + γV' − V, from a rollout with λ = 0 and no episode end in the last transition used."""
    return _solved(model, lambda td_error, next_value, next_advantage: td_error / next_value)


def measured_gae_lambda(model: Any) -> float:
    """The λ in Â = δ + γλÂ', given γ."""
    return _solved(
        model,
        lambda td_error, next_value, next_advantage: (
            (td_error - model.gamma * next_value) / (model.gamma * next_advantage)
        ),
    )


def _solved(model: Any, solution: Callable[[Any, Any, Any], Any]) -> float:
    buffer = model.rollout_buffer
    inside = buffer.episode_starts[1:] == 0
    excess = (buffer.advantages + buffer.values - buffer.rewards - buffer.bootstraps)[:-1][inside]
    values = solution(excess, buffer.values[1:][inside], buffer.advantages[1:][inside])
    return float(np.median(values))


def updates_of_last_rollout(model: Any) -> int:
    before = optimizer_steps(model)
    model.learn(model.n_steps, reset_num_timesteps=False)
    return optimizer_steps(model) - before


def epochs_of_last_rollout(model: Any) -> int:
    before = model._n_updates
    model.learn(model.n_steps, reset_num_timesteps=False)
    return int(model._n_updates - before)


def coefficient(loss: str) -> Measure:
    """The weight of a term, solved from the logged total of a single minibatch; 0.5 and 0 are the other's default."""

    def measured(model: Any) -> float:
        rest = logged(model, "loss") - logged(model, "policy_gradient_loss")
        if loss == "value_loss":
            return rest / logged(model, "value_loss")
        return (rest - 0.5 * logged(model, "value_loss")) / logged(model, "entropy_loss")

    return measured


def length_of_step(model: Any) -> float:
    """How far plain gradient descent at rate 1 went: the norm of the clipped gradient."""
    before = th.nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()
    model.learn(model.n_steps, reset_num_timesteps=False)
    after = th.nn.utils.parameters_to_vector(model.policy.parameters()).detach()
    return float((after - before).norm())


def advantages_are_whitened(model: Any) -> bool:
    # At ratio 1 the policy loss is minus the mean advantage, which whitening makes 0.
    return abs(logged(model, "policy_gradient_loss")) < 1e-6


def smallest_minibatch(model: Any) -> int:
    return min(len(minibatch.advantages) for minibatch in model.rollout_buffer.get(5))


def optimizer_rate(model: Any) -> float:
    return float(model.policy.optimizer.param_groups[0]["lr"])


def penalty_weight(model: Any) -> float:
    """The weight β of the divergence in the last update, as it was logged; 0 where there was no penalty."""
    return float(model.logger.name_to_value.get("train/kl_coef", 0.0))


def value_loss_ratio(model: Any) -> float:
    """The logged loss of a single minibatch over the mean squared error of the values it was stored with."""
    buffer = model.rollout_buffer
    return logged(model, "value_loss") / float(np.mean((buffer.returns - buffer.values) ** 2))


def bootstraps_of_last_rollout(model: Any) -> int:
    return int(np.count_nonzero(model.rollout_buffer.bootstraps))
