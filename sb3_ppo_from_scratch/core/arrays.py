"""The few names under which NumPy and torch offer the same function, so that a formula is written once.

Owns that choice; must not contain formulas.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch as th
from torch.nn import functional

Array: TypeAlias = Any  # np.ndarray or th.Tensor, never mixed within one call


def namespace(array: Array) -> Any:
    """The module whose functions take this array.

    :param array: a NumPy array or a torch tensor
    :return: ``numpy`` or ``torch``
    """
    return th if isinstance(array, th.Tensor) else np


def stacked(frames: Array, index: Array) -> Array:
    """Put stacks of images together from their frames.

    :param frames: [P, H, W]
    :param index: [..., C] whole numbers in [0, P), on the same device
    :return: [..., C, H, W], a copy
    """
    if isinstance(frames, th.Tensor):
        return frames.index_select(0, index.flatten()).view(*index.shape, *frames.shape[1:])
    return frames.take(index, axis=0)


def by_column(array: Array) -> Array:
    """The columns of a matrix as rows. NumPy sums the few entries of a row one by one, but whole rows in one sweep.

    :param array: [B, K]
    :return: [K, B], a copy in NumPy, a view in torch, which gains nothing from one
    """
    return array.T if isinstance(array, th.Tensor) else array.T.copy()


def largest(array: Array) -> Array:
    """The maximum along the first axis.

    :param array: [K, B]
    :return: [B]
    """
    return array.amax(0) if isinstance(array, th.Tensor) else np.maximum.reduce(array)


def onehot(indices: Array, like: Array) -> Array:
    """1 in each column at its index, 0 elsewhere.

    :param indices: [B] whole numbers of any dtype, in [0, K)
    :param like: [K, B], gives the shape, dtype and device
    :return: [K, B]
    """
    if isinstance(like, th.Tensor):
        return th.zeros_like(like).scatter_(0, indices.long()[None], 1.0)
    choices = np.arange(len(like), dtype=like.dtype)
    return (indices == choices[:, None]).astype(like.dtype)


def mean(array: Array) -> Array:
    """Mean of all entries. NumPy's own spends more time on its arguments than on a minibatch.

    :param array: [N]
    :return: scalar
    """
    return array.mean() if isinstance(array, th.Tensor) else np.add.reduce(array) / np.float32(len(array))


def share(mask: Array) -> Array:
    """Share of the entries that are true.

    :param mask: [N] bool
    :return: scalar in [0, 1]
    """
    return (mask * 1.0).mean() if isinstance(mask, th.Tensor) else np.float32(np.count_nonzero(mask) / len(mask))


def unbiased_std(array: Array, centred: Array) -> Array:
    """Standard deviation with N − 1 in the denominator.

    :param array: [N], N ≥ 2
    :param centred: [N], the array less its mean
    :return: scalar
    """
    if isinstance(array, th.Tensor):
        return array.std()
    return np.sqrt(centred @ centred / np.float32(len(array) - 1))


def clip(array: Array, low: Array | float, high: Array | float) -> Array:
    """Every entry moved into [low, high].

    :param array: of any shape
    :param low: broadcastable to it
    :param high: likewise, ≥ low
    :return: the same shape
    """
    return th.clip(array, low, high) if isinstance(array, th.Tensor) else np.minimum(np.maximum(array, low), high)


def mean_squared_error(array: Array, other: Array) -> Array:
    """Mean of the squared differences.

    :param array: [N]
    :param other: [N]
    :return: scalar
    """
    if isinstance(array, th.Tensor):
        return functional.mse_loss(array, other)
    difference = array - other
    return difference @ difference / np.float32(len(difference))
