"""Claims about the options beyond SB3's: what is refused and why, and what the update is told."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.utils import ConstantSchedule

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.options import (
    CHOICES,
    OPTIONS,
    advantage_statistics,
    check_divergence_is_seen,
    check_options,
    normalized_over,
    update_settings,
)
from tests.unit.test_settings import GOOD, each, refusal

DEFAULTS = {name: inspect.signature(PPO).parameters[name].default for name in OPTIONS}
ADVANTAGES = np.array([[1.0, 2.0], [3.0, 6.0]], dtype=np.float32)


def options(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **DEFAULTS, **changes}


def check(**changes: Any) -> None:
    check_options(options(**changes))


def test_every_option_is_a_keyword_and_the_defaults_are_accepted() -> None:
    parameters = inspect.signature(PPO).parameters
    assert {parameters[name].kind for name in OPTIONS} == {inspect.Parameter.KEYWORD_ONLY}
    assert {name: DEFAULTS[name] for name in CHOICES} == {name: choices[0] for name, choices in CHOICES.items()}
    check()


@pytest.mark.parametrize("name", CHOICES)
def test_an_unknown_word_is_refused_with_the_choices(name: str) -> None:
    for choice in CHOICES[name]:
        assert refusal(check, **{name: choice}) is None
    for value in ("Clip", "", None, 1):
        message = refusal(check, **{name: value})
        assert message is not None
        assert message.startswith(f"{name}={value!r} is unknown; choose one of {CHOICES[name][0]!r}")


@pytest.mark.parametrize(
    "name, value",
    [
        *each(("kl_coef", "reference_kl_coef"), -0.1, math.nan, math.inf),
        *each(("kl_target", "desired_kl"), 0, 0.0, -0.01, math.nan, math.inf),
    ],
)
def test_a_number_out_of_range_is_refused_by_name_and_value(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name}=") as error:
        check(**{name: value})
    assert str(value) in str(error.value)


@pytest.mark.parametrize(
    "name, value",
    [
        *each(("kl_coef", "reference_kl_coef", "kl_target"), "0.1", None, True, [0.1]),
        *each(("desired_kl",), "0.1", True),
        *each(("log_after_train", "log_epochs"), "yes", 1, None),
        *each(("reference_policy",), 1, PPO, object()),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name_and_value(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{name}=") as error:
        check(**{name: value})
    assert repr(value) in str(error.value)


@pytest.mark.parametrize(
    "contradiction, remedy",
    [
        (
            {"normalize_advantage": False, "advantage_normalization": "rollout"},
            "contradicts normalize_advantage=False; leave normalize_advantage at True",
        ),
        ({"objective": "adaptive_kl", "kl_coef": 0.0}, "kl_coef=0.0 stays 0"),
        ({"reference_kl_coef": 0.1}, "reference_kl_coef=0.1 needs a reference_policy"),
        ({"batch_size": 1}, "use batch_size >= 2 or normalize_advantage=False"),
        (
            {"desired_kl": 0.01, "learning_rate": lambda progress: 3e-4 * progress},
            "from 0.0003 to 0: each would undo the other; pass a number",
        ),
        ({"target_kl": 0.01, "desired_kl": 0.031}, "near desired_kl=0.031, .* pass desired_kl <= 0.03"),
        ({"target_kl": 0.01, "objective": "adaptive_kl", "kl_target": 0.023}, "pass kl_target <= 0.0225"),
    ],
    ids=["normalization", "dead_penalty", "no_reference", "lone_advantage", "two_rates", "rate_waits", "penalty_waits"],
)
def test_what_contradicts_itself_is_refused_with_a_remedy(contradiction: dict[str, Any], remedy: str) -> None:
    message = refusal(check, **contradiction)
    assert message is not None
    assert re.search(remedy, message)


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 1, "normalize_advantage": False},
        {"batch_size": 1, "advantage_normalization": "none"},
        {"batch_size": 1, "advantage_normalization": "rollout"},
        {"objective": "kl_penalty", "kl_coef": 0.0},
        {"desired_kl": 0.01, "learning_rate": ConstantSchedule(3e-4)},
        {"target_kl": 0.01, "desired_kl": 0.03},
        {"target_kl": 0.001, "kl_target": 0.023},
        {"reference_kl_coef": 0.1, "reference_policy": "model.zip"},
    ],
    ids=str,
)
def test_what_only_looks_like_it_is_accepted(settings: dict[str, Any]) -> None:
    assert refusal(check, **settings) is None


@pytest.mark.parametrize("adapting", [{"objective": "adaptive_kl"}, {"desired_kl": 0.01}], ids=str)
@pytest.mark.parametrize(
    "one_step, changes",
    [
        (True, {"n_epochs": 1, "n_steps": 16, "batch_size": 32}),
        (True, {"n_epochs": 1, "n_steps": 16, "batch_size": 64}),
        (True, {"n_epochs": 1, "n_steps": 16, "batch_size": 31}),
        (False, {"n_epochs": 1, "n_steps": 16, "batch_size": 30}),
        (False, {"n_epochs": 2, "n_steps": 16, "batch_size": 32}),
    ],
)
def test_a_divergence_that_nobody_sees_cannot_be_followed(
    adapting: dict[str, Any], one_step: bool, changes: dict[str, int]
) -> None:
    message = refusal(check_divergence_is_seen, options(**adapting, **changes), 2, min_batch_size=2)
    assert (message is not None) == one_step
    ((name, value),) = adapting.items()
    assert message is None or message.startswith(f"{name}={value!r} follows the divergence of an update")
    assert refusal(check_divergence_is_seen, options(**changes), 2, min_batch_size=2) is None


@pytest.mark.parametrize("scope", CHOICES["advantage_normalization"])
def test_advantages_are_normalised_over_what_was_chosen_unless_switched_off(scope: str) -> None:
    assert normalized_over(options(advantage_normalization=scope)) == scope
    assert normalized_over(options(advantage_normalization=scope, normalize_advantage=False)) == "none"
    settings = update_settings(options(advantage_normalization=scope), 1.0, ADVANTAGES)
    assert settings.normalize_advantage == (scope == "minibatch")
    assert (settings.advantage_statistics is not None) == (scope == "rollout")


def test_the_statistics_of_a_rollout_are_unbiased() -> None:
    mean, std = advantage_statistics(ADVANTAGES)
    assert mean == 3.0
    assert std == pytest.approx(math.sqrt((4 + 1 + 0 + 9) / 3))


def test_the_update_is_told_what_was_asked_for_with_schedules_evaluated() -> None:
    asked = {"objective": "kl_penalty", "kl_coef": 0.3, "value_clip": "openai", "value_loss": "huber", "n_epochs": 7}
    settings = update_settings(options(**asked, clip_range=lambda progress: 0.2 * progress), 0.5, ADVANTAGES)
    assert {name: getattr(settings, name) for name in asked} == asked
    assert (settings.clip_range, settings.clip_range_vf) == (0.1, None)
