"""The formulas that take NumPy arrays and torch tensors alike give the same numbers for both, each in its own kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as th

from sb3_ppo_from_scratch.core import diagnostics, losses, value_losses
from sb3_ppo_from_scratch.core.records import AdvantageStatistics


@pytest.mark.parametrize("n_samples", [1, 64])
@pytest.mark.parametrize(
    "function, n_arrays, numbers",
    [
        (losses.normalized_advantages, 1, ()),
        (losses.clipped_surrogate_loss, 2, (0.2,)),
        (losses.clipped_surrogate_slope, 2, (0.2,)),
        (losses.standardized_advantages, 1, (AdvantageStatistics(0.5, 2.0),)),
        (losses.surrogate_loss, 2, ()),
        (losses.kl_penalised_surrogate_slope, 2, (3.0,)),
        *(
            (function, 3, (clip_range_vf, criterion))
            for function in (
                value_losses.value_loss,
                value_losses.value_loss_slope,
                value_losses.larger_value_loss,
                value_losses.larger_value_loss_slope,
            )
            for clip_range_vf in (None, 0.5)
            for criterion in (
                value_losses.MEAN_SQUARED_ERROR,
                value_losses.HALF_MEAN_SQUARED_ERROR,
                value_losses.MEAN_HUBER,
            )
        ),
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
