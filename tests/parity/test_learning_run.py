"""Three rollouts and updates of the reference engine equal those of Stable-Baselines3 to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sb3_ppo_from_scratch import RolloutBuffer
from tests.parity.cases import CASES, TIME_LIMIT
from tests.parity.comparison import DEFAULTS, N_ROLLOUTS, Case, Run, differences, trained_ours, trained_stock


@pytest.mark.parametrize("case", CASES)
def test_a_learning_run_equals_stock_bit_for_bit(case: Case) -> None:
    ours = trained_ours(case)
    assert ours.model._n_updates == N_ROLLOUTS * DEFAULTS["n_epochs"]
    assert differences(ours, trained_stock(case)) == []


@pytest.mark.parametrize(
    "policy_kwargs, sde_sample_freq",
    [
        pytest.param({}, -1, id="once_a_rollout"),
        pytest.param({}, 4, id="every_four_steps"),
        pytest.param({"squash_output": True}, -1, id="squashed"),
        pytest.param({"squash_output": True}, 4, id="squashed_every_four_steps"),
        pytest.param({"use_expln": True, "full_std": False, "log_std_init": -1.0}, -1, id="expln"),
    ],
)
@pytest.mark.parametrize("n_envs", [1, 4])
def test_state_dependent_exploration_equals_stock(
    policy_kwargs: dict[str, Any], sde_sample_freq: int, n_envs: int
) -> None:
    settings = {
        "use_sde": True,
        "sde_sample_freq": sde_sample_freq,
        "policy_kwargs": policy_kwargs,
        "ent_coef": 0.01,
    }
    case = Case({"action": "uneven_box"}, n_envs, settings=settings)
    ours = trained_ours(case)
    assert ours.model.policy.squash_output is policy_kwargs.get("squash_output", False)
    assert differences(ours, trained_stock(case)) == []


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("target_kl", [1e-3, 0.01])
def test_an_early_stop_comes_where_stock_stops(target_kl: float, n_envs: int) -> None:
    case = Case(n_envs=n_envs, settings={"target_kl": target_kl, "n_epochs": 4})
    ours = trained_ours(case)
    assert ours.model._n_updates < N_ROLLOUTS * 4
    assert differences(ours, trained_stock(case)) == []


def test_a_target_kl_out_of_reach_stops_neither() -> None:
    case = Case(n_envs=4, settings={"target_kl": 50.0})
    ours = trained_ours(case)
    assert ours.model._n_updates == N_ROLLOUTS * DEFAULTS["n_epochs"]
    assert differences(ours, trained_stock(case)) == []


@pytest.mark.parametrize("action", ["discrete", "box"])
@pytest.mark.parametrize("n_envs", [1, 4])
def test_truncation_inside_the_rollout_bootstraps_as_stock(n_envs: int, action: str) -> None:
    case = Case({"action": action, **TIME_LIMIT}, n_envs)
    ours = trained_ours(case)
    # 48 steps, the last 16 of which meet the limit of 5 at steps 35, 40 and 45.
    assert np.count_nonzero(ours.model.rollout_buffer.bootstraps) == 3 * n_envs
    assert differences(ours, trained_stock(case)) == []


def test_termination_at_the_time_limit_itself_is_a_termination() -> None:
    case = Case({"episode_length": 5, "time_limit": 5}, 4)
    ours = trained_ours(case)
    assert not ours.model.rollout_buffer.bootstraps.any()
    assert differences(ours, trained_stock(case)) == []


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case({"action": "box", **TIME_LIMIT}), id="one_environment"),
        pytest.param(Case({"observation": "dict_of_vectors"}, 4, "MultiInputPolicy"), id="dict"),
        pytest.param(Case(TIME_LIMIT, 4), id="four_environments"),
    ],
)
def test_our_buffer_inside_stock_changes_no_bit_of_the_model(case: Case) -> None:
    stock_with_ours = trained_stock(case, rollout_buffer_class=RolloutBuffer)
    stock = trained_stock(case)
    assert isinstance(stock_with_ours.model.rollout_buffer, RolloutBuffer)
    # Stock sums this one in the order that the arrays have, and ours are not flattened behind its back.
    in_any_order = explained_variances(stock_with_ours), explained_variances(stock)
    assert in_any_order[0] == pytest.approx(in_any_order[1], rel=1e-5)
    assert [entry for entry in differences(stock_with_ours, stock) if "explained_variance" not in entry] == []


def explained_variances(run: Run) -> list[float]:
    logged = [values.get("train/explained_variance") for _, values in run.record["log"]]
    assert logged[0] is None
    return [float(value) for value in logged[1:]]
