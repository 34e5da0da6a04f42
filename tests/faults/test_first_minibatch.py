"""Before the first step of an update nothing has changed, so ratio = 1, KL = 0 and nothing is clipped.

Anything else means that the buffer does not hold what the policy sampled and saw.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from tests.environments import ACTION_SPACES, OBSERVATION_SPACES, HiddenStateEnv
from tests.faults.environments import ActionRecorder
from tests.faults.models import ENGINES, logged, tiny_model

BOXES: dict[str, spaces.Box] = {
    "float32": spaces.Box(-1.0, 1.0, (2,), np.float32),
    "float64": spaces.Box(-0.3, 0.1, (2,), np.float64),
    "float16": spaces.Box(-1.0, 1.0, (2,), np.float16),
    "two_axes": spaces.Box(-1.0, 1.0, (2, 2), np.float32),
    "uint8": spaces.Box(0, 255, (2,), np.uint8),
    "uint8_far_from_zero": spaces.Box(100, 200, (2,), np.uint8),
    "uint8_two_axes": spaces.Box(0, 3, (2, 2), np.uint8),
    "int8": spaces.Box(-100, 27, (2,), np.int8),
    "int8_whole_range": spaces.Box(-128, 127, (2,), np.int8),
    "uint16": spaces.Box(0, 65535, (2,), np.uint16),
    "int32_whole_range": spaces.Box(-(2**31), 2**31 - 1, (1,), np.int32),
    "int64": spaces.Box(-1000, 1000, (2,), np.int64),
    "uint64": spaces.Box(0, 9, (2,), np.uint64),
}
COUNTED = {name: space for name, space in ACTION_SPACES.items() if not isinstance(space, spaces.Box)}
INTEGER_BOXES = [name for name, space in BOXES.items() if np.issubdtype(space.dtype, np.integer)]

HEADS: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "wide_gaussian": {"policy_kwargs": {"net_arch": [8], "log_std_init": 4.0}},
    "gsde": {"use_sde": True, "sde_sample_freq": 4},
    "gsde_expln": {"use_sde": True, "policy_kwargs": {"net_arch": [8], "use_expln": True}},
    "gsde_one_deviation": {"use_sde": True, "policy_kwargs": {"net_arch": [8], "full_std": False}},
    "squashed_gsde": {"use_sde": True, "policy_kwargs": {"net_arch": [8], "squash_output": True}},
    "saturated_gsde": {
        "use_sde": True,
        "policy_kwargs": {"net_arch": [8], "squash_output": True, "log_std_init": 2.0},
    },
}
OBSERVATIONS: dict[str, spaces.Space[Any]] = {
    **OBSERVATION_SPACES,
    "float64": spaces.Box(-1.0, 1.0, (3,), np.float64),
    "float16": spaces.Box(-1.0, 1.0, (3,), np.float16),
    "two_axes": spaces.Box(-1.0, 1.0, (2, 3), np.float32),
    "uint8_vector": spaces.Box(0, 255, (3,), np.uint8),
    "int64_vector": spaces.Box(-(10**6), 10**6, (3,), np.int64),
    "multi_binary_two_axes": spaces.MultiBinary([2, 3]),
    "dict_of_counts": spaces.Dict(
        {
            "switches": spaces.MultiBinary([2, 2]),
            "levels": spaces.MultiDiscrete([3, 2]),
            "count": spaces.Box(0, 9, (2,), np.int64),
            "photo": spaces.Box(0, 255, (36, 36, 3), np.uint8),
        }
    ),
}
NORMALISED: dict[str, spaces.Space[Any]] = {
    "uint8": OBSERVATIONS["uint8_vector"],
    "int64": OBSERVATIONS["int64_vector"],
    "float16": OBSERVATIONS["float16"],
    "float64": OBSERVATIONS["float64"],
    "dict": spaces.Dict(
        {"count": spaces.Box(0, 9, (2,), np.int64), "position": spaces.Box(-1.0, 1.0, (2,), np.float32)}
    ),
}


def _assert_nothing_has_changed(model: Any) -> None:
    """Check the log of the only minibatch, then the engine once more on the same rollout before any step."""
    assert logged(model, "approx_kl") == pytest.approx(0.0, abs=1e-6)
    assert logged(model, "clip_fraction") == 0.0
    _collect_without_update(model)
    (minibatch,) = model.rollout_buffer.get()
    settings = model._update_settings()
    updater = model._engine.updater
    updater.begin(model.rollout_buffer, model.batch_size)
    terms = updater.evaluate(updater.prepared(minibatch), settings)
    updater.finish()
    assert float(terms.approx_kl) == pytest.approx(0.0, abs=1e-6)
    assert float(terms.clip_fraction) == 0.0
    actions = minibatch.actions
    if isinstance(model.action_space, spaces.Discrete):
        actions = actions.long().flatten()
    _, log_prob, _ = model.policy.evaluate_actions(minibatch.observations, actions)
    th.testing.assert_close(th.exp(log_prob - minibatch.old_log_prob), th.ones_like(log_prob), atol=1e-4, rtol=0)


def _collect_without_update(model: Any) -> None:
    model.train = lambda: None
    model.learn(model.n_steps * model.n_envs)
    del model.train


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("action", [*COUNTED.values(), *BOXES.values()], ids=[*COUNTED, *BOXES])
def test_every_action_space_starts_its_update_at_ratio_one(action: spaces.Space[Any], engine: str) -> None:
    model = tiny_model(HiddenStateEnv(action=action), engine=engine)
    _assert_nothing_has_changed(model.learn(32))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("box", ["float32", "two_axes", "uint8", "int8", "int64"])
@pytest.mark.parametrize("head", HEADS)
def test_every_head_starts_its_update_at_ratio_one(head: str, box: str, engine: str) -> None:
    model = tiny_model(HiddenStateEnv(action=BOXES[box]), engine=engine, **HEADS[head])
    _assert_nothing_has_changed(model.learn(32))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_every_observation_space_starts_its_update_at_ratio_one(observation: str, engine: str) -> None:
    model = tiny_model(HiddenStateEnv(OBSERVATIONS[observation]), engine=engine)
    _assert_nothing_has_changed(model.learn(32))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("observation", NORMALISED)
def test_normalised_observations_are_stored_as_the_policy_saw_them(observation: str, engine: str) -> None:
    env = VecNormalize(DummyVecEnv([lambda: HiddenStateEnv(NORMALISED[observation])] * 2))
    seen: list[np.ndarray[Any, Any]] = []

    def watch(local_variables: dict[str, Any], _: dict[str, Any]) -> bool:
        seen.append(_count(local_variables["obs_tensor"]).numpy().copy())
        return True

    model = tiny_model(env, engine=engine).learn(32, callback=watch)
    np.testing.assert_array_equal(_count(model.rollout_buffer.observations), np.stack(seen))
    _assert_nothing_has_changed(model)


def _count(observation: Any) -> Any:
    return observation["count"] if isinstance(observation, dict) else observation


class UserBuffer(StockRolloutBuffer):
    """What a user of SB3 may have written."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("buffer_class", [StockRolloutBuffer, UserBuffer])
