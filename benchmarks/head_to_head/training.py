"""One run from its beginning, or its last checkpoint, to its end.

Owns when to evaluate, and what counts as training time; must not know other runs, nor who started this one.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from benchmarks.head_to_head.algorithms import ALGORITHMS
from benchmarks.head_to_head.checkpoint import State, latest_checkpoint, save_checkpoint, saved_model, saved_state
from benchmarks.head_to_head.evaluation import episode_returns
from benchmarks.head_to_head.experiment import Experiment
from benchmarks.head_to_head.provenance import provenance
from benchmarks.head_to_head.runs import Progress, Run, read_progress, write_progress
from benchmarks.head_to_head.table import ROWS, Row, final_row, write_rows
from benchmarks.head_to_head.tasks import TASKS

_PROGRESS_INTERVAL = 2.0  # seconds


def train(run: Run, folder: Path, started: float) -> None:
    """Train, evaluate and save until the run is finished.

    :param run: what is asked
    :param folder: of the run, nobody else's
    :param started: ``time.monotonic()`` at the beginning of this process
    """
    checkpoint = latest_checkpoint(folder)
    state = State(0.0, []) if checkpoint is None else saved_state(checkpoint)
    # A row that was written after its checkpoint, or a checkpoint whose row was not: the checkpoint counts.
    write_rows(folder / ROWS, state.rows)
    if final_row(state.rows) is not None:
        return
    before = read_progress(folder)
    resumed = before.resumed + (checkpoint is not None)
    task, algorithm = TASKS[run.task], ALGORITHMS[run.algorithm]
    experiment = Experiment(task, algorithm, seed=run.seed, threads=run.threads, device=run.device, folder=folder)
    env = experiment.training_environments()
    if checkpoint is None:
        model = experiment.untrained_model(env)
    else:
        model = saved_model(
            checkpoint,
            algorithm.load_class(),
            env,
            seed=_independent_seed(run.seed, 1 + resumed),
            device=run.device,
        )
    recorder = Recorder(run, folder, experiment, state, before.wall_seconds, started, resumed)
    model.learn(run.steps - model.num_timesteps, callback=recorder, reset_num_timesteps=False)
    env.close()


class Recorder(BaseCallback):
    """Evaluates, saves and tells how far the run is, while the clock of training stands still.

    :param run: what is asked
    :param folder: of the run
    :param experiment: that makes the environments of evaluations
    :param state: at the beginning
    :param earlier_seconds: wall-clock time of the run's earlier processes
    :param started: ``time.monotonic()`` at the beginning of this process
    :param resumed: how many times the run went on from a checkpoint, this time included
    """

    def __init__(
        self,
        run: Run,
        folder: Path,
        experiment: Experiment,
        state: State,
        earlier_seconds: float,
        started: float,
        resumed: int,
    ) -> None:
        super().__init__()
        self._run, self._folder, self._experiment = run, folder, experiment
        self._task = TASKS[run.task]
        self._rows = list(state.rows)
        self._training_seconds = state.training_seconds
        self._wall_offset = earlier_seconds - started
        self._resumed = resumed
        self._told = -_PROGRESS_INTERVAL
        self._clock = 0.0
        self._constant: Row = {}

    def _on_training_start(self) -> None:
        self._constant = constant_columns(self._run, self._experiment, self.model, self.training_env, self._resumed)
        self._clock = time.monotonic()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        """Between two updates: everything that a checkpoint needs is of the same moment."""
        self._stop_clock()
        interval = self._task.evaluation_interval(self._run.steps)
        last = int(self._rows[-1]["steps"]) if self._rows else -1
        if self.num_timesteps // interval > last // interval:
            self._record(final=False)
        if time.monotonic() - self._told >= _PROGRESS_INTERVAL:
            self._tell_progress()
        self._clock = time.monotonic()

    def _on_training_end(self) -> None:
        self._stop_clock()
        self._record(final=True)

    def _stop_clock(self) -> None:
        if self.model.device.type == "cuda":
            th.cuda.synchronize(self.model.device)
        self._training_seconds += time.monotonic() - self._clock

    def _record(self, *, final: bool) -> None:
        n_episodes = self._task.final_episodes if final else self._task.episodes
        # Other games each time, since the luck of the same few would be taken for skill; but the same for every side.
        seed = _independent_seed(self._run.seed, 0, len(self._rows))
        assert isinstance(self.model, OnPolicyAlgorithm)
        returns = episode_returns(self.model, self._experiment, self._task, n_episodes, seed)
        ended = [episode["r"] for episode in self.model.ep_info_buffer or ()]
        row = {
            **self._constant,
            "steps": self.num_timesteps,
            "final": final,
            "score": float(np.mean(returns)),
            "score_std": float(np.std(returns)),
            "episodes": len(returns),
            "training_score": float(np.mean(ended)) if ended else "",
            "training_seconds": round(self._training_seconds, 3),
            "wall_seconds": round(self._wall_seconds(), 3),
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        self._rows.append(row)
        save_checkpoint(self._folder, self.model, State(self._training_seconds, self._rows))
        write_rows(self._folder / ROWS, self._rows)
        self._tell_progress()

    def _tell_progress(self) -> None:
        write_progress(self._folder, Progress(self.num_timesteps, self._wall_seconds(), self._resumed))
        self._told = time.monotonic()

    def _wall_seconds(self) -> float:
        return self._wall_offset + time.monotonic()


def constant_columns(run: Run, experiment: Experiment, model: object, env: VecEnv, resumed: int) -> Row:
    """The columns that are the same in every row of a process.

    :param run: what is asked
    :param experiment: that made the environments
    :param model: in training
    :param env: in which it trains
    :param resumed: how many times the run went on from a checkpoint
    """
    return {
        "task": run.task,
        "env_id": run.task,
        "algorithm": run.algorithm,
        "seed": run.seed,
        "resumed": resumed,
        "n_envs": env.num_envs,
        "environment": type(env.unwrapped).__name__,
        "threads": th.get_num_threads(),
        "jobs": run.jobs,
        "policy": experiment.policy,
        "command": run.command,
        **provenance(run.device),
    }


def _independent_seed(seed: int, *purpose: int) -> int:
    """Random numbers that have nothing to do with those of the run's beginning, nor with any other seed's.

    :param seed: of the run
    :param purpose: 0 and the number of an evaluation, or one more than the times that the run was resumed
    """
    return int(np.random.SeedSequence([seed, *purpose]).generate_state(1)[0]) // 4
