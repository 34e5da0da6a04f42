"""How a finished rollout is cut into minibatches: order, slices and row look-up.

Owns index arithmetic on [T, E] storage; never copies or changes what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


def minibatch_slices(n_samples: int, batch_size: int, min_batch_size: int = 1) -> Iterator[slice]:
    """Consecutive slices of ``batch_size`` samples; the ragged last one is kept, as SB3 keeps it.

    :param n_samples: samples to cut up, ≥ 1
    :param batch_size: samples per slice, ≥ 1
    :param min_batch_size: a last slice shorter than this joins the one before it (1 never joins)
    :return: slices that cover [0, n_samples) once, in order
    :raises ValueError: if ``batch_size`` < 1
    """
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} must be at least 1.")
    start = 0
    while start < n_samples:
        stop = min(start + batch_size, n_samples)
        if n_samples - stop < min_batch_size:
            stop = n_samples
        yield slice(start, stop)
        start = stop


def rows(array: npt.NDArray[Any], indices: IntArray) -> npt.NDArray[Any]:
    """Rows of a [T, E, ...] array by their environment-major number, without reordering the array.

    Environment-major: sample i is step i mod T of environment i div T, the numbering of SB3's ``swap_and_flatten``.

    :param array: [T, E, ...]
    :param indices: [B], in [0, T·E)
    :return: [B, ...], a copy
    """
    horizon = len(array)
    return array[indices % horizon, indices // horizon]


def environment_major(array: npt.NDArray[Any], n_steps: int, n_envs: int) -> npt.NDArray[Any]:
    """A [T, E] column of scalars as [T·E], one environment after the other.

    Arrays that another buffer class has already flattened come back in the order that they have.

    :param array: [T, E], or T·E values in any other shape
    :param n_steps: T
    :param n_envs: E
    :return: [T·E], a copy
    """
    if array.shape == (n_steps, n_envs):
        array = array.swapaxes(0, 1)
    return array.flatten()
