"""How a model is put together from its attributes, and taken apart for copies and saved files.

Owns checks, schedules, buffer, engine and generators; must not know when a model acts or learns.
"""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from gymnasium.vector import VectorEnv
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.vec_env import VecEnv

from sb3_ppo_from_scratch.core.randomness import Generators, seeded_generators
from sb3_ppo_from_scratch.engines import ENGINES, Engine, build_engine
from sb3_ppo_from_scratch.envs.gymnasium_adapter import as_vec_env
from sb3_ppo_from_scratch.interoperability import rollout_buffer_class as interoperable_buffer_class
from sb3_ppo_from_scratch.networks.graphs import release_graphs
from sb3_ppo_from_scratch.options import (
    OPTIONS,
    check_divergence_is_seen,
    check_options,
    normalized_over,
)
from sb3_ppo_from_scratch.reference_policy import frozen, reference_policy
from sb3_ppo_from_scratch.rollout.actions import stored_action_space
from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from sb3_ppo_from_scratch.rollout.reference_penalty import ReferencePenalty
from sb3_ppo_from_scratch.settings import (
    HYPERPARAMETERS,
    as_schedule,
    bf16_objection,
    check_hyperparameters,
    check_rollout_size,
    ragged_minibatch_warning,
    schedule_value,
)
from sb3_ppo_from_scratch.spaces import check_action_space, check_observation_space

# What a model makes for itself again, or remembers for its own lifetime only.
_NEVER_SAVED = (
    "_scheduled_learning_rate",
    "_warned_cut",
    "_generators",
    "_engine",
    "_frozen_reference",
    "_acting_reference",
)


class AssembledAlgorithm(OnPolicyAlgorithm):
    """An on-policy algorithm whose hyperparameters are read from its attributes, whenever they are assigned.

    ``load`` updates the attributes without a constructor being called, and users assign them between two calls of
    ``learn`` or inside a callback: nothing here is derived from a hyperparameter once and for all.
    """

    rollout_buffer: Any  # ours, or a class with the interface of SB3's
    batch_size: int
    n_epochs: int
    clip_range: float | Schedule
    clip_range_vf: float | Schedule | None
    normalize_advantage: bool
    target_kl: float | None
    engine: str
    precision: str
    compile: bool
    objective: str
    kl_coef: float
    kl_target: float
    desired_kl: float | None
    value_clip: str
    value_loss: str
    advantage_normalization: str
    truncation: str
    reference_policy: ActorCriticPolicy | str | Path | None
    reference_kl_coef: float
    log_after_train: bool
    log_epochs: bool
    learning_rate_factor: float
    _engine: Engine
    _generators: Generators
    _scheduled_learning_rate: float | Schedule
    _warned_cut: tuple[int, int, int, bool] | None = None
    # The reference policy as it was taken over, and the same on the device where it is asked.
    _frozen_reference: ActorCriticPolicy | None = None
    _acting_reference: ActorCriticPolicy | None = None

    @staticmethod
    def _wrap_env(env: GymEnv | VectorEnv, verbose: int = 0, monitor_wrapper: bool = True) -> VecEnv:
        if isinstance(env, VectorEnv):
            env = as_vec_env(env)
        check_observation_space(env.observation_space)
        check_action_space(env.action_space, squashed=False)
        return OnPolicyAlgorithm._wrap_env(env, verbose, monitor_wrapper)

    def _setup_model(self) -> None:
        self._check()
        check_observation_space(self.observation_space)
        check_action_space(self.action_space, squashed=bool(self.policy_kwargs.get("squash_output", False)))
        self._freeze_reference_policy()
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
        self._announce_engine()

    def _hyperparameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*HYPERPARAMETERS, *OPTIONS)}

    def _check(self) -> None:
        hyperparameters = self._hyperparameters()
        check_hyperparameters(hyperparameters, ENGINES)
        check_options(hyperparameters)
        check_rollout_size(self.n_steps, self.n_envs, normalized_over(hyperparameters) != "none")
        check_divergence_is_seen(hyperparameters, self.n_envs, self._min_batch_size())

    def _normalizes_minibatches(self) -> bool:
        return normalized_over(self._hyperparameters()) == "minibatch"

    def _freeze_reference_policy(self) -> None:
        """Take over a reference policy that was assigned: read it, copy it, put the copy where it is asked."""
        policy = self.reference_policy
        if policy is None:
            self._frozen_reference = self._acting_reference = None
        elif policy is not self._frozen_reference:
            self._frozen_reference = reference_policy(policy, self.observation_space, self.action_space)
            self.reference_policy = self._acting_reference = self._frozen_reference
            if self.device.type != "cpu":
                self._acting_reference = frozen(self._frozen_reference, self.device)

    def _reference_penalty(self) -> ReferencePenalty | None:
        policy = self._acting_reference
        return None if policy is None else ReferencePenalty(policy, float(self.reference_kl_coef))

    def _warn_about_ragged_minibatches(self) -> None:
        cut = (self.n_steps * self.n_envs, self.batch_size, self._min_batch_size(), self._normalizes_minibatches())
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
        return 2 if self._normalizes_minibatches() and self.engine != "reference" and cuts_itself else 1

    def _setup_lr_schedule(self) -> None:
        self.lr_schedule = as_schedule(self.learning_rate)
        self._scheduled_learning_rate = self.learning_rate

    def _apply_settings(self) -> None:
        """Let hyperparameters that were assigned since the last rollout take effect, or refuse them."""
        self._check()
        self._freeze_reference_policy()
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
            before = self._engine.description
            self._build_engine()
            if self._engine.description != before:
                self._announce_engine()
        if isinstance(self.rollout_buffer, RolloutBuffer):
            self.rollout_buffer.generator = self._engine.generator
            self.rollout_buffer.min_batch_size = self._min_batch_size()

    def _build_engine(self) -> None:
        if self.precision == "bf16" and (objection := bf16_objection(self.device)) is not None:
            warnings.warn(objection, stacklevel=4)
        self._engine = build_engine(self.engine, self.policy, self._generators, self.precision, self.compile)

    def _announce_engine(self) -> None:
        if self.verbose >= 1:
            print(f"Using the {self._engine.description}")

    def set_random_seed(self, seed: int | None = None) -> None:
        """Seed the global generators, the environments and the model's own generators, as far as there is a seed.

        :param seed: None draws a seed for the model's own from NumPy's global generator, which somebody may have seeded
        """
        super().set_random_seed(seed)
        if seed is None:
            # The reference engine has no generators of its own, and must leave the global one where SB3 leaves it.
            seed = 0 if self.engine == "reference" else int(np.random.randint(2**31))
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
        return [*super()._excluded_save_params(), *_NEVER_SAVED]

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
