"""Rows of the batches that ``gymnasium.vector`` hands out: nested observations and infos.

Owns how a batch is laid out; must not know when one is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def observation_of(observations: Any, i: int) -> Any:
    """One environment's observation.

    :param observations: [n_envs, ...] array, or dict or tuple of such
    :param i: which environment
    :return: a copy
    """
    if isinstance(observations, dict):
        return {key: observation_of(part, i) for key, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(observation_of(part, i) for part in observations)
    # Discrete observations are plain numbers outside a batch.
    return np.array(observations[i]) if observations.ndim > 1 else observations[i].item()


def chosen_rows(mask: NDArray[np.bool_], where_true: Any, where_false: Any) -> Any:
    """Observations taken from either of two batches.

    :param mask: [n_envs] bool
    :param where_true: batch that gives the rows where the mask is true
    :param where_false: batch of the same layout that gives the others
    :return: a new batch
    """
    if isinstance(where_false, dict):
        return {key: chosen_rows(mask, where_true[key], part) for key, part in where_false.items()}
    if isinstance(where_false, tuple):
        pairs = zip(where_true, where_false, strict=True)
        return tuple(chosen_rows(mask, first, second) for first, second in pairs)
    rows = np.array(where_false)
    rows[mask] = where_true[mask]
    return rows


def info_of(batch: dict[str, Any] | list[dict[str, Any]], i: int) -> dict[str, Any]:
    """One environment's info.

    A batch has one array (or dict of arrays) for each key, and under the key with ``_`` before it which rows count.

    :param batch: infos as a ``gymnasium.vector.VectorEnv`` returns them, or as a list with one dict for each
    :param i: which environment
    :return: the entries that count for it
    """
    if isinstance(batch, list):
        return dict(batch[i])
    info: dict[str, Any] = {}
    for key, values in batch.items():
        if key.startswith("_") and key[1:] in batch:
            continue
        counts = batch.get(f"_{key}")
        if counts is None or counts[i]:
            info[key] = _entry(values, i)
    return info


def _entry(values: Any, i: int) -> Any:
    if isinstance(values, dict):
        return info_of(values, i)
    if not isinstance(values, np.ndarray | list | tuple):
        return values
    # Numbers became array elements only for the batch's sake.
    return values[i].item() if isinstance(values[i], np.generic) else values[i]
