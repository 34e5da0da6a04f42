"""Claims about ``compute_gae`` and ``n_step_advantages``: worked numbers first, then properties."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch as th
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer

from sb3_ppo_from_scratch.core.advantages import compute_gae, n_step_advantages
from tests.strategies import Rollout, fractions, one_environment, rollouts

# Three steps, one reward at the end. The last value belongs to the next episode, and must not be used.
ANNOTATED = one_environment([0, 0, 1], [0.5, 0.6, 0.8], ends=[0, 0, 1], last_value=99.0)
# Four steps with an episode's end in the middle, cut by the end of the rollout.
EXERCISE = one_environment([1, 1, 1, 1], [0.5] * 4, ends=[0, 1, 0, 0], last_value=2.0)


@pytest.mark.parametrize(
    "gae_lambda, expected",
    [
        pytest.param(0.0, [0.04, 0.12, 0.20], id="TD errors"),
        pytest.param(0.8, [0.23008, 0.264, 0.20], id="mixture"),
        pytest.param(1.0, [0.31, 0.30, 0.20], id="Monte Carlo"),
    ],
)
def test_annotated_episode_has_the_advantages_worked_out_by_hand(gae_lambda: float, expected: list[float]) -> None:
    advantages, returns = compute_gae(*ANNOTATED, gamma=0.9, gae_lambda=gae_lambda)
    assert advantages[:, 0] == pytest.approx(expected, abs=1e-12)
    assert returns[:, 0] == pytest.approx(np.add(expected, [0.5, 0.6, 0.8]), abs=1e-12)


def test_annotated_return_at_lambda_one_is_the_discounted_reward() -> None:
    _, returns = compute_gae(*ANNOTATED, gamma=0.9, gae_lambda=1.0)
    assert returns[:, 0] == pytest.approx([0.81, 0.9, 1.0], abs=1e-12)


@pytest.mark.parametrize("n_steps, expected", [(1, 0.04), (2, 0.148), (3, 0.31), (50, 0.31)])
def test_annotated_episode_has_the_n_step_advantages_worked_out_by_hand(n_steps: int, expected: float) -> None:
    assert n_step_advantages(*ANNOTATED, gamma=0.9, n_steps=n_steps)[0, 0] == pytest.approx(expected, abs=1e-12)


def test_exercise_resets_at_the_done_and_bootstraps_at_the_cut() -> None:
    advantages, returns = compute_gae(*EXERCISE, gamma=0.5, gae_lambda=0.5)
    # Every intermediate number is a binary fraction, so that nothing is rounded.
    assert advantages[:, 0].tolist() == [0.875, 0.5, 1.125, 1.5]
    assert returns[:, 0].tolist() == [1.375, 1.0, 1.625, 2.0]


def test_exercise_at_lambda_zero_is_its_td_errors() -> None:
    advantages, _ = compute_gae(*EXERCISE, gamma=0.5, gae_lambda=0.0)
    assert advantages[:, 0].tolist() == [0.75, 0.5, 0.75, 1.5]


def td_errors(rollout: Rollout, gamma: float) -> npt.NDArray[Any]:
    return rollout.rewards + gamma * rollout.next_values * ~rollout.ends - rollout.values


def steps_left(rollout: Rollout) -> npt.NDArray[np.int64]:
    """[T, E], the steps from each one to the end of its episode or of the rollout, itself included."""
    horizon, n_envs = rollout.ends.shape
    left = np.ones((horizon, n_envs), dtype=np.int64)
    for step in reversed(range(horizon - 1)):
        left[step] += ~rollout.ends[step] * left[step + 1]
    return left


def summed_gae(rollout: Rollout, gamma: float, gae_lambda: float) -> npt.NDArray[np.float64]:
    """The definition, Σ_l (γλ)^l δ_{t+l}, as two plain loops in double precision."""
    doubled = Rollout(*(array.astype(np.float64) for array in rollout))
    deltas, left = td_errors(doubled, gamma), steps_left(rollout)
    total = np.zeros_like(deltas)
    for step, env in np.ndindex(*deltas.shape):
        total[step, env] = sum(
            (gamma * gae_lambda) ** later * deltas[step + later, env] for later in range(left[step, env])
        )
    return total


@given(rollouts(), fractions, fractions)
def test_gae_is_the_discounted_sum_of_td_errors(rollout: Rollout, gamma: float, gae_lambda: float) -> None:
    advantages, returns = compute_gae(*rollout, gamma, gae_lambda)
    np.testing.assert_allclose(advantages, summed_gae(rollout, gamma, gae_lambda), rtol=1e-10, atol=1e-9)
    np.testing.assert_array_equal(returns, advantages + rollout.values)


@given(rollouts(dtype=np.float32), fractions, fractions)
def test_gae_in_single_precision_stays_single_and_close(rollout: Rollout, gamma: float, gae_lambda: float) -> None:
    advantages, returns = compute_gae(*rollout, gamma, gae_lambda)
    assert advantages.dtype == returns.dtype == np.float32
    np.testing.assert_allclose(advantages, summed_gae(rollout, gamma, gae_lambda), rtol=1e-5, atol=1e-3)


@given(rollouts(), fractions)
def test_lambda_zero_is_the_td_error(rollout: Rollout, gamma: float) -> None:
    advantages, _ = compute_gae(*rollout, gamma, gae_lambda=0.0)
    np.testing.assert_allclose(advantages, td_errors(rollout, gamma), rtol=1e-12, atol=1e-12)


@given(rollouts(), fractions)
def test_lambda_one_is_monte_carlo_minus_the_baseline(rollout: Rollout, gamma: float) -> None:
    _, returns = compute_gae(*rollout, gamma, gae_lambda=1.0)
    following = rollout.last_values
    for step in reversed(range(len(returns))):
        # Rewards only, but for the value where the rollout cuts an episode: no TD error in sight.
        following = rollout.rewards[step] + gamma * np.where(rollout.ends[step], 0.0, following)
        np.testing.assert_allclose(returns[step], following, rtol=1e-10, atol=1e-9)


@given(rollouts(), fractions, fractions)
def test_gae_is_the_lambda_mixture_of_n_step_advantages(rollout: Rollout, gamma: float, gae_lambda: float) -> None:
    advantages, _ = compute_gae(*rollout, gamma, gae_lambda)
    left = steps_left(rollout)
    mixture = np.zeros_like(advantages)
    for n_steps in range(1, len(advantages) + 1):
        # The longest estimate that fits takes the weight of all the longer ones that do not.
        weight = np.where(n_steps < left, 1.0 - gae_lambda, n_steps == left) * gae_lambda ** (n_steps - 1)
        mixture += weight * n_step_advantages(*rollout, gamma, n_steps)
    np.testing.assert_allclose(advantages, mixture, rtol=1e-10, atol=1e-9)


@given(rollouts(), fractions)
def test_one_step_is_the_td_error_and_more_steps_than_are_left_change_nothing(rollout: Rollout, gamma: float) -> None:
    one = n_step_advantages(*rollout, gamma, n_steps=1)
    np.testing.assert_allclose(one, td_errors(rollout, gamma), rtol=1e-12, atol=1e-12)
    horizon = len(rollout.rewards)
    longest = n_step_advantages(*rollout, gamma, n_steps=horizon)
    np.testing.assert_array_equal(longest, n_step_advantages(*rollout, gamma, n_steps=horizon + 7))


@given(rollouts(), st.data(), fractions, fractions)
def test_two_episodes_in_one_column_equal_two_separate_computations(
    drawn: Rollout, data: st.DataObject, gamma: float, gae_lambda: float
) -> None:
    split = data.draw(st.integers(0, len(drawn.rewards) - 1))
    whole = drawn._replace(episode_starts=drawn.episode_starts.copy())
    whole.episode_starts[split] = 1.0
    after = Rollout(*(a[split:] for a in whole[:3]), whole.last_values, whole.dones)
    # The value that follows an ended episode is another's, so that any number must do.
    before = Rollout(*(a[:split] for a in whole[:3]), whole.last_values + 1e6, np.ones_like(whole.dones))
    parts = [compute_gae(*part, gamma, gae_lambda)[0] for part in (before, after)]
    np.testing.assert_array_equal(compute_gae(*whole, gamma, gae_lambda)[0], np.concatenate(parts))


@given(rollouts(), fractions, fractions)
def test_environments_are_independent_columns(rollout: Rollout, gamma: float, gae_lambda: float) -> None:
    together, _ = compute_gae(*rollout, gamma, gae_lambda)
    for env in range(together.shape[1]):
        alone, _ = compute_gae(*(array[..., env : env + 1] for array in rollout), gamma, gae_lambda)
        np.testing.assert_array_equal(alone[:, 0], together[:, env])


@given(rollouts(dtype=np.float32, max_steps=16), fractions, fractions)
def test_gae_equals_stable_baselines3_bit_for_bit(rollout: Rollout, gamma: float, gae_lambda: float) -> None:
    horizon, n_envs = rollout.rewards.shape
    space = spaces.Discrete(2)
    stock = StockRolloutBuffer(horizon, space, space, "cpu", gae_lambda=gae_lambda, gamma=gamma, n_envs=n_envs)
    stock.rewards, stock.values, stock.episode_starts = rollout[:3]
    stock.compute_returns_and_advantage(th.from_numpy(rollout.last_values), rollout.dones)
    advantages, returns = compute_gae(*rollout, gamma, gae_lambda)
    np.testing.assert_array_equal(advantages, stock.advantages, strict=True)
    np.testing.assert_array_equal(returns, stock.returns, strict=True)


@given(rollouts(), fractions, fractions)
def test_inputs_are_left_alone(rollout: Rollout, gamma: float, gae_lambda: float) -> None:
    copies = [array.copy() for array in rollout]
    compute_gae(*rollout, gamma, gae_lambda)
    n_step_advantages(*rollout, gamma, n_steps=2)
    for array, copy in zip(rollout, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


WRONG_SHAPES = [
    ("rewards", (4,)),
    ("rewards", (4, 2, 1)),
    ("values", (4, 1)),
    ("values", (2, 4)),
    ("episode_starts", (1, 2)),
    ("episode_starts", (3, 2)),
    ("last_values", (1,)),
    ("last_values", (2, 1)),
    ("dones", (1, 2)),
    ("dones", ()),
]


@pytest.mark.parametrize("estimator", [compute_gae, n_step_advantages])
@pytest.mark.parametrize("name, shape", WRONG_SHAPES)
def test_a_wrong_shape_is_named_and_never_broadcast(estimator: Any, name: str, shape: tuple[int, ...]) -> None:
    matrix, vector = np.zeros((4, 2)), np.zeros(2)
    arguments = Rollout(matrix, matrix, matrix, vector, vector)._replace(**{name: np.zeros(shape)})
    last = {"gae_lambda": 1.0} if estimator is compute_gae else {"n_steps": 1}
    with pytest.raises(ValueError, match=re.escape(f"{name} has shape {shape}")):
        estimator(*arguments, gamma=1.0, **last)


@pytest.mark.parametrize("n_steps", [0, -3])
def test_fewer_than_one_step_is_refused(n_steps: int) -> None:
    with pytest.raises(ValueError, match=f"n_steps={n_steps} must be at least 1"):
        n_step_advantages(*ANNOTATED, gamma=1.0, n_steps=n_steps)
