"""Two sides of a head-to-head run: the same hyperparameters, the same evaluation, nothing lost in a checkpoint."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch as th
from rl_zoo3.exp_manager import ExperimentManager
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.utils import FloatSchedule

from benchmarks.head_to_head import training
from benchmarks.head_to_head.algorithms import ALGORITHMS, obstacle
from benchmarks.head_to_head.checkpoint import State, latest_checkpoint, save_checkpoint, saved_model, saved_state
from benchmarks.head_to_head.evaluation import episode_returns
from benchmarks.head_to_head.experiment import Experiment
from benchmarks.head_to_head.hyperparameters import entry_of
from benchmarks.head_to_head.runs import Run
from benchmarks.head_to_head.tasks import TASK_SETS, TASKS, Task

COMMITTED = TASK_SETS["committed"]
MARIO = "SuperMarioBros1-1-v0"
CARTPOLE = TASKS["CartPole-v1"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo leaves a log where it runs


def an_experiment(task: Task, algorithm: str, folder: Path) -> Experiment:
    return Experiment(task, ALGORITHMS[algorithm], seed=0, folder=folder)


def a_model(task: Task, algorithm: str, folder: Path) -> tuple[Experiment, OnPolicyAlgorithm]:
    experiment = an_experiment(task, algorithm, folder)
    return experiment, experiment.untrained_model(experiment.training_environments())


def parameters(model: OnPolicyAlgorithm) -> list[th.Tensor]:
    return [value.clone() for value in model.policy.state_dict().values()]


def observation_statistics(model: OnPolicyAlgorithm) -> RunningMeanStd:
    normalize = model.get_vec_normalize_env()
    assert normalize is not None
    assert isinstance(normalize.obs_rms, RunningMeanStd)
    return normalize.obs_rms


# Importing Box2D warns of types without the attribute; turned into an error in there, that ends the process.
@pytest.mark.filterwarnings("ignore:builtin type .* has no __module__ attribute:DeprecationWarning")
@pytest.mark.parametrize("task", COMMITTED, ids=lambda task: task.name)
def test_ours_and_stock_have_the_same_hyperparameters(task: Task, tmp_path: Path) -> None:
    if task.name == MARIO:
        pytest.importorskip("gymnasium_mariobros")
    models = [a_model(task, algorithm, tmp_path)[1] for algorithm in ("ours", "sb3")]
    names = (
        *("n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "ent_coef", "vf_coef", "max_grad_norm"),
        *("normalize_advantage", "target_kl", "clip_range_vf", "use_sde", "sde_sample_freq", "policy_kwargs"),
        *("policy_class", "observation_space", "action_space", "n_envs", "seed"),
    )
    ours, stock = ([getattr(model, name) for name in names] for model in models)
    assert ours == stock
    for schedule in ("learning_rate", "clip_range"):
        values = [[FloatSchedule(getattr(model, schedule))(at) for at in (1.0, 0.5, 0.0)] for model in models]
        assert values[0] == values[1]
    for mine, theirs in zip(*map(parameters, models), strict=True):
        assert th.equal(mine, theirs)
    statistics = [model.get_vec_normalize_env() for model in models]
    assert len({one and (one.gamma, one.norm_obs, one.norm_reward, one.clip_obs) for one in statistics}) == 1
    for model in models:
        assert model.env is not None
        model.env.close()


def test_games_are_trained_on_natively_by_ours_alone(tmp_path: Path) -> None:
    pong = TASKS["PongNoFrameskip-v4"]
    envs = [an_experiment(pong, algorithm, tmp_path).training_environments() for algorithm in ("ours", "sb3", "a2c")]
    assert [type(env.unwrapped).__name__ for env in envs] == ["AtariVecEnv", "DummyVecEnv", "DummyVecEnv"]
    np.testing.assert_array_equal(np.asarray(envs[0].reset()), np.asarray(envs[1].reset()))
    for env in envs:
        env.close()


def test_entries() -> None:
    assert entry_of("CartPole-v1", "myppo")["n_epochs"] == 20
    assert entry_of("AlienNoFrameskip-v4", "myppo")["frame_stack"] == 4
    assert entry_of(MARIO, "myppo")["policy"] == "CnnPolicy"
    assert entry_of("AlienNoFrameskip-v4", "a2c")["n_envs"] == 16
    assert entry_of("HalfCheetah-v5", "trpo")["target_kl"] == 0.04  # that of HalfCheetah-v4
    # Whoever changes an entry changes only their own.
    entry_of("CartPole-v1", "myppo").clear()
    assert entry_of("CartPole-v1", "myppo")
    with pytest.raises(KeyError, match=MARIO):
        entry_of(MARIO, "a2c")


def test_ppo_can_be_trained_on_every_task_that_is_installed() -> None:
    for task in TASKS.values():
        if task.name != MARIO:
            assert obstacle(task, ALGORITHMS["ours"]) is None
            assert obstacle(task, ALGORITHMS["a2c"]) is None


@pytest.mark.parametrize("task", [one for one in COMMITTED if one.name != MARIO], ids=lambda task: task.name)
def test_actions_are_evaluated_as_rl_zoo3_does(task: Task, tmp_path: Path) -> None:
    manager = ExperimentManager(argparse.Namespace(), "ppo", task.name, str(tmp_path), verbose=0)
    assert task.deterministic == manager.deterministic_eval


class Evaluating(BaseCallback):
    """Evaluates before every rollout."""

    def __init__(self, experiment: Experiment, task: Task) -> None:
        super().__init__()
        self._experiment, self._task = experiment, task
        self.scores: list[float] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        assert isinstance(self.model, OnPolicyAlgorithm)
        self.scores += episode_returns(self.model, self._experiment, self._task, 3, seed=1)


@pytest.mark.parametrize("name, steps", [("CartPole-v1", 1024), ("Hopper-v5", 1536)])
@pytest.mark.parametrize("algorithm", ["ours", "sb3"])
def test_training_does_not_notice_evaluations(algorithm: str, name: str, steps: int, tmp_path: Path) -> None:
    outcomes = []
    for evaluated in (False, True):
        task = replace(TASKS[name], deterministic=False)
        experiment, model = a_model(task, algorithm, tmp_path)
        callback = Evaluating(experiment, task)
        model.learn(steps, callback=callback if evaluated else None)
        assert bool(callback.scores) == evaluated
        means = [] if name == "CartPole-v1" else [th.as_tensor(observation_statistics(model).mean)]
        outcomes.append([*parameters(model), *means])
    for without, with_ in zip(*outcomes, strict=True):
        assert th.equal(without, with_)


def test_each_evaluation_has_games_of_its_own_which_all_sides_play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: dict[str, list[int]] = {"ours": [], "sb3": []}
    for algorithm, seen in seeds.items():
        monkeypatch.setattr(
            training, "episode_returns", lambda *arguments, seen=seen: seen.append(arguments[-1]) or [0.0]
        )
        run = Run("CartPole-v1", algorithm, seed=3, steps=600, threads=1, jobs=1, device="cpu", command="")
        (tmp_path / algorithm).mkdir()
        training.train(run, tmp_path / algorithm, time.monotonic())
    assert seeds["ours"] == seeds["sb3"]
    assert len(set(seeds["ours"])) == len(seeds["ours"]) > 2


def test_an_evaluation_repeats_itself(tmp_path: Path) -> None:
    task = replace(CARTPOLE, deterministic=False)
    experiment, model = a_model(task, "ours", tmp_path)
    first = episode_returns(model, experiment, task, 25, seed=1)
    assert len(first) == 25
    assert len(set(first)) > 1
    assert episode_returns(model, experiment, task, 25, seed=1) == first
    assert episode_returns(model, experiment, task, 25, seed=2) != first


def test_evaluation_sees_the_statistics_of_training_and_raw_rewards(tmp_path: Path) -> None:
    task = TASKS["Acrobot-v1"]
    experiment, model = a_model(task, "sb3", tmp_path)
    # Everything is far above this mean: clipped to the same observation, whatever the state.
    observation_statistics(model).mean = np.full(6, -1e9)
    # The same action all the time, and one point lost for each of 500 steps.
    assert episode_returns(model, experiment, task, 2, seed=1) == [-500.0, -500.0]


def test_a_checkpoint_brings_everything_back(tmp_path: Path) -> None:
    hopper = TASKS["Hopper-v5"]
    experiment, model = a_model(hopper, "ours", tmp_path)
    model.learn(512)
    rows = [{"steps": 512, "score": 1.5, "final": False}]
    save_checkpoint(tmp_path, model, State(12.5, rows))
    checkpoint = latest_checkpoint(tmp_path)
    assert checkpoint is not None
    assert saved_state(checkpoint) == State(12.5, rows)

    env = experiment.training_environments()
    again = saved_model(checkpoint, ALGORITHMS["ours"].load_class(), env, seed=7, device="cpu")
    assert again.num_timesteps == 512
    for mine, theirs in zip(parameters(model), parameters(again), strict=True):
        assert th.equal(mine, theirs)
    before, after = observation_statistics(model), observation_statistics(again)
    np.testing.assert_array_equal(before.mean, after.mean)
    assert before.count == after.count > 500
    rewards = [one.ret_rms.var for one in (model.get_vec_normalize_env(), again.get_vec_normalize_env()) if one]
    assert rewards[0] == rewards[1] != 1.0
    assert [one["r"] for one in again.ep_info_buffer or ()] == [one["r"] for one in model.ep_info_buffer or ()] != []


def test_schedules_go_on_over_the_whole_run(tmp_path: Path) -> None:
    experiment, model = a_model(CARTPOLE, "sb3", tmp_path)
    model.learn(256)
    save_checkpoint(tmp_path, model, State(0.0, []))
    checkpoint = latest_checkpoint(tmp_path)
    assert checkpoint is not None
    again = saved_model(
        checkpoint, ALGORITHMS["sb3"].load_class(), experiment.training_environments(), seed=7, device="cpu"
    )
    # 0.001 falls linearly to 0 over the run; the last update of 1024 steps has none left, that before it a quarter.
    again.learn(1024 - 256, callback=(rates := LearningRates()), reset_num_timesteps=False)
    assert rates.seen == pytest.approx([0.0005, 0.00025, 0.0])


class LearningRates(BaseCallback):
    """The learning rate of every update."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[float] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps > 256:
            self.seen.append(self.model.policy.optimizer.param_groups[0]["lr"])

    _on_training_end = _on_rollout_start


def test_a_checkpoint_is_one_generation(tmp_path: Path) -> None:
    _, model = a_model(CARTPOLE, "ours", tmp_path)
    assert latest_checkpoint(tmp_path) is None
    for steps in (256, 1024):
        model.num_timesteps = steps
        save_checkpoint(tmp_path, model, State(float(steps), []))
    unfinished = tmp_path / "checkpoint.part"  # as a crash leaves it
    unfinished.mkdir()
    (unfinished / "model.zip").write_text("half")
    checkpoint = latest_checkpoint(tmp_path)
    assert checkpoint == tmp_path / "checkpoint-000000001024"
    assert saved_state(checkpoint).training_seconds == 1024.0
    model.num_timesteps = 2048
    save_checkpoint(tmp_path, model, State(0.0, []))
    assert [path.name for path in tmp_path.glob("checkpoint*")] == ["checkpoint-000000002048"]
