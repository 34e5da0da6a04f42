"""When things happen: rollouts, updates, what is logged of them, and what follows from them.

Owns the order of events and the log keys; must not do arithmetic, which lives in ``core``, ``rollout`` and ``update``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.utils import update_learning_rate
from stable_baselines3.common.vec_env import VecEnv

from sb3_ppo_from_scratch.assembly import AssembledAlgorithm
from sb3_ppo_from_scratch.core.adaptation import adapted_kl_coef, adapted_learning_rate, scaled_learning_rate
from sb3_ppo_from_scratch.core.diagnostics import explained_variance
from sb3_ppo_from_scratch.core.records import UpdateReport, UpdateSettings
from sb3_ppo_from_scratch.options import update_settings
from sb3_ppo_from_scratch.rollout.actions import in_environment_dtype
from sb3_ppo_from_scratch.rollout.collector import collect_rollout
from sb3_ppo_from_scratch.rollout.minibatches import environment_major
from sb3_ppo_from_scratch.settings import check_learn_arguments, schedule_value
from sb3_ppo_from_scratch.update.epochs import run_epochs
from sb3_ppo_from_scratch.update.objective import POLICY_OBJECTIVES

SelfTrainingLoop = TypeVar("SelfTrainingLoop", bound="TrainingLoop")


class TrainingLoop(AssembledAlgorithm):
    """An assembled algorithm that acts, learns and logs."""

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        # The last rollout may overshoot the budget; a schedule must never see a negative progress.
        self._current_progress_remaining = max(0.0, 1.0 - float(num_timesteps) / float(total_timesteps))

    def predict(
        self,
        observation: np.ndarray[Any, Any] | dict[str, np.ndarray[Any, Any]],
        state: tuple[np.ndarray[Any, Any], ...] | None = None,
        episode_start: np.ndarray[Any, Any] | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray[Any, Any], tuple[np.ndarray[Any, Any], ...] | None]:
        """Actions for observations, as SB3; for a Box of integers they are integers, as in training.

        :param observation: [*obs_shape] or [E, *obs_shape], or a dict of such arrays
        :param state: unused by PPO's policies
        :param episode_start: unused by PPO's policies
        :param deterministic: the mode of the distribution instead of a sample
        :return: actions within the bounds of the space, and ``state``
        """
        actions, state = super().predict(observation, state, episode_start, deterministic)
        return in_environment_dtype(actions, self.action_space), state

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: Any,
        n_rollout_steps: int,
    ) -> bool:
        """Fill the buffer with T steps of every environment under the current policy.

        :param env: the training environments
        :param callback: asked after each step, told of the beginning and the end
        :param rollout_buffer: to fill
        :param n_rollout_steps: T
        :return: False if the callback stopped the rollout before its end
        """
        return collect_rollout(
            self,
            self._engine.actor,
            env,
            callback,
            rollout_buffer,
            n_rollout_steps,
            bootstraps_at_time_limits=self.truncation == "bootstrap",
            reference=self._reference_penalty(),
        )

    def train(self) -> None:
        """Update the policy from the rollout in ``rollout_buffer`` and log how it went."""
        self._check()  # a callback may have assigned a setting since the rollout began
        settings = self._update_settings()
        self._update_learning_rate(self.policy.optimizer)
        report = run_epochs(self._engine.updater, self.rollout_buffer, settings)
        self._n_updates += report.n_epochs
        if report.stopping_kl is not None and self.verbose >= 1:
            print(f"Early stopping at step {report.n_epochs - 1} due to reaching max kl: {report.stopping_kl:.2f}")
        self._log_update(report, settings)
        self._adapt_to(report.approx_kl)

    def _update_settings(self) -> UpdateSettings:
        progress = self._current_progress_remaining
        schedule_value("learning_rate", self.lr_schedule, progress)
        return update_settings(self._hyperparameters(), progress, self.rollout_buffer.advantages)

    def _update_learning_rate(self, optimizers: list[th.optim.Optimizer] | th.optim.Optimizer) -> None:
        super()._update_learning_rate(optimizers)
        if self.desired_kl is None:
            return
        learning_rate = scaled_learning_rate(self._scheduled_rate(), self.learning_rate_factor)
        self.logger.record("train/learning_rate", learning_rate)
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            update_learning_rate(optimizer, learning_rate)

    def _scheduled_rate(self) -> float:
        return float(self.lr_schedule(self._current_progress_remaining))

    def _adapt_to(self, kl: float) -> None:
        """Let the coefficients that follow the divergence of an update do so."""
        if POLICY_OBJECTIVES[self.objective].adapts_kl_coef:
            self.kl_coef = adapted_kl_coef(self.kl_coef, kl, self.kl_target)
        scheduled = self._scheduled_rate()
        if self.desired_kl is not None and scheduled > 0:
            rate = scaled_learning_rate(scheduled, self.learning_rate_factor)
            self.learning_rate_factor = adapted_learning_rate(rate, kl, self.desired_kl) / scheduled

    def _log_update(self, report: UpdateReport, settings: UpdateSettings) -> None:
        record = self.logger.record
        record("train/entropy_loss", report.entropy_loss)
        record("train/policy_gradient_loss", report.policy_gradient_loss)
        record("train/value_loss", report.value_loss)
        record("train/approx_kl", report.approx_kl)
        record("train/approx_kl_k1", report.approx_kl_k1)
        record("train/clip_fraction", report.clip_fraction)
        record("train/loss", report.loss)
        record("train/grad_norm", report.grad_norm)
        record("train/explained_variance", self._explained_variance())
        if hasattr(self.policy, "log_std"):
            record("train/std", th.exp(self.policy.log_std).mean().item())
        record("train/n_updates", self._n_updates, exclude="tensorboard")
        record("train/clip_range", settings.clip_range)
        if settings.clip_range_vf is not None:
            record("train/clip_range_vf", settings.clip_range_vf)
        if POLICY_OBJECTIVES[settings.objective].penalises_kl:
            record("train/kl_coef", settings.kl_coef)
        if self.log_epochs:
            self._log_epochs(report)

    def _log_epochs(self, report: UpdateReport) -> None:
        for name in ("approx_kl", "clip_fraction"):
            columns = np.split(getattr(report.minibatches, name), report.epoch_starts[1:])
            for epoch, column in enumerate(columns):
                self.logger.record(f"train/{name}_epoch_{epoch}", float(column.mean()))
            # A longer update whose row has not been dumped may have left more of them.
            for epoch in range(len(columns), self.n_epochs):
                self.logger.name_to_value.pop(f"train/{name}_epoch_{epoch}", None)

    def _explained_variance(self) -> float:
        buffer = self.rollout_buffer
        values = environment_major(buffer.values, buffer.buffer_size, buffer.n_envs)
        returns = environment_major(buffer.returns, buffer.buffer_size, buffer.n_envs)
        return explained_variance(values, returns)

    def learn(
        self: SelfTrainingLoop,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = 1,
        tb_log_name: str = "PPO",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfTrainingLoop:
        """Alternate rollouts and updates until ``total_timesteps`` environment steps are done.

        :param total_timesteps: environment steps over all environments; the last rollout may overshoot it
        :param callback: one or several callbacks, or a function of locals and globals
        :param log_interval: rollouts between two dumps of the log; None dumps nothing
        :param tb_log_name: name of the run in the TensorBoard folder
        :param reset_num_timesteps: count from 0; False goes on from an earlier call
        :param progress_bar: show one (needs tqdm and rich)
        :return: the model
        """
        check_learn_arguments(total_timesteps, log_interval)
        iteration = 0
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        callback.on_training_start(locals(), globals())
        assert self.env is not None

        while self.num_timesteps < total_timesteps:
            self._apply_settings()
            if not self.collect_rollouts(self.env, callback, self.rollout_buffer, n_rollout_steps=self.n_steps):
                break
            iteration += 1
            self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
            is_due = log_interval is not None and iteration % log_interval == 0
            if is_due and not self.log_after_train:
                self.dump_logs(iteration)
            self.train()
            if is_due and self.log_after_train:
                self.dump_logs(iteration)

        if self.log_after_train and log_interval is not None and iteration % log_interval != 0:
            self.dump_logs(iteration)
        callback.on_training_end()
        return self
