"""PPO as Stable-Baselines3's users know it: its arguments, their defaults and their meaning.

Owns the constructor; what the arguments do is in ``training`` and below.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import torch as th
from stable_baselines3.common.policies import (
    ActorCriticCnnPolicy,
    ActorCriticPolicy,
    BasePolicy,
    MultiInputActorCriticPolicy,
)
from stable_baselines3.common.type_aliases import GymEnv, Schedule

from sb3_ppo_from_scratch.training import TrainingLoop


class PPO(TrainingLoop):
    """Proximal Policy Optimization with a clipped surrogate by default, in place of ``stable_baselines3.PPO``.

    Source: Schulman et al. 2017 (arXiv:1707.06347). Arguments, defaults, log keys and saved files are those of SB3
    2.9, and a few more. Hyperparameters may be assigned at any time, or passed to :meth:`load`; they take effect at the
    next update or rollout that reads them.

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
    :param rollout_buffer_class: a class with the interface of SB3's; None, or SB3's own ``RolloutBuffer`` or
        ``DictRolloutBuffer``, for ours
    :param rollout_buffer_kwargs: further arguments of its constructor
    :param target_kl: > 0, stop an update once the approximate KL exceeds 1.5 × this, in nats; None never stops
    :param stats_window_size: episodes that the logged means cover
    :param tensorboard_log: folder of the TensorBoard log; None for none
    :param policy_kwargs: further arguments of the policy's constructor
    :param verbose: 0 silent, 1 info, 2 debug
    :param seed: of Python's, NumPy's and torch's generators, the model's own, the action space and the environments;
        None leaves all of them to chance
    :param device: "cpu", "cuda", "auto", ...
    :param _init_setup_model: build the networks now (``load`` builds them later)
    :param engine: "auto", free to be faster than SB3, or "reference", bit for bit SB3 2.9 but for its faults, which are
        mended
    :param precision: "fp32", or "bf16" for the features extractor and the hidden layers, in rollout and update alike;
        heads, softmax, value and loss stay in fp32 (only with ``engine="auto"`` and policies that it recognises)
    :param compile: translate the update with ``torch.compile``, which takes seconds to minutes at first (likewise)
    :param objective: "clip", the paper's eq. 7; "kl_penalty", eq. 8; "adaptive_kl", eq. 8 with a β that follows
        ``kl_target``; "unclipped", eq. 6. The divergence of eq. 8 is its estimate mean[(r − 1) − log r]
    :param kl_coef: β ≥ 0 of the two objectives of eq. 8, in units of the normalised advantage per nat; "adaptive_kl"
        starts from it and assigns it after each update
    :param kl_target: > 0, in nats: after an update that ended with the mean divergence d (``train/approx_kl``),
        "adaptive_kl" halves β if d < kl_target / 1.5 and doubles it if d > 1.5 · kl_target, within [1e-8, 1e8]
    :param desired_kl: > 0, in nats: after an update, divide the learning rate by 1.5 if d > 2 · desired_kl, multiply it
        by 1.5 if 0 < d < desired_kl / 2, within [1e-5, 1e-2] (rsl_rl's rule, which it applies before each minibatch);
        needs a constant ``learning_rate`` to start from, and what it makes of that is ``learning_rate_factor``, saved
        with the model; None does nothing
    :param value_clip: what ``clip_range_vf`` does: "sb3", the clipped prediction replaces the prediction; "openai", the
        larger of both losses counts
    :param value_loss: of the critic's error e: "mse", e²; "half_mse", ½e²; "huber", ½e² up to |e| = 1, then |e| − ½
    :param advantage_normalization: whiten the advantages of each "minibatch", once those of the whole "rollout", or
        "none"; with ``normalize_advantage=False`` none, too
    :param truncation: "bootstrap" adds γ·V(terminal observation) to the reward where a time limit ends an episode;
        "terminal" treats that end like any other
    :param reference_policy: an ``ActorCriticPolicy``, or the path of a saved PPO or A2C to take it from; it is copied,
        never trained, and saved with the model
    :param reference_kl_coef: c ≥ 0, in units of reward per nat: r_t − c·(log π(a_t|s_t) − log π_ref(a_t|s_t)) is learnt
        from, while Monitor and callbacks see the environment's r_t
    :param log_after_train: write the rows of the log after each update instead of before it, so that the last update is
        among them
    :param log_epochs: log ``train/approx_kl_epoch_{i}`` and ``train/clip_fraction_epoch_{i}`` of each epoch i = 0, 1, …
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
        objective: str = "clip",
        kl_coef: float = 1.0,
        kl_target: float = 0.01,
        desired_kl: float | None = None,
        value_clip: str = "sb3",
        value_loss: str = "mse",
        advantage_normalization: str = "minibatch",
        truncation: str = "bootstrap",
        reference_policy: ActorCriticPolicy | str | Path | None = None,
        reference_kl_coef: float = 0.0,
        log_after_train: bool = False,
        log_epochs: bool = False,
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
        self.objective = objective
        self.kl_coef = kl_coef
        self.kl_target = kl_target
        self.desired_kl = desired_kl
        self.value_clip = value_clip
        self.value_loss = value_loss
        self.advantage_normalization = advantage_normalization
        self.truncation = truncation
        self.reference_policy = reference_policy
        self.reference_kl_coef = reference_kl_coef
        self.log_after_train = log_after_train
        self.log_epochs = log_epochs
        self.learning_rate_factor = 1.0
        if _init_setup_model:
            self._setup_model()
