"""Claims about index arithmetic: slices cover everything once, and sample numbers run through one environment first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer

from sb3_ppo_from_scratch.rollout.minibatches import environment_major, minibatch_slices, rows

sizes = st.integers(1, 40)


@given(sizes, sizes, sizes)
def test_slices_cover_every_sample_once_and_in_order(n_samples: int, batch_size: int, min_batch_size: int) -> None:
    covered = [i for part in minibatch_slices(n_samples, batch_size, min_batch_size) for i in range(n_samples)[part]]
    assert covered == list(range(n_samples))


@given(sizes, sizes)
def test_by_default_only_the_last_slice_is_shorter_as_in_stable_baselines3(n_samples: int, batch_size: int) -> None:
    lengths = [part.stop - part.start for part in minibatch_slices(n_samples, batch_size)]
    n_whole, n_left = divmod(n_samples, batch_size)
    assert lengths == [batch_size] * n_whole + [n_left] * (n_left > 0)


@given(sizes, sizes, sizes)
def test_a_short_last_slice_joins_the_one_before_it(n_samples: int, batch_size: int, min_batch_size: int) -> None:
    lengths = [part.stop - part.start for part in minibatch_slices(n_samples, batch_size, min_batch_size)]
    assert set(lengths[:-1]) <= {batch_size}
    # Nothing can be joined where everything fits into one slice.
    assert lengths[-1] >= min_batch_size or len(lengths) == 1
    assert lengths[-1] < batch_size + min_batch_size


@pytest.mark.parametrize(
    "n_samples, batch_size, min_batch_size, lengths",
    [
        (9, 4, 1, [4, 4, 1]),
        (9, 4, 2, [4, 5]),
        (10, 4, 2, [4, 4, 2]),
        (10, 4, 3, [4, 6]),
        (8, 4, 2, [4, 4]),
        (1, 4, 2, [1]),
        (3, 1, 2, [1, 2]),
    ],
)
def test_slices_of_plain_cases(n_samples: int, batch_size: int, min_batch_size: int, lengths: list[int]) -> None:
    slices = minibatch_slices(n_samples, batch_size, min_batch_size)
    assert [part.stop - part.start for part in slices] == lengths


def numbered(horizon: int, n_envs: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """[T, E] whose elements say where they are: 100 × step + environment."""
    return 100 * np.arange(horizon)[:, None] + np.arange(n_envs)


def test_sample_numbers_run_through_one_environment_before_the_next() -> None:
    assert rows(numbered(3, 2), np.arange(6)).tolist() == [0, 100, 200, 1, 101, 201]
    assert rows(numbered(3, 2), np.array([5, 0, 3])).tolist() == [201, 0, 1]


@given(sizes, sizes, st.sampled_from([(), (1,), (2, 3)]), st.integers(0, 2**32 - 1))
def test_rows_are_those_of_stable_baselines3s_flattened_array(
    horizon: int, n_envs: int, shape: tuple[int, ...], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 1000, (horizon, n_envs, *shape))
    indices = rng.permutation(horizon * n_envs)
    flattened = StockRolloutBuffer.swap_and_flatten(array).reshape(-1, *shape)
    np.testing.assert_array_equal(rows(array, indices), flattened[indices], strict=True)


def test_rows_are_a_copy() -> None:
    array = numbered(3, 2)
    rows(array, np.arange(6))[:] = -1
    np.testing.assert_array_equal(array, numbered(3, 2))


@given(sizes, sizes)
def test_environment_major_columns_are_numbered_like_rows(horizon: int, n_envs: int) -> None:
    column = environment_major(numbered(horizon, n_envs), horizon, n_envs)
    np.testing.assert_array_equal(column, rows(numbered(horizon, n_envs), np.arange(horizon * n_envs)), strict=True)


def test_a_column_that_is_flat_already_keeps_its_order() -> None:
    """SB3's own buffer flattens its arrays in place, to [T·E, 1]."""
    flat = StockRolloutBuffer.swap_and_flatten(numbered(3, 2))
    assert environment_major(flat, 3, 2).tolist() == [0, 100, 200, 1, 101, 201]


@pytest.mark.parametrize("array", [numbered(3, 2), numbered(6, 1), StockRolloutBuffer.swap_and_flatten(numbered(3, 2))])
def test_environment_major_is_a_copy(array: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
    before = array.copy()
    environment_major(array, 3, 2)[:] = -1
    np.testing.assert_array_equal(array, before)
