"""A bad argument is refused where it is given, with its name and value, before any step of an environment."""

from __future__ import annotations

import io
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sb3_ppo_from_scratch import PPO
from tests.environments import HiddenStateEnv, vector_environment
from tests.faults.environments import ActionRecorder
from tests.faults.models import Assign, optimizer_steps, tiny_model

NAN, INF = math.nan, math.inf


def _table(names: tuple[str, ...], values: tuple[Any, ...], error: type[Exception]) -> list[tuple[str, Any, Any]]:
    return [(name, value, error) for name in names for value in values]


COUNTS = ("n_steps", "batch_size", "n_epochs")
SHARES = ("gamma", "gae_lambda")
SCHEDULED = ("learning_rate", "clip_range", "clip_range_vf", "ent_coef", "vf_coef")
CHOSEN = ("objective", "value_clip", "value_loss", "advantage_normalization", "truncation")
BAD = [
    *_table(COUNTS, (0, -1), ValueError),
    *_table(COUNTS, (1.5, 8.0, np.float64(8), NAN, INF, "8", "eight", True, False, None, [8], 8j), TypeError),
    *_table(SHARES, (1.1, -0.1, NAN, INF, np.float32(2)), ValueError),
    *_table(SHARES, ("0.99", True, None, [0.9], 1j), TypeError),
    *_table(SCHEDULED, (-1e-3, NAN, INF, -INF, np.float32(-1)), ValueError),
    *_table(SCHEDULED, ("1e-3", "lin_3e-4", True, [1e-3], {"start": 1}), TypeError),
    *_table(("learning_rate", "clip_range", "ent_coef", "vf_coef"), (None,), TypeError),
    *_table(("clip_range", "clip_range_vf"), (0, 0.0), ValueError),
    *_table(("max_grad_norm", "target_kl"), (0, 0.0, -0.5, NAN), ValueError),
    *_table(("max_grad_norm", "target_kl"), ("0.5", True, [0.5]), TypeError),
    ("max_grad_norm", None, TypeError),
    ("target_kl", INF, ValueError),
    *_table(("sde_sample_freq",), (-2, 1.5, "4", None), (ValueError, TypeError)),
    *_table(("sde_sample_freq",), (True,), (ValueError, TypeError)),
    *_table(("engine",), ("fast", "Auto", "", None, 1, ["auto"]), (ValueError, TypeError)),
    *_table(("normalize_advantage",), ("False", "no"), (ValueError, TypeError)),
    ("batch_size", 1, ValueError),
    *_table(CHOSEN, ("fast", "", None, 1), ValueError),
    *_table(("kl_coef", "reference_kl_coef", "kl_target", "desired_kl"), (-0.5, NAN, INF), ValueError),
    *_table(("kl_coef", "reference_kl_coef", "kl_target", "desired_kl"), ("0.5", True, [0.5]), TypeError),
    *_table(("kl_target", "desired_kl"), (0, 0.0), ValueError),
    *_table(("log_after_train", "log_epochs"), ("no", 1, None), TypeError),
    ("reference_policy", 3, TypeError),
    ("reference_policy", "no such file.zip", ValueError),
    ("reference_kl_coef", 0.5, ValueError),  # of what policy?
]
IDS = [f"{name}={value!r}" for name, value, _ in BAD]
GOOD = [
    *_table(COUNTS, (16, np.int64(16), np.int32(16)), None),
    *_table(SHARES, (0, 1, 0.0, 1.0, np.float32(0.5), Fraction(1, 2)), None),
    *_table(SCHEDULED, (1, 1e-3, np.float32(1e-3), np.float64(1e-3), np.int64(1), Fraction(1, 8)), None),
    *_table(SCHEDULED, (lambda progress: 1e-3, lambda progress: np.float32(1e-3)), None),
    *_table(("learning_rate", "ent_coef", "vf_coef"), (0, 0.0), None),
    ("clip_range_vf", None, None),
    *_table(("max_grad_norm",), (1, 0.5, INF, np.float32(0.5)), None),
    *_table(("target_kl",), (None, 1, 0.01, np.float32(0.01)), None),
    *_table(("sde_sample_freq",), (-1, 0, 4, np.int64(4)), None),
    *_table(("normalize_advantage",), (True, False, np.bool_(True)), None),
    *_table(("objective",), ("clip", "kl_penalty", "unclipped"), None),
    *_table(("value_clip",), ("sb3", "openai"), None),
    *_table(("value_loss",), ("mse", "half_mse", "huber"), None),
    *_table(("advantage_normalization",), ("minibatch", "rollout", "none"), None),
    *_table(("truncation",), ("bootstrap", "terminal"), None),
    *_table(("kl_coef",), (0, 1, 0.5, np.float32(0.5)), None),
    *_table(("kl_target",), (1, 0.01, np.float32(0.01)), None),
    *_table(("log_after_train", "log_epochs"), (True, np.bool_(False)), None),
    ("desired_kl", None, None),
    ("reference_policy", None, None),
]
GOOD_IDS = [
    f"{name}={value!r}" if not callable(value) else f"{name}=schedule{i}" for i, (name, value, _) in enumerate(GOOD)
]


