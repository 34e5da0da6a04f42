"""Claims about the log: the keys beyond SB3's, and that the last update can be among the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.logger import Logger, configure

from tests.environments import HiddenStateEnv
from tests.faults.models import Assign, logged, tiny_model
from tests.parity.comparison import BEYOND_SB3, LogRecorder
from tests.unit.engine_models import model_of, rolled_out

ENGINES: dict[str, dict[str, Any]] = {
    "numpy": {"engine": "auto"},
    "torch": {"engine": "auto", "policy_kwargs": {"net_arch": [8], "activation_fn": th.nn.SiLU}},
    "reference": {"engine": "reference"},
}
every_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)


class FullRecorder(LogRecorder):
    """Keeps every key."""

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        self.dumps.append((step, dict(key_values)))


def recorded(model: Any, total_timesteps: int, **arguments: Any) -> list[tuple[int, dict[str, Any]]]:
    recorder = FullRecorder()
    model.set_logger(Logger(None, [recorder]))
    model.learn(total_timesteps, **arguments)
    return recorder.dumps


def updated_keys(dump: dict[str, Any]) -> set[str]:
    return {key for key in dump if key.startswith("train/")}


@every_engine
def test_by_default_two_keys_are_logged_beside_those_of_sb3(engine: dict[str, Any]) -> None:
    settings = {"n_epochs": 2, "clip_range_vf": 0.2}
    ours = recorded(tiny_model(HiddenStateEnv(), **settings, **engine), 32)
    stock = recorded(tiny_model(HiddenStateEnv(), stable_baselines3.PPO, **settings), 32)
    assert updated_keys(ours[-1][1]) - updated_keys(stock[-1][1]) == set(BEYOND_SB3)
    assert updated_keys(stock[-1][1]) <= updated_keys(ours[-1][1])


@every_engine
@pytest.mark.parametrize("max_grad_norm", [0.01, 100.0])
def test_the_gradient_norm_is_the_joint_one_before_clipping(engine: dict[str, Any], max_grad_norm: float) -> None:
    """One rollout, one minibatch, and plain gradient descent at rate 1: the step is the clipped gradient."""
    policy_kwargs = {"net_arch": [8], **engine.get("policy_kwargs", {}), "optimizer_class": th.optim.SGD}
    settings = {**engine, "policy_kwargs": policy_kwargs, "learning_rate": 1.0, "max_grad_norm": max_grad_norm}
    model = tiny_model(HiddenStateEnv(), **settings)
    before = th.nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()
    model.learn(16)
    step = float((th.nn.utils.parameters_to_vector(model.policy.parameters()).detach() - before).norm())
    norm = logged(model, "grad_norm")
    assert norm > 0.1
    assert step == pytest.approx(min(norm, max_grad_norm), rel=1e-4)


@every_engine
def test_k1_is_the_mean_of_minus_log_r(engine: dict[str, Any]) -> None:
    model = model_of(**engine)
    (minibatch,) = rolled_out(model)
    with th.no_grad():
        model.policy.action_net.bias += th.tensor([0.3, 0.0, -0.2])
        _, log_prob, _ = model.policy.evaluate_actions(minibatch.observations, minibatch.actions.long().flatten())
    model.train()  # one epoch of one minibatch: the ratios are those before its step
    expected = float((minibatch.old_log_prob - log_prob).mean())
    assert abs(expected) > 1e-3
    assert logged(model, "approx_kl_k1") == pytest.approx(expected, rel=1e-4)


@every_engine
def test_each_epoch_is_logged_on_request(engine: dict[str, Any]) -> None:
    model = model_of(n_epochs=3, batch_size=8, learning_rate=3e-2, clip_range=0.05, log_epochs=True, **engine)
    model.learn(32)
    by_epoch = {
        name: [logged(model, f"{name}_epoch_{epoch}") for epoch in range(3)] for name in ("approx_kl", "clip_fraction")
    }
    assert by_epoch["approx_kl"][-1] == logged(model, "approx_kl")
    assert np.mean(by_epoch["clip_fraction"]) == pytest.approx(logged(model, "clip_fraction"))
    assert by_epoch["approx_kl"][0] < by_epoch["approx_kl"][-1]
    assert "train/approx_kl_epoch_3" not in model.logger.name_to_value


def test_epochs_that_target_kl_cut_off_are_not_logged() -> None:
    model = model_of(n_epochs=5, learning_rate=3e-2, target_kl=1e-3, log_epochs=True).learn(64)
    epochs = [key for key in model.logger.name_to_value if key.startswith("train/approx_kl_epoch_")]
    assert 1 <= len(epochs) < 5


def test_a_row_has_the_epochs_of_one_update() -> None:
    """Five epochs, then an update that is stopped before; in between no row is dumped."""
    model = model_of(n_epochs=5, learning_rate=3e-2, log_epochs=True).learn(32, log_interval=None)
    assert "train/approx_kl_epoch_4" in model.logger.name_to_value
    model.target_kl = 1e-3
    model.learn(32, log_interval=None, reset_num_timesteps=False)
    epochs = [key for key in model.logger.name_to_value if key.startswith("train/approx_kl_epoch_")]
    assert len(epochs) == model._n_updates - 5 < 5


@pytest.mark.parametrize("log_interval", [1, 2, 4])
def test_rows_that_are_written_after_the_update_have_the_last_one(log_interval: int) -> None:
    before = recorded(tiny_model(HiddenStateEnv()), 48, log_interval=log_interval)
    after = recorded(tiny_model(HiddenStateEnv(), log_after_train=True), 48, log_interval=log_interval)
    assert after[-1][0] == 48
    assert after[-1][1]["train/n_updates"] == 3
    assert all(values.get("train/n_updates", 0) < 3 for _, values in before)


def test_every_row_after_the_update_is_that_updates_own() -> None:
    rows = recorded(tiny_model(HiddenStateEnv(), log_after_train=True), 48)
    assert [(step, values["train/n_updates"], values["time/iterations"]) for step, values in rows] == [
        (16, 1, 1),
        (32, 2, 2),
        (48, 3, 3),
    ]


def test_an_update_before_a_stop_by_a_callback_is_written_too() -> None:
    def stop(local_variables: dict[str, Any], _: dict[str, Any]) -> bool:
        return bool(local_variables["self"].num_timesteps < 40)

    rows = recorded(tiny_model(HiddenStateEnv(), log_after_train=True), 100, log_interval=4, callback=stop)
    assert [(step, values["train/n_updates"]) for step, values in rows] == [(40, 2)]


def test_without_an_interval_nothing_is_written() -> None:
    assert recorded(tiny_model(HiddenStateEnv(), log_after_train=True), 48, log_interval=None) == []


def test_both_may_be_assigned_while_training() -> None:
    model = tiny_model(HiddenStateEnv())
    rows = recorded(model, 48, callback=Assign(20, log_after_train=True, log_epochs=True))
    assert rows[-1][1]["train/n_updates"] == 3
    assert "train/approx_kl_epoch_0" in rows[-1][1]


def test_csv_files_take_the_rows(tmp_path: Path) -> None:
    model = tiny_model(HiddenStateEnv(), n_epochs=2, log_epochs=True, log_after_train=True)
    logger = configure(str(tmp_path), ["csv"])
    model.set_logger(logger)
    model.learn(32)
    logger.close()
    header, *rows = (tmp_path / "progress.csv").read_text().splitlines()
    assert len(rows) == 2
    assert {"train/grad_norm", "train/approx_kl_k1", "train/approx_kl_epoch_1"} <= set(header.split(","))
