"""Batches of observations, which are one array or a dict of them.

Owns that distinction; must not know what an observation means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th


def rows_of(features: Any, indices: th.Tensor) -> Any:
    """Some rows of observations.

    :param features: N rows, a tensor or a dict of tensors
    :param indices: [B] int64 on the same device
    :return: B rows, a copy
    """
    if isinstance(features, dict):
        return {key: value.index_select(0, indices) for key, value in features.items()}
    return features.index_select(0, indices)


def as_tensors(observations: Any, device: th.device) -> Any:
    """NumPy observations as tensors on a device.

    :param observations: an array or tensor, or a dict of such
    :param device: where to
    :return: a tensor, or a dict of tensors
    """
    if isinstance(observations, dict):
        return {key: as_tensors(value, device) for key, value in observations.items()}
    if isinstance(observations, np.ndarray) and not observations.flags.writeable:
        observations = observations.copy()  # torch warns of memory that it must not write to
    return th.as_tensor(observations, device=device)
