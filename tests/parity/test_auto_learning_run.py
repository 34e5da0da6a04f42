"""Whole learning runs of the default engine are stock's, up to rounding, once it is given the numbers that stock draws.

What the engine draws by itself is other numbers from the same distributions; see tests/unit/core/test_randomness.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.vec_env import VecNormalize

import sb3_ppo_from_scratch.assembly
from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.core.randomness import Generators, PrivateTorchRandom
from tests.parity.cases import TIME_LIMIT
from tests.parity.comparison import DEFAULTS, N_ROLLOUTS, Case, trained, trained_stock

# Rounding; the parameters of MLPs move by 0.05 and more.
TOLERANCE = 1e-5


class StocksNumbers:
    """Where a NumPy generator would be: the numbers and permutations that stock takes from the global ones.

    :param n_envs: environments side by side
    """

    def __init__(self, n_envs: int) -> None:
        self._n_envs = n_envs

    def standard_normal(self, shape: Sequence[int], dtype: type[np.float32]) -> np.ndarray:
        assert dtype is np.float32
        return th.normal(th.zeros(*shape), th.ones(*shape)).numpy()

    def standard_exponential(self, shape: Sequence[int], dtype: type[np.float32]) -> np.ndarray:
        # torch.multinomial draws one of K as the largest p_k / e_k; e is exponential.
        assert dtype is np.float32
        return th.empty(*shape).exponential_().numpy()

    def random(self, shape: Sequence[int], dtype: type[np.float32]) -> np.ndarray:
        assert dtype is np.float32
        return th.rand(*shape).numpy()

    def permutation(self, n: int) -> np.ndarray:
        # Stock counts the transitions of one environment after the other's, a packed rollout step by step.
        env, step = np.divmod(np.random.permutation(n), n // self._n_envs)
        return step * self._n_envs + env


@pytest.mark.parametrize("wrap", [None, VecNormalize])
@pytest.mark.parametrize("limit", [{}, TIME_LIMIT])
@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("action", ["box", "discrete", "multi_discrete", "multi_binary"])
def test_a_learning_run_is_stocks_with_stocks_numbers(
    action: str,
    n_envs: int,
    limit: dict[str, int | None],
    wrap: type[VecNormalize] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case({"action": action, **limit}, n_envs, settings={"ent_coef": 0.01}, wrap=wrap)
    assert_same_run(case, monkeypatch)


@pytest.mark.parametrize("n_envs", [1, 4])
def test_a_learning_run_on_images_is_stocks_with_stocks_numbers(n_envs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # With the usual rate on Atari, because convolutions carry rounding further; parameters move by 0.004 and more.
    settings = {"ent_coef": 0.01, "learning_rate": 2.5e-4}
    assert_same_run(Case({"observation": "image", **TIME_LIMIT}, n_envs, "CnnPolicy", settings), monkeypatch)


def assert_same_run(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sb3_ppo_from_scratch.assembly,
        "seeded_generators",
        lambda seed, device: Generators(StocksNumbers(case.n_envs), PrivateTorchRandom(seed, device)),
    )
    ours, stock = trained(PPO, case, engine="auto"), trained_stock(case)
    assert ours.model._n_updates == N_ROLLOUTS * DEFAULTS["n_epochs"]
    assert ours.record["policy"].keys() == stock.record["policy"].keys()
    for name, theirs in stock.record["policy"].items():
        np.testing.assert_allclose(ours.record["policy"][name], theirs, rtol=0, atol=TOLERANCE, err_msg=name)
    np.testing.assert_array_equal(ours.record["torch_generator"], stock.record["torch_generator"])
    np.testing.assert_array_equal(ours.record["numpy_generator"], stock.record["numpy_generator"])
