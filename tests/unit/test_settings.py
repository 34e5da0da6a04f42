"""Claims about validation: what is wrong is refused by name and value, and what is right is let through."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.utils import LinearSchedule

from sb3_ppo_from_scratch.settings import (
    check_hyperparameters,
    check_rollout_size,
    ragged_minibatch_warning,
    schedule_value,
)
from sb3_ppo_from_scratch.spaces import check_action_space, check_observation_space
from tests.environments import ACTION_SPACES, OBSERVATION_SPACES

ENGINES = ("auto", "reference")
GOOD: dict[str, Any] = {
    "learning_rate": 3e-4,
    "n_steps": 2048,
    "batch_size": 64,
    "n_epochs": 10,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "clip_range_vf": None,
    "normalize_advantage": True,
    "ent_coef": 0.0,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "sde_sample_freq": -1,
    "target_kl": None,
    "engine": "auto",
    "precision": "fp32",
    "compile": False,
}
COUNTS = ("n_steps", "batch_size", "n_epochs")
FRACTIONS = ("gamma", "gae_lambda")
AT_LEAST_ZERO = ("learning_rate", "ent_coef", "vf_coef")
POSITIVE = ("clip_range", "clip_range_vf", "max_grad_norm", "target_kl")
NUMBERS = (*FRACTIONS, *AT_LEAST_ZERO, *POSITIVE)
SCHEDULED = ("learning_rate", "clip_range", "clip_range_vf", "ent_coef", "vf_coef")
OPTIONAL = ("clip_range_vf", "target_kl")


def check(**changes: Any) -> None:
    check_hyperparameters({**GOOD, **changes}, ENGINES)


def refusal(checked: Callable[..., None], *arguments: Any, **named: Any) -> str | None:
    """The message with which a value is refused; None where it is accepted."""
    try:
        checked(*arguments, **named)
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def each(names: tuple[str, ...], *values: Any) -> list[tuple[str, Any]]:
    return [(name, value) for name in names for value in values]


OUT_OF_RANGE = [
    *each(COUNTS, 0, -1, np.int64(0)),
    *each(FRACTIONS, -0.01, 1.01, math.nan, math.inf, np.float32(2)),
    *each(AT_LEAST_ZERO, -1e-3, math.nan, math.inf, -math.inf),
    *each(POSITIVE, 0, 0.0, -0.1, math.nan),
    *each(("clip_range", "clip_range_vf", "target_kl"), math.inf),
    ("sde_sample_freq", -2),
    ("engine", "fused"),
    ("engine", None),
    ("precision", "fp16"),
    ("precision", None),
]
WRONG_TYPE = [
    *each(COUNTS, 64.0, "64", None, True, np.float64(64), [64]),
    *each(NUMBERS, "1e-3", True, np.True_, [0.1], np.array([0.1]), 1j),
    *each(tuple(name for name in NUMBERS if name not in OPTIONAL), None),
    *each(tuple(name for name in NUMBERS if name not in SCHEDULED), abs),
    *each(("normalize_advantage", "compile"), "no", 1, None),
    *each(("sde_sample_freq",), True, 2.0),
]
ACCEPTED = [
    *each(COUNTS, 2, np.int64(64), np.int32(64)),
    *each(FRACTIONS, 0, 1, 0.0, 1.0, np.float32(0.5), np.float64(0.5)),
    *each(AT_LEAST_ZERO, 0, 0.0, 1, 1e-3, np.float32(0.5)),
    *each(POSITIVE, 1, 1e-3, np.float64(0.5), np.int64(1)),
    *each(SCHEDULED, lambda progress: 0.1 * progress, LinearSchedule(0.1, 0.0, 1.0)),
    *each(OPTIONAL, None),
    ("max_grad_norm", math.inf),
    *each(("sde_sample_freq",), -1, 0, 4, np.int64(4)),
    *each(("engine",), *ENGINES),
    *each(("normalize_advantage", "compile"), True, False),
    *each(("precision",), "fp32", "bf16"),
]


@pytest.mark.parametrize("name, value", OUT_OF_RANGE)
def test_a_value_out_of_range_is_refused_by_name_and_value(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name}=") as error:
        check(**{name: value})
    assert str(value) in str(error.value)


@pytest.mark.parametrize("name, value", WRONG_TYPE)
def test_a_value_of_the_wrong_type_is_refused_by_name_and_value(name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{name}=") as error:
        check(**{name: value})
    assert repr(value) in str(error.value)
    assert type(value).__name__ in str(error.value)


@pytest.mark.parametrize("name, value", ACCEPTED)
def test_a_good_value_is_accepted(name: str, value: Any) -> None:
    assert refusal(check, **{name: value}) is None


def test_a_learning_rate_that_yaml_reads_as_text_is_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"learning_rate='1e-3' must be a number .* not str; .*1\.0e-3.* in YAML"):
        check(learning_rate="1e-3")


@pytest.mark.parametrize("schedule", [0.25, 0, lambda progress: progress / 4, LinearSchedule(0.25, 0.25, 1.0)])
def test_a_schedule_or_number_gives_a_plain_float(schedule: Any) -> None:
    value = schedule_value("clip_range", schedule, 1.0)
    assert type(value) is float
    assert value == (0.0 if schedule == 0 else 0.25)


@pytest.mark.parametrize("value", [-3.1e-4, math.nan, math.inf, -math.inf])
def test_a_schedule_that_leaves_its_range_is_named(value: float) -> None:
    with pytest.raises(ValueError, match=rf"learning_rate returned {value} at progress_remaining=0\.5"):
        schedule_value("learning_rate", lambda progress: value, 0.5)


@pytest.mark.parametrize("n_steps, n_envs, normalize_advantage", [(2, 1, True), (1, 2, True), (1, 1, False)])
def test_a_rollout_whose_advantages_can_be_normalised_is_accepted(
    n_steps: int, n_envs: int, normalize_advantage: bool
) -> None:
    assert refusal(check_rollout_size, n_steps, n_envs, normalize_advantage) is None


def test_a_rollout_of_one_transition_is_refused_by_name_and_value() -> None:
    with pytest.raises(ValueError, match="n_steps=1 with 1 environment"):
        check_rollout_size(1, 1, normalizes_advantages=True)


@pytest.mark.parametrize("batch_size", [1, 4, 16])
def test_a_batch_size_that_divides_the_rollout_needs_no_warning(batch_size: int) -> None:
    assert ragged_minibatch_warning(16, batch_size, 2 if batch_size > 1 else 1, normalize=True) is None


@pytest.mark.parametrize(
    "batch_size, n_left, min_batch_size, lone",
    [(5, 1, 1, True), (5, 1, 1, False), (5, 1, 2, True), (6, 4, 1, True), (20, 16, 2, True)],
)
def test_a_ragged_last_minibatch_is_announced_with_its_size(
    batch_size: int, n_left: int, min_batch_size: int, lone: bool
) -> None:
    text = ragged_minibatch_warning(16, batch_size, min_batch_size, lone)
    assert text is not None
    assert f"batch_size={batch_size}" in text
    assert "16 transitions" in text
    assert f"size {n_left}" in text
    joined = n_left < min_batch_size
    assert ("joins the one before it to one of 6" in text) == joined
    assert ("unnormalised" in text) == (n_left == 1 and lone and not joined)


def box(low: Any, high: Any, dtype: Any = np.float32, shape: tuple[int, ...] = (2,)) -> spaces.Box:
    return spaces.Box(low, high, shape, dtype)


SHIFTED = (spaces.Discrete(3, start=1), spaces.MultiDiscrete([3, 2], start=[0, 1]))
MATRIX = spaces.MultiDiscrete([[2, 3], [4, 5]])


@pytest.mark.parametrize("space", OBSERVATION_SPACES.values(), ids=OBSERVATION_SPACES)
def test_every_supported_observation_space_is_accepted(space: spaces.Space[Any]) -> None:
    assert refusal(check_observation_space, space) is None


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    "space, remedy",
    [
        pytest.param(spaces.Tuple([spaces.Discrete(2)]), "FlattenObservation", id="tuple"),
        pytest.param(spaces.Text(5), "FlattenObservation", id="text"),
        pytest.param(box(0, 1, shape=()), r"reshape the observation to \(1,\)", id="no axis"),
        pytest.param(MATRIX, "flatten it", id="matrix"),
        *[pytest.param(space, "TransformObservation", id=f"shifted {space}") for space in SHIFTED],
    ],
)
def test_an_unsupported_observation_space_is_named_with_the_remedy(
    space: spaces.Space[Any], remedy: str, nested: bool
) -> None:
    with pytest.raises(ValueError, match=remedy) as error:
        check_observation_space(spaces.Dict({"part": space}) if nested else space)
    assert str(space) in str(error.value)


def test_a_nested_dict_is_named_by_its_key() -> None:
    with pytest.raises(ValueError, match=r"nests .* under 'inner'; flatten it"):
        check_observation_space(spaces.Dict({"inner": spaces.Dict({"x": spaces.Discrete(2)})}))


@pytest.mark.parametrize("squashed", [False, True])
@pytest.mark.parametrize("space", [*ACTION_SPACES.values(), box(0, 255, np.uint8)], ids=str)
def test_every_supported_action_space_is_accepted(space: spaces.Space[Any], squashed: bool) -> None:
    assert refusal(check_action_space, space, squashed) is None


@pytest.mark.parametrize(
    "space, remedy",
    [
        pytest.param(spaces.Dict({"a": spaces.Discrete(2)}), "use Box, Discrete", id="dict"),
        pytest.param(spaces.Tuple([spaces.Discrete(2)]), "use Box, Discrete", id="tuple"),
        pytest.param(box(-np.inf, np.inf), "finite bounds", id="unbounded"),
        pytest.param(box(-1, np.inf), "finite bounds", id="half bounded"),
        pytest.param(spaces.MultiBinary([2, 2]), "several axes; flatten it", id="binary matrix"),
        pytest.param(MATRIX, "has 2 axes; flatten it", id="matrix"),
        *[pytest.param(space, "TransformAction", id=f"shifted {space}") for space in SHIFTED],
    ],
)
def test_an_unsupported_action_space_is_named_with_the_remedy(space: spaces.Space[Any], remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy) as error:
        check_action_space(space, squashed=False)
    assert str(space) in str(error.value)


def test_bounds_that_overflow_their_own_dtype_are_refused_only_where_actions_are_scaled() -> None:
    space = box(-128, 127, np.int8)
    assert refusal(check_action_space, space, squashed=False) is None
    with pytest.raises(ValueError, match="further apart than int8 can count"):
        check_action_space(space, squashed=True)
