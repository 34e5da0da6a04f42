"""PPO as an SB3 algorithm: the constructor, the schedules, the learn loop and the log keys.

Owns when things happen; must not do arithmetic, which lives in ``core``, ``rollout`` and ``update``.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import (
    ActorCriticCnnPolicy,
    ActorCriticPolicy,
    BasePolicy,
    MultiInputActorCriticPolicy,
)
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from stable_baselines3.common.vec_env import VecEnv

from sb3_ppo_from_scratch.assembly import AssembledAlgorithm
from sb3_ppo_from_scratch.core.diagnostics import explained_variance
from sb3_ppo_from_scratch.core.records import UpdateReport, UpdateSettings
from sb3_ppo_from_scratch.rollout.actions import in_environment_dtype
from sb3_ppo_from_scratch.rollout.collector import collect_rollout
from sb3_ppo_from_scratch.rollout.minibatches import environment_major
from sb3_ppo_from_scratch.settings import (
    check_learn_arguments,
    schedule_value,
)
from sb3_ppo_from_scratch.update.epochs import run_epochs

SelfPPO = TypeVar("SelfPPO", bound="PPO")


class PPO(AssembledAlgorithm):
    """Proximal Policy Optimization with a clipped surrogate, in place of ``stable_baselines3.PPO``.

    Source: Schulman et al. 2017 (arXiv:1707.06347). Arguments, defaults, log keys and saved files are those of SB3
    2.9. Hyperparameters may be assigned at any time, or passed to :meth:`load`; they take effect at the next rollout.

    :param policy: "MlpPolicy", "CnnPolicy", "MultiInputPolicy", or an ``ActorCriticPolicy`` class
    :param env: an environment, a vectorized environment, or the id of a registered one
    :param learning_rate: of the optimizer, ≥ 0; a number or a function of the progress remaining (1 → 0)
    :param n_steps: T ≥ 1, steps per environment and rollout
    :param batch_size: transitions per minibatch, ≥ 1, or ≥ 2 with ``normalize_advantage``
    :param n_epochs: ≥ 1, passes over each rollout
    :param gamma: γ in [0, 1], discount factor per step
    :param gae_lambda: λ in [0, 1] of generalized advantage estimation
    :param clip_range: ε > 0 of the clipped surrogate; a number or a schedule
    :param clip_range_vf: > 0, bound on the change of the value prediction, in units of the return; None for none
    :param normalize_advantage: whiten the advantages of each minibatch
    :param ent_coef: ≥ 0, weight of the entropy bonus; a number or (beyond SB3) a schedule
    :param vf_coef: ≥ 0, weight of the value loss; a number or (beyond SB3) a schedule
    :param max_grad_norm: > 0, bound on the joint gradient norm; ``float("inf")`` for none
    :param use_sde: generalized state-dependent exploration instead of independent action noise
    :param sde_sample_freq: steps between draws of the gSDE noise matrix; -1 draws once a rollout
    :param rollout_buffer_class: a class with the interface of SB3's; None for our own
    :param rollout_buffer_kwargs: further arguments of its constructor
    :param target_kl: > 0, stop an update once the approximate KL exceeds 1.5 × this, in nats; None never stops
    :param stats_window_size: episodes that the logged means cover
    :param tensorboard_log: folder of the TensorBoard log; None for none
    :param policy_kwargs: further arguments of the policy's constructor
    :param verbose: 0 silent, 1 info, 2 debug
    :param seed: of Python's, NumPy's and torch's generators, the action space and the environments
    :param device: "cpu", "cuda", "auto", ...
    :param _init_setup_model: build the networks now (``load`` builds them later)
    :param engine: "auto", free to be faster than SB3, or "reference", bit for bit SB3 2.9
    :param precision: "fp32", or "bf16" for the features extractor and the hidden layers, in rollout and update alike;
        heads, softmax, value and loss stay in fp32 (only with ``engine="auto"`` and policies that it recognises)
    :param compile: translate the update with ``torch.compile``, which takes seconds to minutes at first (likewise)
    :raises TypeError: if an argument has the wrong type, naming it, its value and the remedy
    :raises ValueError: if an argument or a space is out of range, likewise
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": ActorCriticPolicy,
        "CnnPolicy": ActorCriticCnnPolicy,
        "MultiInputPolicy": MultiInputActorCriticPolicy,
    }

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 3e-4,
        n_steps: int = 2048,
        batch_size: int = 64,
        n_epochs: int = 10,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        clip_range: float | Schedule = 0.2,
        clip_range_vf: float | Schedule | None = None,
        normalize_advantage: bool = True,
        ent_coef: float | Schedule = 0.0,
        vf_coef: float | Schedule = 0.5,
        max_grad_norm: float = 0.5,
        use_sde: bool = False,
        sde_sample_freq: int = -1,
        rollout_buffer_class: type[Any] | None = None,
        rollout_buffer_kwargs: dict[str, Any] | None = None,
        target_kl: float | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
        *,
        engine: str = "auto",
        precision: str = "fp32",
        compile: bool = False,
    ) -> None:
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            n_steps=n_steps,
            gamma=gamma,
            gae_lambda=gae_lambda,
            ent_coef=ent_coef,  # type: ignore[arg-type]
            vf_coef=vf_coef,  # type: ignore[arg-type]
            max_grad_norm=max_grad_norm,
            use_sde=use_sde,
            sde_sample_freq=sde_sample_freq,
            rollout_buffer_class=rollout_buffer_class,
            rollout_buffer_kwargs=rollout_buffer_kwargs,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            device=device,
            seed=seed,
            _init_setup_model=False,
        )
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.clip_range = clip_range
        self.clip_range_vf = clip_range_vf
        self.normalize_advantage = normalize_advantage
        self.target_kl = target_kl
        self.engine = engine
        self.precision = precision
        self.compile = compile
        if _init_setup_model:
            self._setup_model()

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
        return collect_rollout(self, self._engine.actor, env, callback, rollout_buffer, n_rollout_steps)

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

    def _update_settings(self) -> UpdateSettings:
        progress = self._current_progress_remaining
        schedule_value("learning_rate", self.lr_schedule, progress)
        clip_range_vf = self.clip_range_vf
        return UpdateSettings(
            n_epochs=self.n_epochs,
            batch_size=self.batch_size,
            clip_range=schedule_value("clip_range", self.clip_range, progress),
            clip_range_vf=(None if clip_range_vf is None else schedule_value("clip_range_vf", clip_range_vf, progress)),
            ent_coef=schedule_value("ent_coef", self.ent_coef, progress),
            vf_coef=schedule_value("vf_coef", self.vf_coef, progress),
            max_grad_norm=self.max_grad_norm,
            normalize_advantage=self.normalize_advantage,
            target_kl=self.target_kl,
        )

    def _log_update(self, report: UpdateReport, settings: UpdateSettings) -> None:
        record = self.logger.record
        record("train/entropy_loss", report.entropy_loss)
        record("train/policy_gradient_loss", report.policy_gradient_loss)
        record("train/value_loss", report.value_loss)
        record("train/approx_kl", report.approx_kl)
        record("train/clip_fraction", report.clip_fraction)
        record("train/loss", report.loss)
        record("train/explained_variance", self._explained_variance())
        if hasattr(self.policy, "log_std"):
            record("train/std", th.exp(self.policy.log_std).mean().item())
        record("train/n_updates", self._n_updates, exclude="tensorboard")
        record("train/clip_range", settings.clip_range)
        if settings.clip_range_vf is not None:
            record("train/clip_range_vf", settings.clip_range_vf)

    def _explained_variance(self) -> float:
        buffer = self.rollout_buffer
        values = environment_major(buffer.values, buffer.buffer_size, buffer.n_envs)
        returns = environment_major(buffer.returns, buffer.buffer_size, buffer.n_envs)
        return explained_variance(values, returns)

    def learn(
        self: SelfPPO,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = 1,
        tb_log_name: str = "PPO",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfPPO:
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
            if log_interval is not None and iteration % log_interval == 0:
                self.dump_logs(iteration)
            self.train()

        callback.on_training_end()
        return self
