"""Claims about stacks of images kept as single frames: every bit as stored plainly, in a third of the bytes or less."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer

from sb3_ppo_from_scratch.core.arrays import stacked
from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from sb3_ppo_from_scratch.rollout.frames import FramePool
from tests.unit.rollout.screens import (
    C,
    E,
    H,
    Screens,
    T,
    W,
    add_steps,
    assert_reads_as,
    filled,
    keeps_frames,
    n_bytes,
    new_buffer,
)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.sampled_from([1, 2, 7, 8, 9, 30]),
    st.sampled_from([(2, 2, 3), (3, 3, 3), (4, 5, 4), (4, 3, 3), (1, 4, 4)]),
    st.sampled_from([1, 2, 256]),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.booleans(),
)
def test_any_stream_of_stacks_is_read_as_it_was_added(
    seed: int, n_envs: int, n_steps: int, shape: tuple[int, ...], n_values: int, end_rate: float, is_emptied: bool
) -> None:
    screens = Screens(seed, n_envs, shape, n_values, end_rate=end_rate, is_emptied=is_emptied)
    buffer: RolloutBuffer | None = None
    for _ in range(3):
        observations = screens.rollout(n_steps)
        buffer = buffer or new_buffer(observations)
        buffer.reset()
        add_steps(buffer, observations)
        assert_reads_as(buffer, observations)


@given(st.data())
def test_any_bytes_are_read_as_they_were_added(data: st.DataObject) -> None:
    """Stacks and what is none, in turns: the storage may change its mind in the middle of any rollout."""
    seed = data.draw(st.integers(0, 2**32 - 1))
    screens, rng = Screens(seed), np.random.default_rng(seed)
    buffer = new_buffer(screens.rollout())
    for rollout in data.draw(st.lists(st.lists(st.booleans(), min_size=T, max_size=T), min_size=1, max_size=3)):
        observations = np.stack(
            [screens.step() if is_stack else rng.integers(0, 256, (E, C, H, W), np.uint8) for is_stack in rollout]
        )
        buffer.reset()
        add_steps(buffer, observations)
        assert_reads_as(buffer, observations)


@pytest.mark.parametrize("is_emptied", [True, False])
def test_stacks_are_kept_as_frames(is_emptied: bool) -> None:
    observations = Screens(0, is_emptied=is_emptied).rollout()
    buffer = filled(observations)
    assert keeps_frames(buffer)
    assert_reads_as(buffer, observations)


def test_frames_are_stored_once_and_empty_ones_not_at_all() -> None:
    """The stack is full when the rollout begins, and one frame more comes with each step, however often it restarts."""
    screens = Screens(0, end_rate=0.0)
    screens.rollout()
    buffer = new_buffer(np.zeros((T, E, C, H, W)))
    add_steps(buffer, [screens.step()])
    screens._end_rate = 0.5
    add_steps(buffer, screens.rollout(T - 1))
    [frames, _] = buffer.packed().observations
    assert len(frames) == 1 + E * (C - 1 + T)
    assert not frames[0].any()


@pytest.mark.parametrize("layout", ["channels_first", "channels_last_in_memory"])
def test_arrays_of_the_environment_are_copied_whatever_their_layout(layout: str) -> None:
    observations = Screens(0).rollout()
    buffer = new_buffer(observations)
    seen = np.zeros((E, C, H, W), np.uint8)
    if layout != "channels_first":
        seen = np.zeros((E, H, W, C), np.uint8).transpose(0, 3, 1, 2)  # as VecTransposeImage does
    for row in observations:
        seen[:] = row
        add_steps(buffer, [seen])
    assert keeps_frames(buffer)
    assert_reads_as(buffer, observations)


@pytest.mark.parametrize("shape", [(3, H, W), (12, 12, 13), (H, W, 3), (1, H, W)])
def test_images_that_are_no_stacks_are_stored_plainly(shape: tuple[int, ...]) -> None:
    """Colours, and groups of colours, do not move up by one channel a step."""
    observations = np.random.default_rng(0).integers(0, 256, (T, E, *shape), dtype=np.uint8)
    buffer = filled(observations)
    assert not keeps_frames(buffer)
    assert np.shares_memory(buffer.observations, buffer.packed().observations)
    assert_reads_as(buffer, observations)


def test_what_looked_like_stacks_may_turn_out_to_be_colours() -> None:
    """A black screen chains with itself: only what comes later tells, and rows of the black time stay black."""
    rng = np.random.default_rng(0)
    observations = np.concatenate(
        [np.zeros((12, E, 3, H, W), np.uint8), rng.integers(0, 256, (28, E, 3, H, W), dtype=np.uint8)]
    )
    buffer = new_buffer(observations)
    add_steps(buffer, observations[:12])
    before = n_bytes(buffer)
    add_steps(buffer, observations[12:])
    assert not keeps_frames(buffer)
    assert n_bytes(buffer) > before
    assert_reads_as(buffer, observations)


def test_floats_that_arrive_in_the_middle_are_not_truncated() -> None:
    """VecNormalize gives fractions whatever the space says."""
    observations = Screens(0).rollout().astype(np.float32)
    observations[10:] -= 0.25
    buffer = new_buffer(observations)
    add_steps(buffer, observations[:10].astype(np.uint8))
    add_steps(buffer, observations[10:])
    assert_reads_as(buffer, observations)


def test_a_step_that_failed_may_be_added_again() -> None:
    observations = Screens(0).rollout()
    buffer = new_buffer(observations)
    for step, row in enumerate(observations):
        if step % 3 == 0:
            scalars = np.zeros(E, np.float32)
            with pytest.raises(ValueError, match="reshape"):
                buffer.add(row, np.zeros(7), scalars, scalars, th.zeros(E), th.zeros(E))
        add_steps(buffer, [row])
    assert_reads_as(buffer, observations)


def test_an_observation_of_the_wrong_size_is_not_broadcast() -> None:
    buffer = new_buffer(np.zeros((T, E, C, H, W)))
    with pytest.raises(ValueError, match="reshape"):
        buffer.add(np.zeros((1, C, H, W), np.uint8), np.zeros(E), np.zeros(E), np.zeros(E), th.zeros(E), th.zeros(E))


def test_the_steps_of_an_interrupted_rollout_are_readable_and_the_others_zero() -> None:
    screens = Screens(0)
    buffer = filled(screens.rollout())
    buffer.reset()
    observations = screens.rollout(5)
    add_steps(buffer, observations)
    np.testing.assert_array_equal(buffer.observations[:5], observations)
    assert not buffer.observations[5:].any()


def test_observations_that_are_read_are_a_copy_and_those_that_are_assigned_are_kept() -> None:
    observations = Screens(0).rollout()
    buffer = filled(observations)
    buffer.observations[:] = 7
    assert_reads_as(buffer, observations)
    buffer.observations = observations + 1
    assert not keeps_frames(buffer)
    assert_reads_as(buffer, observations + 1)


@pytest.mark.parametrize("n_stored", [0, 7, T])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda buffer: pickle.loads(pickle.dumps(buffer))])
def test_a_copy_goes_on_by_itself(duplicate: Callable[[Any], Any], n_stored: int) -> None:
    screens, others = Screens(0), Screens(1, end_rate=1.0)
    observations = screens.rollout()
    buffer = new_buffer(observations)
    add_steps(buffer, observations[:n_stored])
    twin = duplicate(buffer)
    add_steps(buffer, observations[n_stored:])
    add_steps(twin, observations[n_stored:])
    twin.reset()
    add_steps(twin, others.rollout())
    assert_reads_as(buffer, observations)


def test_a_pool_that_is_too_small_grows_by_little_without_moving_what_it_holds() -> None:
    screens = Screens(0, 8, (4, 32, 32), end_rate=0.1, is_emptied=False)
    rollouts = [screens.rollout(200) for _ in range(3)]
    buffer = new_buffer(rollouts[0])
    plain, sizes = rollouts[0].nbytes, [n_bytes(buffer)]
    for observations in rollouts:
        buffer.reset()
        tracemalloc.start()
        add_steps(buffer, observations)
        grown, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak - grown < 0.02 * plain
        assert_reads_as(buffer, observations)
        sizes.append(n_bytes(buffer))
    assert keeps_frames(buffer)
    assert sizes[0] < sizes[1] <= sizes[2] <= sizes[3] < 1.6 * sizes[0]


def test_a_pool_starts_with_an_empty_frame_and_keeps_positions_over_blocks() -> None:
    pool = FramePool(33, (1, 2))
    frames = np.arange(2 * 60, dtype=np.uint8).reshape(60, 1, 2)
    positions = np.concatenate([pool.append(frames[:25]), pool.append(frames[25:25]), pool.append(frames[25:])])
    np.testing.assert_array_equal(positions, np.arange(1, 61))
    np.testing.assert_array_equal(pool.frames()[positions], frames)
    assert 61 * 2 <= n_bytes(pool) <= 63 * 2
    pool.clear()
    assert pool.append(frames[:1]).tolist() == [1]
    np.testing.assert_array_equal(pool.frames(), [[[0, 0]], [[0, 1]]])


def test_64_environments_of_512_steps_take_a_third_of_the_bytes_of_stable_baselines3() -> None:
    """Of Atari's size, with some 650 ends of episodes; 0.35 is the goal, and 0.25 what single frames take alone."""
    n_steps, n_envs, shape = 512, 64, (4, 84, 84)
    space = spaces.Box(0, 255, shape, np.uint8)
    stock = StockRolloutBuffer(n_steps, space, spaces.Discrete(6), "cpu", n_envs=n_envs)
    buffer = RolloutBuffer(n_steps, space, spaces.Discrete(6), "cpu", n_envs=n_envs)
    screens = Screens(0, n_envs, shape, end_rate=0.02)
    seen = {}
    for step in range(n_steps):
        row = screens.step()
        add_steps(buffer, [row])
        if step % 50 == 0:
            seen[step] = row
    assert n_bytes(buffer) <= 0.26 * n_bytes(stock)
    samples = np.array([env * n_steps + step for step in seen for env in range(n_envs)])
    served = buffer._get_samples(samples).observations
    np.testing.assert_array_equal(served, np.concatenate(list(seen.values())))


@pytest.mark.parametrize("as_library", [np.asarray, th.from_numpy])
def test_stacks_are_put_together_by_numpy_and_torch_alike(as_library: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (9, H, W), dtype=np.uint8)
    for shape in ((7, C), (2, 3, C)):
        index = rng.integers(0, 9, shape).astype(np.int32)
        together = np.asarray(stacked(as_library(frames), as_library(index)))
        np.testing.assert_array_equal(together, frames[index], strict=True)
