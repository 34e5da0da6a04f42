"""PPO as an SB3 algorithm: the constructor, the schedules, the learn loop and the log keys.

Owns when things happen; must not do arithmetic, which lives in ``core``, ``rollout`` and ``update``.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import (
    ActorCriticCnnPolicy,
    ActorCriticPolicy,
    BasePolicy,
    MultiInputActorCriticPolicy,
)
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from stable_baselines3.common.vec_env import VecEnv

from sb3_ppo_from_scratch.core.diagnostics import explained_variance
from sb3_ppo_from_scratch.core.randomness import seeded_generators
from sb3_ppo_from_scratch.core.records import UpdateReport, UpdateSettings
from sb3_ppo_from_scratch.engines import ENGINES, build_engine
from sb3_ppo_from_scratch.interoperability import rollout_buffer_class as interoperable_buffer_class
from sb3_ppo_from_scratch.networks.graphs import release_graphs
from sb3_ppo_from_scratch.rollout.actions import in_environment_dtype, stored_action_space
from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from sb3_ppo_from_scratch.rollout.collector import collect_rollout
from sb3_ppo_from_scratch.rollout.minibatches import environment_major
from sb3_ppo_from_scratch.settings import (
    as_schedule,
    bf16_objection,
    check_hyperparameters,
    check_learn_arguments,
    check_rollout_size,
    ragged_minibatch_warning,
    schedule_value,
)
from sb3_ppo_from_scratch.spaces import check_action_space, check_observation_space
from sb3_ppo_from_scratch.update.epochs import run_epochs

SelfPPO = TypeVar("SelfPPO", bound="PPO")

_HYPERPARAMETERS = (
    "learning_rate",
    "n_steps",
    "batch_size",
    "n_epochs",
    "gamma",
    "gae_lambda",
    "clip_range",
    "clip_range_vf",
    "normalize_advantage",
    "ent_coef",
    "vf_coef",
    "max_grad_norm",
    "sde_sample_freq",
    "target_kl",
    "engine",
    "precision",
    "compile",
)


class PPO(OnPolicyAlgorithm):
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

    rollout_buffer: Any  # ours, or a class with the interface of SB3's

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
        self._warned_cut: tuple[int, int, int, bool] | None = None
        if _init_setup_model:
            self._setup_model()

    @staticmethod
    def _wrap_env(env: GymEnv, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        check_observation_space(env.observation_space)
        check_action_space(env.action_space, squashed=False)
        return OnPolicyAlgorithm._wrap_env(env, verbose, monitor_wrapper)

    def _setup_model(self) -> None:
        self._check()
        check_observation_space(self.observation_space)
        check_action_space(self.action_space, squashed=bool(self.policy_kwargs.get("squash_output", False)))
        schedule_value("learning_rate", self.learning_rate, 1.0)
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.rollout_buffer = self._new_rollout_buffer()
        self.policy = self.policy_class(  # type: ignore[assignment]
            self.observation_space, self.action_space, self.lr_schedule, use_sde=self.use_sde, **self.policy_kwargs
        ).to(self.device)
        release_graphs(self.policy)
        self._maybe_recommend_cpu()
        self._build_engine()
        self._apply_settings()
        if self.verbose >= 1:
            print(f"Using the {self._engine.description}")

    def _check(self) -> None:
        check_hyperparameters({name: getattr(self, name) for name in _HYPERPARAMETERS}, ENGINES)
        check_rollout_size(self.n_steps, self.n_envs, self.normalize_advantage)

    def _warn_about_ragged_minibatches(self) -> None:
        cut = (self.n_steps * self.n_envs, self.batch_size, self._min_batch_size(), bool(self.normalize_advantage))
        if self.env is None or cut == self._warned_cut:
            return
        self._warned_cut = cut
        text = ragged_minibatch_warning(*cut)
        if text is not None:
            warnings.warn(text, stacklevel=4)

    def _new_rollout_buffer(self) -> Any:
        return interoperable_buffer_class(self.rollout_buffer_class)(
            self.n_steps,
            self.observation_space,
            stored_action_space(self.action_space),
            device=self.device,
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
            n_envs=self.n_envs,
            **self.rollout_buffer_kwargs,
        )

    def _min_batch_size(self) -> int:
        # SB3 puts a last minibatch of one sample into the loss with its advantage unnormalised.
        cuts_itself = issubclass(interoperable_buffer_class(self.rollout_buffer_class), RolloutBuffer)
        return 2 if self.normalize_advantage and self.engine != "reference" and cuts_itself else 1

    def _setup_lr_schedule(self) -> None:
        self.lr_schedule = as_schedule(self.learning_rate)
        self._scheduled_learning_rate = self.learning_rate

    def _apply_settings(self) -> None:
        """Let hyperparameters that were assigned since the last rollout take effect, or refuse them."""
        self._check()
        self._warn_about_ragged_minibatches()
        # Not whenever: users of SB3 assign ``lr_schedule`` itself, where assigning ``learning_rate`` does nothing.
        if self.learning_rate != self._scheduled_learning_rate:
            self._setup_lr_schedule()
        self.clip_range = as_schedule(self.clip_range)
        if self.clip_range_vf is not None:
            self.clip_range_vf = as_schedule(self.clip_range_vf)
        if self.rollout_buffer.buffer_size != self.n_steps:
            self.rollout_buffer = self._new_rollout_buffer()
        self.rollout_buffer.gamma = self.gamma
        self.rollout_buffer.gae_lambda = self.gae_lambda
        if not self._engine.still_serves(self.policy, self.engine, self.precision, self.compile):
            self._build_engine()
        if isinstance(self.rollout_buffer, RolloutBuffer):
            self.rollout_buffer.generator = self._engine.generator
            self.rollout_buffer.min_batch_size = self._min_batch_size()

    def _build_engine(self) -> None:
        if self.precision == "bf16" and (objection := bf16_objection(self.device)) is not None:
            warnings.warn(objection, stacklevel=4)
        self._engine = build_engine(self.engine, self.policy, self._generators, self.precision, self.compile)

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed the global generators, the environments and the model's own generators, as far as there is a seed.

        :param seed: None draws a seed for the model's own from NumPy's global generator, which somebody may have seeded
        """
        super().set_random_seed(seed)
        if seed is None:
            # Leaves the global state as it was, so that the reference engine draws what SB3 draws.
            state = np.random.get_state()
            seed = int(np.random.randint(2**31))
            np.random.set_state(state)
        self._generators = seeded_generators(seed, self.device)
        if hasattr(self, "_engine"):
            self._build_engine()

    def __getstate__(self) -> dict[str, Any]:
        # The engine is made of views of the policy's memory, which a copy has to make anew.
        return {name: value for name, value in self.__dict__.items() if name != "_engine"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._build_engine()

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_scheduled_learning_rate", "_warned_cut", "_generators", "_engine"]

    def set_parameters(
        self,
        load_path_or_dict: str | dict[str, Any],
        exact_match: bool = True,
        device: th.device | str = "auto",
    ) -> None:
        """Load parameters and optimizer state, as SB3, but never share memory with a dict that was passed.

        torch's optimizers keep the very tensors that they are given: with SB3, training one of two models that
        exchanged parameters changes the other.

        :param load_path_or_dict: a saved file, or what :meth:`get_parameters` returned
        :param exact_match: whether every parameter must be there
        :param device: where to load to
        """
        if isinstance(load_path_or_dict, dict):
            load_path_or_dict = copy.deepcopy(load_path_or_dict)
        super().set_parameters(load_path_or_dict, exact_match, device)

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
