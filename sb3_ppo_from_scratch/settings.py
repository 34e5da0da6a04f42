"""Validation of what a user passes: hyperparameters, schedules, precision.

Owns the error messages; must not know how anything is used, and changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.utils import FloatSchedule

from sb3_ppo_from_scratch.rollout.minibatches import minibatch_slices

Schedule = Callable[[float], float]


class InvalidArgumentError(ValueError, AssertionError):
    """A value out of range. SB3 asserts some of these, so that code written for it may expect an AssertionError."""


# Those that SB3's PPO has, and how this package computes; ``options`` has the others.
HYPERPARAMETERS = (
    "learning_rate",
    "n_steps",
    "batch_size",
    "n_epochs",
    "gamma",
    "gae_lambda",
    "clip_range",
    "clip_range_vf",
    "normalize_advantage",
    "ent_coef",
    "vf_coef",
    "max_grad_norm",
    "sde_sample_freq",
    "target_kl",
    "engine",
    "precision",
    "compile",
)
_SCHEDULED = ("learning_rate", "clip_range", "clip_range_vf", "ent_coef", "vf_coef")


def as_schedule(value: float | Schedule) -> FloatSchedule:
    """A number of any kind, NumPy's included, or a schedule, as the class that SB3 stores.

    :param value: a number, or a function of the progress remaining
    :return: the schedule
    """
    return FloatSchedule(value if callable(value) else float(value))


def schedule_value(name: str, schedule: float | Schedule, progress_remaining: float) -> float:
    """The value of a number or schedule at this point of training.

    :param name: of the argument, for the error message
    :param schedule: a number, or a function of the progress remaining
    :param progress_remaining: in [0, 1], 1 at the start of training
    :return: a finite number ≥ 0
    :raises TypeError: if the schedule returns no number
    :raises InvalidArgumentError: if the schedule returns anything else (a negative learning rate would climb the loss)
    """
    try:
        value = float(schedule(progress_remaining) if callable(schedule) else schedule)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"The schedule {name} returned no number at progress_remaining={progress_remaining}: {error}."
        ) from error
    if not value >= 0 or math.isinf(value):
        raise InvalidArgumentError(
            f"The schedule {name} returned {value} at progress_remaining={progress_remaining}; it must return a finite "
            "number that is not negative for every progress from 1 (start) to 0 (end)."
        )
    return value


def check_hyperparameters(hyperparameters: dict[str, Any], engines: Iterable[str]) -> None:
    """Refuse values that could only fail later or, worse, train silently wrong.

    :param hyperparameters: every hyperparameter of PPO by its argument name
    :param engines: the valid names of ``engine``
    :raises TypeError: if a value has the wrong type (a number written as text, a fractional step count)
    :raises InvalidArgumentError: if a value is out of range
    """
    values = hyperparameters
    for name in ("n_steps", "batch_size", "n_epochs"):
        check_count(name, values[name])
    for name in ("gamma", "gae_lambda"):
        check_number(name, values[name])
        if not 0 <= values[name] <= 1:
            raise InvalidArgumentError(f"{name}={values[name]} must lie in [0, 1].")
    for name in _SCHEDULED:
        optional = name == "clip_range_vf"
        if not callable(values[name]) and not (optional and values[name] is None):
            check_number(name, values[name], positive=name.startswith("clip_range"), schedule=True)
    check_number("max_grad_norm", values["max_grad_norm"], positive=True, finite=False)
    if values["target_kl"] is not None:
        check_number("target_kl", values["target_kl"], positive=True)
    check_whole("sde_sample_freq", values["sde_sample_freq"])
    if values["sde_sample_freq"] < -1:
        raise InvalidArgumentError(
            f"sde_sample_freq={values['sde_sample_freq']} must be -1 (once a rollout) or a number of steps."
        )
    for name in ("normalize_advantage", "compile"):
        check_truth(name, values[name])
    check_choice("precision", values["precision"], ("fp32", "bf16"))
    check_choice("engine", values["engine"], engines)


def check_learn_arguments(total_timesteps: Any, log_interval: Any) -> None:
    """Refuse arguments of ``learn`` that would fail after the first rollout.

    :param total_timesteps: a number; 1e6 is welcome
    :param log_interval: rollouts between two dumps, or None
    :raises TypeError: if one has the wrong type
    :raises InvalidArgumentError: if one is out of range
    """
    check_number("total_timesteps", total_timesteps, finite=False)
    if log_interval is not None:
        check_count("log_interval", log_interval)


def check_rollout_size(n_steps: int, n_envs: int, normalizes_advantages: bool) -> None:
    """Refuse a rollout whose advantages cannot be normalised.

    :raises InvalidArgumentError: if the whole rollout is a single transition
    """
    if normalizes_advantages and n_steps * n_envs < 2:
        raise InvalidArgumentError(
            f"n_steps={n_steps} with {n_envs} environment collects one transition, whose advantage cannot be "
            "normalised; raise n_steps, use more environments, or pass normalize_advantage=False."
        )


def ragged_minibatch_warning(rollout_size: int, batch_size: int, min_batch_size: int, normalize: bool) -> str | None:
    """What to tell a user whose last minibatch comes out unlike the others.

    :param rollout_size: n_steps × n_envs
    :param batch_size: transitions per minibatch
    :param min_batch_size: a shorter last minibatch joins the one before it
    :param normalize: whether advantages are normalised
    :return: the warning, or None where batch_size divides the rollout
    """
    sizes = [part.stop - part.start for part in minibatch_slices(rollout_size, batch_size, min_batch_size)]
    if sizes[-1] == batch_size:
        return None
    n_left = rollout_size % batch_size
    fate = "" if sizes[-1] == n_left else f", which joins the one before it to one of {sizes[-1]}"
    text = (
        f"batch_size={batch_size} does not divide the rollout of n_steps * n_envs = {rollout_size} transitions: "
        f"there will be a truncated mini-batch of size {n_left} at its end{fate}. "
        "Choose a batch_size that is a factor of the rollout."
    )
    if sizes[-1] == 1 and normalize:
        text += " Its single advantage is used unnormalised, as in SB3; engine='auto' with its own buffer avoids that."
    return text


def check_whole(name: str, value: Any) -> None:
    """Refuse what is no whole number.

    :raises TypeError: naming the argument, its value and the remedy
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} must be a whole number, not {type(value).__name__}; pass int({value!r}).")


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number ≥ 1.

    :raises TypeError: if it is no whole number
    :raises InvalidArgumentError: if it is less than 1
    """
    check_whole(name, value)
    if value < 1:
        raise InvalidArgumentError(f"{name}={value} must be at least 1.")


def check_truth(name: str, value: Any) -> None:
    """Refuse what is neither True nor False.

    :raises TypeError: naming the argument, its value and the remedy
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}={value!r} must be True or False, not {type(value).__name__}.")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse what is none of a few words.

    :raises InvalidArgumentError: naming the argument, its value and the choices
    """
    choices = tuple(choices)
    if value not in choices:
        raise InvalidArgumentError(f"{name}={value!r} is unknown; choose one of {', '.join(map(repr, choices))}.")


def check_number(name: str, value: Any, *, positive: bool = False, finite: bool = True, schedule: bool = False) -> None:
    """Refuse what is no number ≥ 0.

    :param positive: refuse 0 as well
    :param finite: refuse infinity as well
    :param schedule: tell the user that a schedule would have done, too
    :raises TypeError: if it is no number
    :raises InvalidArgumentError: if it is out of range
    """
    kind = "a number or a function of the progress remaining" if schedule else "a number"
    if isinstance(value, bool) or not isinstance(value, Real):
        remedy = f"; pass float({value!r}), or write 1.0e-3 rather than 1e-3 in YAML" if isinstance(value, str) else ""
        raise TypeError(f"{name}={value!r} must be {kind}, not {type(value).__name__}{remedy}.")
    number = float(value)
    if math.isnan(number) or (finite and math.isinf(number)):
        raise InvalidArgumentError(f"{name}={value} must be finite.")
    if number < 0 or (positive and number == 0):
        raise InvalidArgumentError(f"{name}={value} must be {'greater than' if positive else 'at least'} 0.")


def bf16_objection(device: th.device) -> str | None:
    """Why ``precision="bf16"`` is no gain on a device.

    :param device: where the policy is
    :return: None where the hardware multiplies bfloat16 natively
    :raises InvalidArgumentError: where torch cannot compute in bfloat16 at all
    """
    if device.type == "cuda":
        if not th.cuda.is_bf16_supported(including_emulation=False):
            raise InvalidArgumentError(
                f"precision='bf16': {th.cuda.get_device_name(device)} has no bfloat16; use 'fp32'."
            )
        return None
    if device.type != "cpu":
        raise InvalidArgumentError(f"precision='bf16' is not known to work on {device}; use 'fp32', a CPU or CUDA.")
    is_native = any(
        getattr(th.cpu, name, lambda: False)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    )
    return (
        None if is_native else "precision='bf16' is slower than 'fp32' here: the CPU has neither AVX512_BF16 nor AMX."
    )
