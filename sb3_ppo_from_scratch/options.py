"""The options that Stable-Baselines3 does not have: their choices, their checks, and what they make of an update.

Owns which values go together; must not know how any of them is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core.records import AdvantageStatistics, UpdateSettings
from sb3_ppo_from_scratch.settings import (
    InvalidArgumentError,
    Schedule,
    check_choice,
    check_number,
    check_truth,
    schedule_value,
)
from sb3_ppo_from_scratch.update.objective import POLICY_OBJECTIVES, VALUE_CLIPS, VALUE_LOSSES

CHOICES: dict[str, tuple[str, ...]] = {
    "objective": tuple(POLICY_OBJECTIVES),
    "value_clip": tuple(VALUE_CLIPS),
    "value_loss": tuple(VALUE_LOSSES),
    "advantage_normalization": ("minibatch", "rollout", "none"),
    "truncation": ("bootstrap", "terminal"),
}
OPTIONS = (
    *CHOICES,
    "kl_coef",
    "kl_target",
    "desired_kl",
    "reference_policy",
    "reference_kl_coef",
    "log_after_train",
    "log_epochs",
)


def normalized_over(hyperparameters: Mapping[str, Any]) -> str:
    """Over what the advantages are normalised, by the two arguments that have a say.

    :param hyperparameters: by their argument names
    :return: "minibatch", "rollout" or "none"
    """
    return str(hyperparameters["advantage_normalization"]) if hyperparameters["normalize_advantage"] else "none"


def check_options(hyperparameters: Mapping[str, Any]) -> None:
    """Refuse options that are unknown, out of range, or contradict each other.

    :param hyperparameters: all of PPO's, each of them of the right type
    :raises TypeError: if an option has the wrong type
    :raises InvalidArgumentError: if one is out of range, or two do not go together
    """
    values = hyperparameters
    for name, choices in CHOICES.items():
        check_choice(name, values[name], choices)
    for name in ("kl_coef", "reference_kl_coef"):
        check_number(name, values[name])
    check_number("kl_target", values["kl_target"], positive=True)
    if values["desired_kl"] is not None:
        check_number("desired_kl", values["desired_kl"], positive=True)
    for name in ("log_after_train", "log_epochs"):
        check_truth(name, values[name])
    if POLICY_OBJECTIVES[values["objective"]].adapts_kl_coef and values["kl_coef"] == 0:
        raise InvalidArgumentError(
            f"kl_coef={values['kl_coef']} stays 0 however often objective={values['objective']!r} doubles it; "
            "pass a kl_coef greater than 0, 1.0 for instance."
        )
    if values["desired_kl"] is not None and callable(values["learning_rate"]):
        _check_rate_is_constant(values["learning_rate"], values["desired_kl"])
    if values["target_kl"] is not None:
        _check_target_is_reached(values)
    _check_normalization(values)
    _check_reference(values["reference_policy"], values["reference_kl_coef"])


def _check_rate_is_constant(learning_rate: Schedule, desired_kl: float) -> None:
    rates = [schedule_value("learning_rate", learning_rate, progress) for progress in (1.0, 0.5, 0.0)]
    if len(set(rates)) > 1:
        raise InvalidArgumentError(
            f"desired_kl={desired_kl} moves the learning rate, and so does the schedule learning_rate, from "
            f"{rates[0]:g} to {rates[-1]:g}: each would undo the other; pass a number to start from, such as "
            f"learning_rate={rates[0]:g}."
        )


def _check_target_is_reached(values: Mapping[str, Any]) -> None:
    """``target_kl`` ends an update at 1.5 × its value; what waits for more would move without end."""
    limits = {"desired_kl": 2 * 1.5 * values["target_kl"]}
    if POLICY_OBJECTIVES[values["objective"]].adapts_kl_coef:
        limits["kl_target"] = 1.5 * 1.5 * values["target_kl"]
    for name, limit in limits.items():
        if values[name] is not None and values[name] > limit:
            raise InvalidArgumentError(
                f"target_kl={values['target_kl']} stops every update long before its divergence comes near "
                f"{name}={values[name]}, which would be waited for without end; pass {name} <= {limit:g}, a larger "
                "target_kl, or None for it."
            )


def _check_normalization(values: Mapping[str, Any]) -> None:
    if not values["normalize_advantage"] and values["advantage_normalization"] == "rollout":
        raise InvalidArgumentError(
            "advantage_normalization='rollout' contradicts normalize_advantage=False; leave normalize_advantage at "
            "True, or pass advantage_normalization='none'."
        )
    if normalized_over(values) == "minibatch" and values["batch_size"] < 2:
        raise InvalidArgumentError(
            f"batch_size={values['batch_size']} leaves one advantage per minibatch, which cannot be normalised; "
            "use batch_size >= 2 or normalize_advantage=False."
        )


def _check_reference(policy: Any, coef: float) -> None:
    if policy is None and coef > 0:
        raise InvalidArgumentError(
            f"reference_kl_coef={coef} needs a reference_policy to measure the divergence from; pass one, or 0.0."
        )
    if not isinstance(policy, (ActorCriticPolicy, str, Path, type(None))):
        raise TypeError(
            f"reference_policy={policy!r} must be an ActorCriticPolicy or the path of a saved model, not "
            f"{type(policy).__name__}; of a model, pass model.policy."
        )


def check_divergence_is_seen(hyperparameters: Mapping[str, Any], n_envs: int, min_batch_size: int) -> None:
    """Refuse to follow a divergence that is only ever measured before the first step, when it is 0.

    :param hyperparameters: all of PPO's, checked
    :param n_envs: E
    :param min_batch_size: a shorter last minibatch joins the one before it
    :raises InvalidArgumentError: if an update is one step, and something adapts to its divergence
    """
    values = hyperparameters
    is_one_step = values["n_epochs"] == 1 and values["n_steps"] * n_envs - values["batch_size"] < min_batch_size
    if not is_one_step:
        return
    adapting = {"desired_kl": values["desired_kl"], "objective": values["objective"]}
    if not POLICY_OBJECTIVES[values["objective"]].adapts_kl_coef:
        del adapting["objective"]
    for name, value in adapting.items():
        if value is not None:
            raise InvalidArgumentError(
                f"{name}={value!r} follows the divergence of an update, but with n_epochs=1 and "
                f"batch_size={values['batch_size']} an update is one step and none is ever seen; raise n_epochs or "
                "lower batch_size."
            )


def update_settings(
    hyperparameters: Mapping[str, Any], progress_remaining: float, advantages: npt.NDArray[np.floating]
) -> UpdateSettings:
    """What the next update is to do, every schedule evaluated.

    :param hyperparameters: all of PPO's, checked
    :param progress_remaining: in [0, 1], 1 at the start of training
    :param advantages: of the whole rollout
    :return: the settings
    :raises TypeError: if a schedule returns no number
    :raises InvalidArgumentError: if one leaves its range
    """
    values = hyperparameters
    scheduled: dict[str, Any] = {
        name: None if values[name] is None else schedule_value(name, values[name], progress_remaining)
        for name in ("clip_range", "clip_range_vf", "ent_coef", "vf_coef")
    }
    of_optimizer = ("n_epochs", "batch_size", "max_grad_norm", "target_kl")
    of_objective = ("objective", "kl_coef", "value_clip", "value_loss")
    scope = normalized_over(values)
    return UpdateSettings(
        **{name: values[name] for name in (*of_optimizer, *of_objective)},
        **scheduled,
        normalize_advantage=scope == "minibatch",
        advantage_statistics=advantage_statistics(advantages) if scope == "rollout" else None,
    )


def advantage_statistics(advantages: npt.NDArray[np.floating]) -> AdvantageStatistics:
    """Mean and unbiased standard deviation.

    :param advantages: at least two, in any shape
    :return: both
    """
    return AdvantageStatistics(float(np.mean(advantages)), float(np.std(advantages, ddof=1)))
