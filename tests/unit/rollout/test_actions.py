"""Claims about what the environment receives: within the bounds, in the space's dtype, in no other way changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.rollout.actions import environment_actions, in_environment_dtype
from tests.environments import ACTION_SPACES

BYTES = spaces.Box(0, 255, (2,), np.uint8)
UNEVEN = spaces.Box(np.array([-2, 0], np.float32), np.array([1, 4], np.float32))


def policy(space: spaces.Space[Any], squashed: bool = False) -> ActorCriticPolicy:
    observation = spaces.Box(-1, 1, (1,), np.float32)
    return ActorCriticPolicy(observation, space, lambda _: 1e-3, net_arch=[], use_sde=squashed, squash_output=squashed)


def received(space: spaces.Space[Any], sampled: list[Any], squashed: bool = False) -> npt.NDArray[Any]:
    return environment_actions(np.array(sampled, dtype=np.float32), space, policy(space, squashed))


def test_a_gaussian_action_is_clipped_to_the_bounds_of_its_dimension() -> None:
    actions = received(UNEVEN, [[-7.5, 7.5], [0.25, 0.25], [2.0, -2.0]])
    assert actions.tolist() == [[-2.0, 4.0], [0.25, 0.25], [1.0, 0.0]]
    assert actions.dtype == np.float32


def test_a_squashed_action_is_scaled_to_the_bounds_of_its_dimension() -> None:
    actions = received(UNEVEN, [[-1, -1], [0, 0], [1, 1], [0.5, -0.5]], squashed=True)
    assert actions.tolist() == [[-2, 0], [-0.5, 2], [1, 4], [0.25, 1]]


def test_an_integer_action_is_rounded_after_clipping() -> None:
    actions = received(BYTES, [[-300.0, 300.0], [0.4, 0.6], [254.6, 255.4], [2.5, 3.5]])
    # Halves go to the even neighbour, so that rounding favours neither side.
    assert actions.tolist() == [[0, 255], [0, 1], [255, 255], [2, 4]]
    assert actions.dtype == np.uint8


def test_a_squashed_integer_action_reaches_both_bounds() -> None:
    actions = received(BYTES, [[-1, 1], [0, 0.5]], squashed=True)
    assert actions.tolist() == [[0, 255], [128, 191]]
    assert actions.dtype == np.uint8


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32])
def test_extreme_integer_bounds_are_reached_and_never_wrapped(dtype: Any) -> None:
    bounds = np.iinfo(dtype)
    space = spaces.Box(bounds.min, bounds.max, (2,), dtype)
    actions = received(space, [[-1e12, 1e12]])
    assert actions.tolist() == [[bounds.min, bounds.max]]
    assert space.contains(actions[0])


def test_the_policys_own_array_is_left_alone() -> None:
    for space in (UNEVEN, BYTES):
        sampled = np.array([[-300.0, 300.7]], dtype=np.float32)
        environment_actions(sampled, space, policy(space))
        assert sampled.tolist() == [[-300.0, pytest.approx(300.7)]]


@pytest.mark.parametrize("family", ["discrete", "multi_discrete", "multi_binary"])
def test_other_families_pass_through(family: str) -> None:
    space = ACTION_SPACES[family]
    sampled = np.stack([space.sample() for _ in range(3)])
    assert environment_actions(sampled, space, policy(space)) is sampled


def test_dtype_is_a_matter_of_integer_boxes_only() -> None:
    actions = np.array([0.4, 1.6])
    assert in_environment_dtype(actions, UNEVEN) is actions
    assert in_environment_dtype(actions, spaces.Discrete(3)) is actions
    assert in_environment_dtype(actions, BYTES).tolist() == [0, 2]