def _names(name: str, value: Any) -> str:
    """The message has the argument, then its value as Python or as a person writes it."""
    return rf"(?s)\b{name}\b.*({re.escape(repr(value))}|{re.escape(str(value))})"


@pytest.mark.parametrize("name, value, error", BAD, ids=IDS)
def test_construction_refuses_a_bad_argument(name: str, value: Any, error: Any) -> None:
    env = ActionRecorder(HiddenStateEnv())
    with pytest.raises(error, match=_names(name, value)):
        tiny_model(env, **{name: value})
    assert env.received == []


@pytest.fixture(scope="module")
def saved() -> bytes:
    file = io.BytesIO()
    tiny_model(HiddenStateEnv()).save(file)
    return file.getvalue()


@pytest.mark.parametrize("name, value, error", BAD, ids=IDS)
def test_load_refuses_a_bad_argument(name: str, value: Any, error: Any, saved: bytes) -> None:
    with pytest.raises(error, match=_names(name, value)):
        PPO.load(io.BytesIO(saved), device="cpu", **{name: value})


@pytest.mark.parametrize("name, value, error", BAD, ids=IDS)
def test_learn_refuses_a_bad_value_that_was_assigned(name: str, value: Any, error: Any) -> None:
    env = ActionRecorder(HiddenStateEnv())
    model = tiny_model(env)
    setattr(model, name, value)
    with pytest.raises(error, match=_names(name, value)):
        model.learn(16)
    assert env.received == []


# A callback assigns in the middle of a rollout; what is bad must not reach the update of that rollout.
@pytest.mark.parametrize(
    "name, value, error",
    [
        ("batch_size", 0, ValueError),
        ("batch_size", 1, ValueError),
        ("batch_size", 2.5, TypeError),
        ("n_epochs", 0, ValueError),
        ("n_epochs", "3", TypeError),
        ("engine", "fast", ValueError),
        ("clip_range", "x", TypeError),
        ("clip_range", 0, ValueError),
        ("ent_coef", -1.0, ValueError),
        ("vf_coef", NAN, ValueError),
        ("target_kl", 0, ValueError),
        ("max_grad_norm", -1.0, ValueError),
        ("learning_rate", "1e-3", TypeError),
        ("learning_rate", -1.0, ValueError),
        ("gamma", 1.5, ValueError),
        ("n_steps", 0, ValueError),
        ("objective", "fast", ValueError),
        ("kl_coef", -1.0, ValueError),
        ("value_loss", "l2", ValueError),
        ("desired_kl", 0.01, ValueError),  # of an update that is one step
        ("reference_policy", "no such file.zip", ValueError),
    ],
)
@pytest.mark.parametrize("n_rollouts", [1, 2])
def test_a_bad_value_that_a_callback_assigns_is_refused_by_name(
    name: str, value: Any, error: type[Exception], n_rollouts: int
) -> None:
    model = tiny_model(HiddenStateEnv())
    with pytest.raises(error, match=_names(name, value)):
        model.learn(16 * n_rollouts, callback=Assign(3, **{name: value})).learn(16, reset_num_timesteps=False)
    # Settings that the update reads are refused before it; the others at the latest before the next rollout.
    assert optimizer_steps(model) <= 1


@pytest.mark.parametrize("name, value, _", GOOD, ids=GOOD_IDS)
def test_every_number_of_the_right_range_is_taken_whatever_its_type(name: str, value: Any, _: None) -> None:
    model = tiny_model(HiddenStateEnv(), **{name: value}).learn(32)
    assert optimizer_steps(model) >= 2


@pytest.mark.parametrize("name, value, _", GOOD, ids=GOOD_IDS)
def test_every_number_of_the_right_range_may_be_assigned(name: str, value: Any, _: None) -> None:
    model = tiny_model(HiddenStateEnv()).learn(16)
    setattr(model, name, value)
    assert optimizer_steps(model.learn(32)) >= 3


def test_a_rollout_of_one_transition_cannot_be_normalised() -> None:
    with pytest.raises(ValueError, match="n_steps=1"):
        tiny_model(HiddenStateEnv(), n_steps=1, batch_size=2)
    assert tiny_model(vector_environment(2), n_steps=1, batch_size=2).learn(4).num_timesteps == 4
    lone = tiny_model(HiddenStateEnv(), n_steps=1, batch_size=1, normalize_advantage=False)
    assert lone.learn(2).num_timesteps == 2


def test_a_number_written_as_text_in_yaml_is_told_how_to_be_written() -> None:
    with pytest.raises(TypeError, match=r"float\('1e-3'\).*1\.0e-3"):
        tiny_model(HiddenStateEnv(), learning_rate="1e-3")


@pytest.mark.parametrize(
    "arguments, named", [({"log_interval": 0}, "log_interval=0"), ({"total_timesteps": "16"}, "total_timesteps='16'")]
)
def test_learn_refuses_its_own_bad_arguments(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises((TypeError, ValueError), match=named):
        tiny_model(HiddenStateEnv()).learn(**{"total_timesteps": 16, **arguments})
