"""Every space either trains or is refused at construction by name; none fails in the middle of training."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from tests.environments import HiddenStateEnv
from tests.faults.environments import UNIT_BOX
from tests.faults.models import ENGINES, tiny_model

PAIR = spaces.Discrete(2)
LARGEST = float(np.finfo(np.float32).max)
SQUASHED: dict[str, Any] = {"use_sde": True, "policy_kwargs": {"net_arch": [8], "squash_output": True}}

OBSERVATIONS: dict[str, spaces.Space[Any]] = {
    "tuple": spaces.Tuple([UNIT_BOX, PAIR]),
    "nested_dict": spaces.Dict({"outer": spaces.Dict({"inner": UNIT_BOX})}),
    "tuple_in_dict": spaces.Dict({"outer": spaces.Tuple([UNIT_BOX])}),
    "multi_discrete_two_axes": spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
    "discrete_from_one": spaces.Discrete(3, start=1),
    "discrete_from_minus_one": spaces.Discrete(3, start=-1),
    "multi_discrete_from_one": spaces.MultiDiscrete([3, 2], start=[1, 0]),
    "box_without_axes": spaces.Box(-1.0, 1.0, (), np.float32),
    "empty_box": spaces.Box(-1.0, 1.0, (0,), np.float32),
    "text": spaces.Text(4),
    "graph": spaces.Graph(UNIT_BOX, PAIR),
    "sequence": spaces.Sequence(UNIT_BOX),
    "one_of": spaces.OneOf([UNIT_BOX, PAIR]),
    "empty_dict": spaces.Dict({}),
    "empty_box_in_dict": spaces.Dict({"a": spaces.Box(-1.0, 1.0, (0,), np.float32)}),
    "dict_with_discrete_from_one": spaces.Dict({"a": spaces.Discrete(3, start=1), "b": UNIT_BOX}),
    "dict_with_box_without_axes": spaces.Dict({"a": spaces.Box(-1.0, 1.0, (), np.float32)}),
    "dict_with_two_axes_of_counts": spaces.Dict({"a": spaces.MultiDiscrete(np.array([[2, 3], [4, 5]]))}),
    "dict_with_text": spaces.Dict({"a": UNIT_BOX, "b": spaces.Text(4)}),
    "infinite_box": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "boolean_box": spaces.Box(0, 1, (2,), np.bool_),
    "multi_binary_two_axes": spaces.MultiBinary([2, 3]),
}
ACTIONS: dict[str, spaces.Space[Any]] = {
    "tuple": spaces.Tuple([PAIR, PAIR]),
    "dict": spaces.Dict({"a": PAIR}),
    "text": spaces.Text(4),
    "graph": spaces.Graph(UNIT_BOX, PAIR),
    "sequence": spaces.Sequence(UNIT_BOX),
    "one_of": spaces.OneOf([UNIT_BOX, PAIR]),
    "multi_discrete_two_axes": spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
    "multi_discrete_from_one": spaces.MultiDiscrete([3, 2], start=[1, 0]),
    "discrete_from_one": spaces.Discrete(3, start=1),
    "discrete_from_minus_one": spaces.Discrete(3, start=-1),
    "multi_binary_two_axes": spaces.MultiBinary([2, 3]),
    "multi_binary_one_axis_as_tuple": spaces.MultiBinary([3]),
    "infinite_box": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "half_infinite_box": spaces.Box(np.array([-1, 0], np.float32), np.array([1, np.inf], np.float32)),
    "box_without_axes": spaces.Box(-1.0, 1.0, (), np.float32),
    "empty_box": spaces.Box(-1.0, 1.0, (0,), np.float32),
    "boolean_box": spaces.Box(0, 1, (2,), np.bool_),
    "largest_box": spaces.Box(-LARGEST, LARGEST, (2,), np.float32),
    "int8_whole_range": spaces.Box(-128, 127, (2,), np.int8),
    "int32_whole_range": spaces.Box(-(2**31), 2**31 - 1, (2,), np.int32),
    "int64_whole_range": spaces.Box(-(2**63), 2**63 - 1, (2,), np.int64),
    "int64_natural": spaces.Box(0, 2**63 - 1, (2,), np.int64),
}
BOX_ACTIONS = [name for name, space in ACTIONS.items() if isinstance(space, spaces.Box)]


class _SamplingEnv(gym.Env[Any, Any]):
    """Shows samples of any space at all, and insists on actions of its own."""

    def __init__(self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.n_steps = 0
        self.foreign_actions: list[Any] = []
        observation_space.seed(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.n_steps += 1
        # A Box without axes gives a NumPy scalar, which `contains` would warn about.
        if not self.action_space.contains(np.asarray(action)):
            self.foreign_actions.append(action)
        return self.observation_space.sample(), 1.0, False, self.n_steps % 5 == 0, {}


def _trains_or_is_refused(env: _SamplingEnv, named: str, **settings: Any) -> None:
    try:
        model = tiny_model(env, **settings)
    except Exception as refusal:
        assert named in str(refusal), f"{type(refusal).__name__}: {refusal}"  # noqa: PT017
        assert env.n_steps == 0
        return
    model.learn(2 * model.n_steps)
    assert env.n_steps == model.num_timesteps == 2 * model.n_steps
    assert np.isfinite(model.logger.name_to_value["train/loss"])
    assert env.foreign_actions == []


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_an_observation_space_trains_or_is_refused_by_name(observation: str) -> None:
    space = OBSERVATIONS[observation]
    # For a Dict it is enough to name the part that is at fault.
    parts = list(space.spaces.values()) if isinstance(space, spaces.Dict) else []
    named = str(parts[0] if parts else space) if observation != "dict_with_text" else str(space["b"])
    _trains_or_is_refused(_SamplingEnv(space, PAIR), named)


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_space_trains_or_is_refused_by_name(action: str) -> None:
    _trains_or_is_refused(_SamplingEnv(UNIT_BOX, ACTIONS[action]), str(ACTIONS[action]))


@pytest.mark.parametrize("action", BOX_ACTIONS)
@pytest.mark.parametrize("log_std_init", [0.0, 2.0])
def test_a_squashed_action_space_trains_or_is_refused_by_name(action: str, log_std_init: float) -> None:
    kwargs = {"net_arch": [8], "squash_output": True, "log_std_init": log_std_init}
    env = _SamplingEnv(UNIT_BOX, ACTIONS[action])
    _trains_or_is_refused(env, str(ACTIONS[action]), use_sde=True, policy_kwargs=kwargs)


MUST_TRAIN: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "two_axes_of_actions": (UNIT_BOX, spaces.Box(-1.0, 1.0, (2, 2), np.float32), {}),
    "two_axes_of_gsde_actions": (UNIT_BOX, spaces.Box(-1.0, 1.0, (2, 2), np.float32), {"use_sde": True}),
    "two_axes_of_squashed_actions": (UNIT_BOX, spaces.Box(-1.0, 3.0, (2, 2), np.float32), SQUASHED),
    "two_axes_of_bits": (spaces.MultiBinary([2, 3]), PAIR, {}),
    "channels_first": (spaces.Box(0, 255, (3, 36, 36), np.uint8), PAIR, {"policy": "CnnPolicy"}),
    "channels_last": (spaces.Box(0, 255, (36, 36, 3), np.uint8), PAIR, {"policy": "CnnPolicy"}),
    "grey_channels_last": (spaces.Box(0, 255, (36, 40, 1), np.uint8), PAIR, {"policy": "CnnPolicy"}),
    "normalised_image": (
        spaces.Box(0.0, 1.0, (3, 36, 36), np.float32),
        PAIR,
        {"policy": "CnnPolicy", "policy_kwargs": {"normalize_images": False}},
    ),
    "image_seen_by_an_mlp": (spaces.Box(0, 255, (4, 4, 3), np.uint8), PAIR, {"policy": "MlpPolicy"}),
    "dict_of_all_kinds": (
        spaces.Dict(
            {
                "vector": UNIT_BOX,
                "grid": spaces.Box(-1.0, 1.0, (2, 3), np.float64),
                "image": spaces.Box(0, 255, (36, 36, 3), np.uint8),
                "discrete": spaces.Discrete(4),
                "multi_discrete": spaces.MultiDiscrete([2, 3]),
                "bits": spaces.MultiBinary(3),
                "rows_of_bits": spaces.MultiBinary([2, 2]),
                "counts": spaces.Box(0, 9, (2,), np.int64),
            }
        ),
        spaces.MultiDiscrete([2, 3]),
        {},
    ),
    "one_choice": (spaces.Discrete(1), spaces.Discrete(2), {}),
    "wide_discrete": (spaces.Discrete(300), spaces.Discrete(300), {}),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize("name", MUST_TRAIN)
def test_a_supported_space_trains(name: str, n_envs: int, engine: str) -> None:
    observation, action, settings = MUST_TRAIN[name]
    env = DummyVecEnv([lambda: HiddenStateEnv(observation, action, time_limit=5)] * n_envs)
    model = tiny_model(env, engine=engine, **settings).learn(32 * n_envs)
    assert model._n_updates == 2
    assert np.isfinite(model.logger.name_to_value["train/loss"])
    prediction, _ = model.predict(env.reset())
    assert all(action.contains(one) for one in prediction)
