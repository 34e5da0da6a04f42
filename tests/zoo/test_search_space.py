"""Owns the search space: what is sampled is valid, and is read back exactly from a finished trial."""

import inspect
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
import yaml
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from torch import nn

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.zoo.search_space import convert_ppo_params, fitting_batch_size, sample_ppo_params
from tests.zoo.processes import zoo_output

PARAMS = {
    "n_envs": 8,
    "n_steps_pow": 5,
    "batch_size_pow": 8,
    "one_minus_gamma": 0.02,
    "one_minus_gae_lambda": 0.2,
    "learning_rate": 1e-3,
    "ent_coef": 1e-8,
    "clip_range": 0.2,
    "n_epochs": 20,
    "max_grad_norm": 0.5,
    "net_arch": "small",
    "activation_fn": "tanh",
}


@pytest.fixture(autouse=True)
def _quiet_optuna() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def sampled_trials(study: optuna.Study, n_trials: int, n_envs: int) -> list[dict[str, Any]]:
    """Sample trials, tell the study an arbitrary result for each, and return what was sampled."""
    sampled = []
    for number in range(n_trials):
        trial = study.ask()
        sampled.append(sample_ppo_params(trial, 0, n_envs, {}))
        study.tell(trial, float(number % 7))
    return sampled


@pytest.mark.parametrize("n_envs", [1, 3, 8, 20])
def test_finished_trials_are_read_back_exactly(n_envs: int) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=n_envs))
    sampled = sampled_trials(study, 200, n_envs)
    assert [convert_ppo_params(trial.params) for trial in study.trials] == sampled


def test_stored_trials_are_read_back_exactly(tmp_path: Path) -> None:
    path = str(tmp_path / "study.log")
    study = optuna.create_study(storage=JournalStorage(JournalFileBackend(path)), study_name="one")
    sampled = sampled_trials(study, 20, n_envs=4)
    reloaded = optuna.load_study(storage=JournalStorage(JournalFileBackend(path)), study_name="one")
    assert [convert_ppo_params(trial.params) for trial in reloaded.trials] == sampled


@pytest.mark.parametrize("n_envs", [1, 3, 8, 20])
def test_minibatches_divide_the_rollout(n_envs: int) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=n_envs))
    for hyperparams in sampled_trials(study, 200, n_envs):
        n_steps, batch_size = hyperparams["n_steps"], hyperparams["batch_size"]
        assert 32 <= n_steps <= 4096
        assert 32 <= batch_size <= 2048
        assert batch_size.bit_count() == 1
        assert n_steps * n_envs % batch_size == 0


def test_every_hyperparameter_is_an_argument_of_ppo() -> None:
    assert set(convert_ppo_params(PARAMS)) <= set(inspect.signature(PPO).parameters)


def test_ranges_do_not_depend_on_the_trial() -> None:
    # Otherwise the multivariate sampler that rl_zoo3 uses would leave the parameter out of its model.
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    sampled_trials(study, 20, n_envs=3)
    assert all(trial.distributions == study.trials[0].distributions for trial in study.trials)


def test_the_tuned_settings_of_cartpole_are_in_the_space() -> None:
    assert sample_ppo_params(optuna.trial.FixedTrial(PARAMS), 0, 8, {}) == {  # type: ignore[arg-type]
        "n_steps": 32,
        "batch_size": 256,
        "gamma": 0.98,
        "gae_lambda": 0.8,
        "learning_rate": 1e-3,
        "ent_coef": 1e-8,
        "clip_range": 0.2,
        "n_epochs": 20,
        "max_grad_norm": 0.5,
        "policy_kwargs": {"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "activation_fn": nn.Tanh},
    }


@pytest.mark.parametrize(
    "batch_size, rollout_size, expected",
    [(64, 32, 32), (64, 96, 32), (64, 128, 64), (2048, 32 * 20, 128), (32, 4096, 32)],
)
def test_fitting_batch_size(batch_size: int, rollout_size: int, expected: int) -> None:
    assert fitting_batch_size(batch_size, rollout_size) == expected


def test_a_real_study_and_training_from_its_second_trial(tmp_path: Path) -> None:
    stored = ["--storage", "study.log", "--study-name", "one"]
    common = ["--env", "CartPole-v1", "-n", 64, "--eval-freq", -1, "--eval-episodes", 1, "--seed", 3, *stored]
    study_only = ["-optimize", "--n-trials", 5, "--n-evaluations", 1, "--pruner", "none", "--no-optim-plots"]
    output = zoo_output("train", *common, *study_only, "--hyperparams", "n_envs:2", folder=tmp_path)
    assert "Number of finished trials:  5" in output
    (report,) = (tmp_path / "logs" / "myppo").glob("report_CartPole-v1_5-trials-64-tpe-none_*.csv")
    assert list(pd.read_csv(report)["state"]) == ["COMPLETE"] * 5
    study = optuna.load_study(storage=JournalStorage(JournalFileBackend(str(tmp_path / "study.log"))), study_name="one")
    converted = [convert_ppo_params(trial.params) for trial in study.trials]
    for trial, hyperparams in zip(study.trials, converted, strict=True):
        assert {name: trial.user_attrs[name] for name in ("n_steps", "batch_size", "gamma", "gae_lambda")} == {
            name: hyperparams[name] for name in ("n_steps", "batch_size", "gamma", "gae_lambda")
        }

    zoo_output("train", *common, "--trial-id", 1, "--hyperparams", "n_envs:2", folder=tmp_path)
    (written,) = (tmp_path / "logs" / "myppo").glob("CartPole-v1_*/CartPole-v1/config.yml")
    settings = yaml.unsafe_load(written.read_text())
    assert {name: settings[name] for name in converted[1]} == converted[1]
