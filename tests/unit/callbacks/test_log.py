"""Claims about the log: every quantity is there, no update is lost, and the logger is left as it was found."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.callbacks.budget import TimeBudget
from sb3_ppo_from_scratch.core.health import RolloutStatistics
from tests.unit.callbacks.scenes import Rows, scene, vigilant, watched

STATISTICS = [name for name in RolloutStatistics._fields if name != "is_finite"]
MEASURED = [
    *("ratio_mean", "ratio_deviation", "entropy", "entropy_share", "clip_factor", "effective_learning_rate"),
    *("actor_grad_norm", "critic_grad_norm", "joint_grad_norm"),
]
OF_THE_UPDATE = ["approx_kl", "approx_kl_k1"]


def run(n_rollouts: int, algorithm: Any = PPO, **settings: Any) -> pd.DataFrame:
    log, env = Rows(), scene()
    if algorithm is stable_baselines3.A2C:
        model = stable_baselines3.A2C("MlpPolicy", env, n_steps=16, seed=0, device="cpu")
        log.attach(model)
        model.learn(n_rollouts * 32, callback=vigilant(), log_interval=1)
    else:
        watched(env, n_rollouts, vigilant(), log.attach, algorithm=algorithm, **settings)
    return pd.DataFrame(log.rows).rename(columns=lambda name: name.removeprefix("diagnostics/"))


@pytest.mark.parametrize("algorithm", [PPO, stable_baselines3.PPO, stable_baselines3.A2C])
def test_every_quantity_is_logged_for_every_rollout_and_every_update(algorithm: Any) -> None:
    rows = run(3, algorithm)
    assert len(rows) == 4  # the last one holds what only became known after the last update
    assert rows[:3][[*STATISTICS, "episode_length", *MEASURED]].notna().all(axis=None)
    assert rows[1:][OF_THE_UPDATE].notna().all(axis=None)
    assert rows.loc[0, OF_THE_UPDATE].isna().all()


class Masked(ActorCriticPolicy):
    """Needs to know more than a rollout tells anybody."""

    def evaluate_actions(self, obs: Any, actions: th.Tensor, action_masks: Any = None) -> Any:
        return super().evaluate_actions(obs, actions)


def test_a_policy_that_needs_more_than_observations_and_actions_is_not_measured() -> None:
    rows = run(3, policy=Masked)
    assert rows[:3][STATISTICS].notna().all(axis=None)
    assert rows[1:]["clip_fraction"].notna().all()
    assert not {"ratio_mean", "actor_grad_norm"} & set(rows)


def test_the_effective_learning_rate_is_the_one_that_the_divergence_has_set() -> None:
    rows = run(4, desired_kl=10.0)[1:4]
    expected = rows["clip_factor"] * 3e-4 * 1.5 ** pd.Series([1, 2, 3], index=rows.index)
    assert rows["effective_learning_rate"].tolist() == pytest.approx(expected.tolist())


def test_the_update_is_described_as_the_algorithm_does() -> None:
    rows = run(3)[1:]
    for name in ("approx_kl", "approx_kl_k1", "clip_fraction"):
        assert rows[name].tolist() == rows[f"train/{name}"].tolist()


def test_what_stock_ppo_does_not_log_is_measured() -> None:
    rows = run(3, stable_baselines3.PPO)[1:]
    assert rows["approx_kl"].tolist() == rows["train/approx_kl"].tolist()
    assert (rows["approx_kl_k1"] != 0).all()


def test_nothing_is_lost_where_rows_are_dumped_after_the_update() -> None:
    rows = run(3, log_after_train=True)
    assert rows["approx_kl"].dropna().tolist() == rows["train/approx_kl"].dropna().tolist()
    assert rows["approx_kl"].count() == 3


def test_a_run_that_dumps_nothing_still_dumps_nothing() -> None:
    model = PPO("MlpPolicy", scene(), n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    log = Rows()
    log.attach(model)
    model.learn(64, callback=vigilant(), log_interval=None)
    assert log.rows == []
    assert not math.isnan(model.logger.name_to_value["diagnostics/approx_kl"])


def test_the_logger_keeps_no_trace_of_the_callback() -> None:
    log = Rows()
    model, _ = watched(scene(), 2, change=log.attach)
    assert model.logger.output_formats == [log]


def test_a_run_with_the_callback_can_be_saved_in_the_middle(tmp_path: Path) -> None:
    callback = vigilant()
    model, _ = watched(scene(), 2, callback)
    model.save(tmp_path / "model.zip")
    loaded = PPO.load(tmp_path / "model.zip", env=scene())
    loaded.learn(64, callback=callback)


def test_measurements_stay_within_their_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes 1 second; a budget of a tenth affords one in ten seconds, the first one at once."""
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    budget, measured_at = TimeBudget(0.1), []
    budget.start()
    for second in range(40):
        clock[0] = max(clock[0], float(second))
        if budget.affords():
            measured_at.append(clock[0])
            with budget.spending():
                clock[0] += 1.0
    assert measured_at == [0.0, 20.0, 30.0]
