"""Hypothesis strategies shared by the tests: rollouts, discounts, and batches of numbers as tensors.

Owns what is drawn; must not know what is claimed about it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

# γ or λ: the ends of the range and the usual settings more often than chance would have them.
fractions = st.sampled_from([0.0, 0.8, 0.95, 0.99, 1.0]) | st.floats(0.0, 1.0, allow_subnormal=False)


class Rollout(NamedTuple):
    """The array arguments of ``compute_gae``, in its order."""

    rewards: npt.NDArray[Any]
    values: npt.NDArray[Any]
    episode_starts: npt.NDArray[Any]
    last_values: npt.NDArray[Any]
    dones: npt.NDArray[Any]

    @property
    def ends(self) -> npt.NDArray[np.bool_]:
        """[T, E], whether the step was the last of its episode."""
        return np.concatenate([self.episode_starts[1:], self.dones[None]]).astype(bool)

    @property
    def next_values(self) -> npt.NDArray[Any]:
        """[T, E], V of what follows each step, whether or not it belongs to the same episode."""
        return np.concatenate([self.values[1:], self.last_values[None]])


def one_environment(rewards: list[float], values: list[float], ends: list[int], last_value: float) -> Rollout:
    """A rollout of a single environment, written as lists.

    :param ends: 1 where the step was the last of its episode
    """
    column = np.array([rewards, values, [1, *ends[:-1]]], dtype=np.float64)[..., None]
    return Rollout(*column, np.array([last_value]), np.array([ends[-1]], dtype=bool))


@st.composite
def rollouts(draw: st.DrawFn, dtype: Any = np.float64, max_steps: int = 8, max_envs: int = 3) -> Rollout:
    """Rollouts of any shape, with episodes that end anywhere."""
    shape = draw(st.tuples(st.integers(1, max_steps), st.integers(1, max_envs)))
    numbers = st.floats(-100, 100, width=32, allow_subnormal=False)

    def array(shape: tuple[int, ...], elements: st.SearchStrategy[Any], dtype: Any) -> npt.NDArray[Any]:
        return draw(hnp.arrays(dtype, shape, elements=elements))

    return Rollout(
        rewards=array(shape, numbers, dtype),
        values=array(shape, numbers, dtype),
        episode_starts=array(shape, st.sampled_from([0.0, 1.0]), np.float32),
        last_values=array(shape[1:], numbers, dtype),
        dones=array(shape[1:], st.booleans(), np.bool_),
    )


def tensors(*shape: int, low: float = -5.0, high: float = 5.0, dtype: Any = np.float64) -> st.SearchStrategy[th.Tensor]:
    """Tensors of a given shape with elements in [low, high]."""
    numbers = st.floats(low, high, width=32, allow_subnormal=False)
    return hnp.arrays(dtype, shape, elements=numbers).map(th.from_numpy)


def whole_tensors(*shape: int, high: int) -> st.SearchStrategy[th.Tensor]:
    """Integer tensors of a given shape with elements in [0, high]."""
    return hnp.arrays(np.int64, shape, elements=st.integers(0, high)).map(th.from_numpy)