def test_a_buffer_class_of_sb3_is_given_what_was_sampled(buffer_class: type[Any], engine: str) -> None:
    env = HiddenStateEnv(action=BOXES["uint8"])
    model = tiny_model(env, engine=engine, rollout_buffer_class=buffer_class).learn(16)
    assert logged(model, "approx_kl") == pytest.approx(0.0, abs=1e-6)
    assert logged(model, "clip_fraction") == 0.0


@pytest.mark.parametrize(
    "box, head",
    [
        (box, head)
        for box in INTEGER_BOXES
        for head in ("gaussian", "wide_gaussian", "gsde", "squashed_gsde", "saturated_gsde")
        # Squashing to a whole signed range is refused: see test_unsupported_spaces.py.
        if not (box.endswith("whole_range") and head in ("squashed_gsde", "saturated_gsde"))
    ],
)
def test_an_environment_with_integer_actions_receives_integers_of_its_space(box: str, head: str) -> None:
    env = ActionRecorder(HiddenStateEnv(action=BOXES[box]))
    model = tiny_model(env, **HEADS[head]).learn(16)
    predictions, _ = model.predict(np.zeros((5, 4), np.float32), deterministic=False)
    single, _ = model.predict(np.zeros(4, np.float32), deterministic=True)
    for action in (*env.received, *predictions, single):
        assert action.dtype == BOXES[box].dtype
        assert BOXES[box].contains(action)


def test_the_environment_receives_the_nearest_integer_to_what_is_stored() -> None:
    env = ActionRecorder(HiddenStateEnv(action=BOXES["int64"]))
    model = tiny_model(env, **HEADS["wide_gaussian"]).learn(16)
    stored = model.rollout_buffer.actions[:, 0]
    assert np.abs(stored - np.rint(stored)).max() > 0.1  # not rounded in storage
    np.testing.assert_array_equal(np.array(env.received), np.clip(np.rint(stored), -1000, 1000))


@pytest.mark.parametrize("box", ["uint8", "int64"])
def test_stock_ppo_stores_other_actions_than_it_sampled(box: str) -> None:
    model = tiny_model(HiddenStateEnv(action=BOXES[box]), stable_baselines3.PPO)
    assert logged(model.learn(16), "approx_kl") > 0.01


def test_stock_ppo_stores_other_observations_than_it_saw() -> None:
    env = VecNormalize(DummyVecEnv([lambda: HiddenStateEnv(NORMALISED["uint8"])]))
    model = tiny_model(env, stable_baselines3.PPO).learn(16)
    assert logged(model, "approx_kl") > 1e-5
    assert model.rollout_buffer.observations.dtype == np.uint8  # of numbers between -10 and 10
