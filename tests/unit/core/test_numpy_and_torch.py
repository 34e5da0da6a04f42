"""The formulas that take NumPy arrays and torch tensors alike give the same numbers for both, each in its own kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as th

from sb3_ppo_from_scratch.core import diagnostics, losses


@pytest.mark.parametrize("n_samples", [1, 64])
@pytest.mark.parametrize(
    "function, n_arrays, numbers",
    [
        (losses.normalized_advantages, 1, ()),
        (losses.clipped_surrogate_loss, 2, (0.2,)),
        (losses.clipped_surrogate_slope, 2, (0.2,)),
        (losses.value_loss, 3, (None,)),
        (losses.value_loss, 3, (0.5,)),
        (losses.value_loss_slope, 3, (None,)),
        (losses.value_loss_slope, 3, (0.5,)),
        (diagnostics.approx_kl, 1, ()),
        (diagnostics.approx_kl_k1, 1, ()),
        (diagnostics.clip_fraction, 1, (0.2,)),
    ],
)
def test_both_libraries_agree(
    function: Callable[..., Any], n_arrays: int, numbers: tuple[float | None, ...], n_samples: int
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.2, 2.0, n_samples) * rng.choice([-1, 1]) for _ in range(n_arrays)]
    copies = [array.copy() for array in arrays]
    from_numpy = function(*arrays, *numbers)
    from_torch = function(*map(th.from_numpy, arrays), *numbers)
    assert isinstance(from_numpy, (np.ndarray, np.floating))
    assert isinstance(from_torch, th.Tensor)
    np.testing.assert_allclose(from_numpy, from_torch.numpy(), rtol=1e-12, atol=1e-15)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
