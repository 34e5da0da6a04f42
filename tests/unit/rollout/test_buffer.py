"""Claims about the three phases of the rollout buffer, on data that say where they belong.

Every stored number is 10 × step + environment, or that plus the hundreds of its field: a shifted row shows.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch as th
from gymnasium import spaces

from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer

T, E = 5, 3
HUNDREDS = {"actions": 100, "rewards": 200, "values": 300, "log_probs": 400}
WIDE_BOX = spaces.Box(-1000, 1000, (2,), np.float32)
DISCRETE = spaces.Discrete(1000)


def identity(step: int) -> npt.NDArray[np.float32]:
    return (10 * step + np.arange(E)).astype(np.float32)


IDENTITIES = np.stack([identity(step) for step in range(T)])


def add_step(buffer: RolloutBuffer, step: int, obs: Any = None) -> None:
    number = identity(step)
    buffer.add(
        np.repeat(number[:, None], 2, axis=1) if obs is None else obs,
        number[:, None] + HUNDREDS["actions"],
        number + HUNDREDS["rewards"],
        np.zeros(E, dtype=bool),
        th.from_numpy(number + HUNDREDS["values"])[:, None],
        th.from_numpy(number + HUNDREDS["log_probs"]),
    )


def filled(action_space: spaces.Space[Any] = DISCRETE, **settings: Any) -> RolloutBuffer:
    """A complete rollout with γ = 0, so that a return is the reward of its own step and nothing else."""
    buffer = RolloutBuffer(T, WIDE_BOX, action_space, "cpu", n_envs=E, **{"gamma": 0.0, **settings})
    for step in range(T):
        add_step(buffer, step)
    buffer.compute_returns_and_advantage(th.zeros(E), np.zeros(E, dtype=bool))
    return buffer


def served_identities(buffer: RolloutBuffer, batch_size: int | None) -> list[int]:
    return [int(i) for batch in buffer.get(batch_size) for i in batch.old_values - HUNDREDS["values"]]


def test_each_row_is_stored_at_its_step_and_environment() -> None:
    buffer = filled()
    np.testing.assert_array_equal(buffer.observations, np.stack([IDENTITIES] * 2, axis=-1))
    np.testing.assert_array_equal(buffer.actions[..., 0], IDENTITIES + HUNDREDS["actions"])
    for name in ("rewards", "values", "log_probs"):
        np.testing.assert_array_equal(getattr(buffer, name), IDENTITIES + HUNDREDS[name])


@pytest.mark.parametrize("batch_size", [1, 4, T * E, 1000, None])
def test_every_sample_is_served_once_with_all_fields_of_one_transition(batch_size: int | None) -> None:
    served = []
    for batch in filled().get(batch_size):
        number = batch.old_values - HUNDREDS["values"]
        served += number.tolist()
        assert isinstance(batch.observations, th.Tensor)
        for field, expected in (
            (batch.observations, number[:, None].expand(-1, 2)),
            (batch.actions, number[:, None] + HUNDREDS["actions"]),
            (batch.old_log_prob, number + HUNDREDS["log_probs"]),
            (batch.returns, number + HUNDREDS["rewards"]),
            (batch.advantages, batch.returns - batch.old_values),
        ):
            assert field.tolist() == expected.tolist()
    assert sorted(served) == sorted(IDENTITIES.ravel())


def test_each_epoch_has_its_own_order() -> None:
    buffer = filled()
    epochs = [tuple(served_identities(buffer, 4)) for _ in range(4)]
    assert len(set(epochs)) == 4
    assert len({frozenset(epoch) for epoch in epochs}) == 1


@pytest.mark.parametrize(
    "min_batch_size, batch_size, sizes", [(1, 7, [7, 7, 1]), (2, 7, [7, 8]), (2, 6, [6, 6, 3]), (2, 5, [5, 5, 5])]
)
def test_a_lone_last_sample_joins_its_neighbours_on_request(
    min_batch_size: int, batch_size: int, sizes: list[int]
) -> None:
    buffer = filled()
    buffer.min_batch_size = min_batch_size
    assert [len(batch.returns) for batch in buffer.get(batch_size)] == sizes


def test_storage_keeps_its_shape_and_content_while_minibatches_are_served_and_changed() -> None:
    buffer = filled()
    before = copy.deepcopy(vars(buffer))
    for batch in [*buffer.get(4), *buffer.get(None)]:
        for tensor in batch:
            assert isinstance(tensor, th.Tensor)
            tensor.fill_(-1.0)
    for name, array in before.items():
        if isinstance(array, np.ndarray):
            assert array.shape[:2] == (T, E)
            np.testing.assert_array_equal(getattr(buffer, name), array, strict=True)


def test_arrays_of_the_environment_are_copied() -> None:
    buffer = RolloutBuffer(1, WIDE_BOX, DISCRETE, "cpu", n_envs=1)
    obs, action, reward = np.ones((1, 2), np.float32), np.ones((1, 1)), np.ones(1, np.float32)
    buffer.add(obs, action, reward, np.zeros(1), th.zeros(1), th.zeros(1))
    for array in (obs, action, reward):
        array[:] = 7.0
    assert isinstance(buffer.observations, np.ndarray)
    for stored in (buffer.observations, buffer.actions, buffer.rewards):
        np.testing.assert_array_equal(stored, np.ones_like(stored))


def test_bootstraps_enter_the_returns_and_leave_the_rewards_alone() -> None:
    buffer = RolloutBuffer(T, WIDE_BOX, DISCRETE, "cpu", gamma=0.0, n_envs=E)
    for step in range(T):
        add_step(buffer, step)
        if step == 2:
            buffer.add_bootstrap(np.array([0.0, 0.5, 0.0], dtype=np.float32))
    buffer.compute_returns_and_advantage(th.zeros(E), np.ones(E, dtype=bool))
    rewards = IDENTITIES + HUNDREDS["rewards"]
    np.testing.assert_array_equal(buffer.rewards, rewards)
    expected = rewards.copy()
    expected[2, 1] += 0.5
    np.testing.assert_array_equal(buffer.returns, expected)


def test_a_new_rollout_starts_without_the_bootstraps_of_the_last() -> None:
    buffer = filled()
    buffer.add_bootstrap(np.full(E, 1e6, dtype=np.float32))
    buffer.reset()
    assert (buffer.pos, buffer.full) == (0, False)
    for step in range(T):
        add_step(buffer, step)
    buffer.compute_returns_and_advantage(th.zeros(E), np.zeros(E, dtype=bool))
    np.testing.assert_array_equal(buffer.returns, filled().returns)


def test_a_second_rollout_replaces_every_row_of_the_first() -> None:
    buffer = filled()
    buffer.reset()
    for step in range(T):
        add_step(buffer, step + 5)
    buffer.compute_returns_and_advantage(th.zeros(E), np.zeros(E, dtype=bool))
    assert sorted(served_identities(buffer, None)) == sorted((IDENTITIES + 50).ravel())


def test_discount_and_lambda_may_change_between_rollouts() -> None:
    buffer = filled()
    buffer.gamma = buffer.gae_lambda = 1.0
    buffer.compute_returns_and_advantage(th.zeros(E), np.ones(E, dtype=bool))
    np.testing.assert_allclose(buffer.returns[0], (IDENTITIES + HUNDREDS["rewards"]).sum(axis=0))


@pytest.mark.parametrize(
    "next_phase",
    [
        pytest.param(lambda buffer: buffer.compute_returns_and_advantage(th.zeros(E), np.zeros(E)), id="finalise"),
        pytest.param(lambda buffer: next(buffer.get(4)), id="serve"),
    ],
)
@pytest.mark.parametrize("n_stored", [0, T - 1])
def test_an_incomplete_rollout_is_neither_finalised_nor_served(
    next_phase: Callable[[RolloutBuffer], Any], n_stored: int
) -> None:
    buffer = RolloutBuffer(T, WIDE_BOX, DISCRETE, "cpu", n_envs=E)
    for step in range(n_stored):
        add_step(buffer, step)
    with pytest.raises(RuntimeError, match=f"{n_stored} of buffer_size={T} steps are stored"):
        next_phase(buffer)


def test_a_step_too_many_is_refused_before_anything_is_overwritten() -> None:
    buffer = filled()
    with pytest.raises(IndexError, match=f"already holds buffer_size={T} steps"):
        add_step(buffer, T)
    np.testing.assert_array_equal(buffer.values, IDENTITIES + HUNDREDS["values"])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda buffer: pickle.loads(pickle.dumps(buffer))])
def test_a_copy_serves_the_same_minibatches_and_shares_no_memory(
    duplicate: Callable[[RolloutBuffer], RolloutBuffer],
) -> None:
    buffer = filled()
    twin = duplicate(buffer)
    served = []
    for each in (buffer, twin):
        np.random.seed(3)
        served.append(served_identities(each, 4))
    assert served[0] == served[1]
    twin.values[:] = -1.0
    np.testing.assert_array_equal(buffer.values, IDENTITIES + HUNDREDS["values"])


def test_actions_of_an_integer_box_are_stored_as_sampled() -> None:
    """SB3 stores −3.75 in an unsigned byte as 253, so that the first ratio is already wrong."""
    sampled = np.array([[-3.75, 300.25], [0.5, 255.0], [1e6, -1e6]], dtype=np.float32)
    buffer = RolloutBuffer(1, WIDE_BOX, spaces.Box(0, 255, (2,), np.uint8), "cpu", n_envs=E)
    buffer.add(np.zeros((E, 2)), sampled, np.zeros(E), np.zeros(E), th.zeros(E), th.zeros(E))
    np.testing.assert_array_equal(buffer.actions[0], sampled, strict=True)
    [batch] = buffer.get()
    assert sorted(batch.actions.tolist()) == sorted(sampled.tolist())


@pytest.mark.parametrize("nested", [False, True])
def test_float_observations_of_an_integer_space_are_not_truncated(nested: bool) -> None:
    """VecNormalize gives fractions whatever the space says; earlier whole rows stay as they were."""
    pixels = spaces.Box(0, 255, (2,), np.uint8)
    space = spaces.Dict({"pixels": pixels}) if nested else pixels
    buffer = RolloutBuffer(3, space, DISCRETE, "cpu", n_envs=E)
    rows = [np.full((E, 2), 200, np.uint8), np.full((E, 2), -0.25, np.float32), np.full((E, 2), 7, np.uint8)]
    for row in rows:
        obs: Any = {"pixels": row} if nested else row
        buffer.add(obs, np.zeros((E, 1)), np.zeros(E), np.zeros(E), th.zeros(E), th.zeros(E))
    stored = buffer.observations["pixels"] if nested else buffer.observations
    np.testing.assert_array_equal(stored, np.stack(rows).astype(np.float32), strict=True)


def test_observations_keep_the_dtype_of_their_space() -> None:
    space = spaces.Dict({"pixels": spaces.Box(0, 255, (2,), np.uint8), "place": spaces.Box(-1, 1, (2,), np.float64)})
    buffer = RolloutBuffer(1, space, DISCRETE, "cpu", n_envs=E)
    obs = {key: np.zeros((E, 2), part.dtype) for key, part in space.spaces.items()}
    buffer.add(obs, np.zeros((E, 1)), np.zeros(E), np.zeros(E), th.zeros(E), th.zeros(E))
    [batch] = buffer.get()
    assert isinstance(batch.observations, dict)
    assert batch.observations["pixels"].dtype == th.uint8
    assert batch.observations["place"].dtype == th.float64


def test_an_observation_of_the_wrong_size_is_not_broadcast() -> None:
    buffer = RolloutBuffer(T, WIDE_BOX, DISCRETE, "cpu", n_envs=E)
    with pytest.raises(ValueError, match="reshape"):
        add_step(buffer, 0, obs=np.zeros((1, 2), np.float32))
