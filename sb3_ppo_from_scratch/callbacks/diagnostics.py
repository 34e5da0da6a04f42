"""Diagnostics of a training run: numbers under ``diagnostics/`` in the log, and warnings that name a remedy.

Owns when things are measured, logged and warned about; must not measure or judge by itself.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter, deque
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from sb3_ppo_from_scratch.callbacks import environment
from sb3_ppo_from_scratch.callbacks.budget import TimeBudget
from sb3_ppo_from_scratch.callbacks.logged import LatestValues
from sb3_ppo_from_scratch.callbacks.measurement import (
    Probe,
    divergence_target,
    judges_clipping,
    present_learning_rate,
    probe,
    progress_remaining,
    ratio_tolerance,
    rollout_statistics,
    update_outcome,
)
from sb3_ppo_from_scratch.core.health import RolloutStatistics, Thresholds, UpdateOutcome
from sb3_ppo_from_scratch.core.judgements import CERTAIN, Verdicts
from sb3_ppo_from_scratch.core.rollout_judgements import critic_verdicts, drift_verdicts, rollout_verdicts
from sb3_ppo_from_scratch.core.setting_judgements import horizon_verdicts, setting_verdicts
from sb3_ppo_from_scratch.core.update_judgements import gradient_verdicts, minibatch_verdicts, update_verdicts
from sb3_ppo_from_scratch.networks.recognition import is_evaluable
from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from sb3_ppo_from_scratch.settings import check_count, check_number

# The learning rate has come to its end once this little of it is left.
_ANNEALED = 0.2


class DiagnosticWarning(UserWarning):
    """A training run looks unhealthy; the text says by which numbers, and what to try."""


class DiagnosticsCallback(BaseCallback):
    """Explains a run while it trains: hang it on ``learn(callback=...)`` of PPO, of stock SB3's PPO, or of its A2C.

    Logged with every rollout (see ``min_steps``): statistics of rewards, advantages and returns, the explained
    variance, the length of episodes in steps of the agent, and how far the update before has moved the policy
    (``approx_kl``, ``approx_kl_k1``, ``clip_fraction``: as the algorithm logs them, else measured on one minibatch). As
    often as ``max_cost`` permits, from one minibatch before the update: ratio, entropy, gradient norms of actor and
    critic, the factor that joint clipping leaves, and the actor's effective learning rate; not from policies whose
    ``evaluate_actions`` needs more than observations and actions (masks, recurrent states). Training is not changed by
    a bit: every parameter, gradient, statistic, mode and random generator is left as it was.

    Keys under ``diagnostics/``: reward_rms, advantage_mean, advantage_std, advantage_max, return_mean, return_std,
    return_rms, explained_variance, episode_length; approx_kl and approx_kl_k1 in nats, clip_fraction; from the
    minibatch ratio_mean, ratio_deviation, entropy in nats, entropy_share, actor_grad_norm, critic_grad_norm,
    joint_grad_norm, clip_factor, effective_learning_rate, and trunk_dominance where actor and critic share layers.

    When ``learn`` ends, what became known of the last update is dumped as a row of its own (unless ``log_interval`` is
    None), since SB3 dumps before each update.

    Each of these is warned about once, as a ``DiagnosticWarning``, where it has lasted for ``patience`` measurements
    (at once where one is proof): see ``core.judgements.CAUSES`` for all, and ``Thresholds`` for the limits.

    :param patience: measurements in a row that have to be unhealthy before a warning, ≥ 1
    :param max_cost: share of the training time that measurements through the policy may take, > 0; infinity measures
        at every update, however expensive that is
    :param min_steps: environment steps from one look at a rollout to the next, ≥ 1: of shorter rollouts not every one
        is looked at
    :param verbose: as every callback of SB3
    :param thresholds: the limits of :class:`~sb3_ppo_from_scratch.core.health.Thresholds`, by their names
    :raises ValueError: if an argument is out of range
    :raises TypeError: if one has the wrong type, or a threshold is not known; when training starts, if the algorithm
        is not on-policy
    """

    def __init__(
        self,
        *,
        patience: int = 5,
        max_cost: float = 0.005,
        min_steps: int = 256,
        verbose: int = 0,
        **thresholds: float,
    ) -> None:
        super().__init__(verbose)
        check_count("patience", patience)
        check_count("min_steps", min_steps)
        check_number("max_cost", max_cost, positive=True, finite=False)
        if unknown := thresholds.keys() - Thresholds.__dataclass_fields__.keys():
            known = ", ".join(Thresholds.__dataclass_fields__)
            raise TypeError(f"There is no threshold {', '.join(sorted(unknown))}; choose among {known}.")
        self.limits = Thresholds(**thresholds)
        self.patience = patience
        self.min_steps = min_steps
        self._budget = TimeBudget(max_cost)
        self._logged = LatestValues()
        self._random = np.random.default_rng(0)
        self._is_evaluable = False
        self._forget()

    def _forget(self) -> None:
        """Everything about the model that was watched before."""
        self._watched: OnPolicyAlgorithm | None = None
        self._streaks: Counter[str] = Counter()
        self._warned: set[str] = set()
        self._first_rollouts: list[RolloutStatistics] = []
        self._recent_rollouts: deque[RolloutStatistics] = deque()
        self._episodes = environment.EpisodeRecord()
        self._probe: Probe | None = None
        self._entropy_share = math.nan
        self._has_updated = False
        self._n_unseen = 0
        self._first_learning_rate = math.nan

    def _init_callback(self) -> None:
        if not isinstance(self.model, OnPolicyAlgorithm):
            raise TypeError(
                f"DiagnosticsCallback explains PPO and other on-policy algorithms with a rollout buffer, not "
                f"{type(self.model).__name__}; leave it out."
            )

    @property
    def _algorithm(self) -> OnPolicyAlgorithm:
        assert isinstance(self.model, OnPolicyAlgorithm)
        return self.model

    def _on_training_start(self) -> None:
        if self.locals.get("reset_num_timesteps", True) or self._watched is not self.model:
            self._forget()
        self._watched = self._algorithm
        self._budget.start()
        self._logged.attach(self.logger)
        self._is_evaluable = is_evaluable(type(self._algorithm.policy))
        env = self.training_env
        self._conclude(
            setting_verdicts(
                self._algorithm.gamma,
                environment.normalization_gamma(env),
                environment.emulator_frame_skip(env),
                environment.is_wrapped_to_skip(env),
            )
        )

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self._look_back()

    def _on_training_end(self) -> None:
        self._look_back()
        self._logged.detach(self.logger)
        if self.locals.get("log_interval") is not None:
            # The last update's values wait for a rollout that never comes.
            self.logger.dump(self.num_timesteps)

    def _on_rollout_end(self) -> None:
        """The rollout is complete, and the policy still the one that collected it."""
        model = self._algorithm
        self._episodes.add(model.rollout_buffer.rewards, model.rollout_buffer.episode_starts)
        self._n_unseen += model.rollout_buffer.rewards.size
        if self._n_unseen < self.min_steps:
            return
        self._n_unseen = 0
        self._has_updated = True  # by the time anybody looks back
        statistics = rollout_statistics(model.rollout_buffer)
        self._record({name: value for name, value in statistics._asdict().items() if name != "is_finite"})
        self._conclude(rollout_verdicts(statistics, self.limits))
        self._judge_critic(statistics)
        self._judge_drift(statistics)
        self._judge_horizon()
        self._probe = None
        if statistics.is_finite and self._is_evaluable and self._budget.affords():
            with self._budget.spending():
                self._probe = probe(model, self._random)
            self._judge_probe(self._probe, statistics)

    def _judge_critic(self, statistics: RolloutStatistics) -> None:
        """Over enough late rollouts that a single one, whose returns may hardly vary, does not decide."""
        remaining = progress_remaining(self._algorithm)
        if remaining >= self.limits.late:
            self._recent_rollouts.clear()
            return
        self._recent_rollouts.append(statistics)
        per_look = max(self._algorithm.rollout_buffer.rewards.size, self.min_steps)
        n_wanted = max(self.patience, math.ceil(self.limits.late_steps / per_look))
        while len(self._recent_rollouts) > n_wanted:
            self._recent_rollouts.popleft()
        if len(self._recent_rollouts) == n_wanted:
            self._conclude(critic_verdicts(list(self._recent_rollouts), self.limits))

    def _judge_drift(self, statistics: RolloutStatistics) -> None:
        if len(self._first_rollouts) < self.patience:
            self._first_rollouts.append(statistics)
        else:
            self._conclude(drift_verdicts(statistics, self._first_rollouts, self.limits))

    def _judge_horizon(self) -> None:
        is_ours = isinstance(self._algorithm.rollout_buffer, RolloutBuffer)
        episodes = self._episodes.latest(rewards_are_raw=is_ours)
        self._record({"episode_length": episodes.mean_length})
        self._conclude(horizon_verdicts(episodes, self._algorithm.gamma, self.limits))

    def _judge_probe(self, probed: Probe, statistics: RolloutStatistics) -> None:
        first, gradients = probed.first, probed.gradients
        self._entropy_share = first.entropy_share
        self._record(
            {
                **{
                    name: getattr(first, name) for name in ("ratio_mean", "ratio_deviation", "entropy", "entropy_share")
                },
                **{f"{name}_grad_norm": getattr(gradients, name) for name in ("actor", "critic", "joint")},
                "clip_factor": gradients.clip_factor,
                "effective_learning_rate": gradients.effective_learning_rate,
            }
        )
        if gradients.shared_critic > 0:
            self._record({"trunk_dominance": gradients.shared_critic / max(gradients.shared_actor, 1e-12)})
        tolerance = ratio_tolerance(self._algorithm, self.limits)
        self._conclude(minibatch_verdicts(first, statistics, tolerance, self.limits))
        self._conclude(gradient_verdicts(gradients, statistics.advantage_std, self.limits))

    def _look_back(self) -> None:
        """Judge the update that has just ended, if there was one."""
        if math.isnan(self._first_learning_rate):
            self._first_learning_rate = present_learning_rate(self._algorithm)
        if not self._has_updated:
            return
        self._has_updated = False
        model = self._algorithm
        outcome = self._outcome()
        self._record({name: value for name, value in outcome._asdict().items() if not math.isnan(value)})
        is_annealed = present_learning_rate(model) < _ANNEALED * self._first_learning_rate
        explores = not self._entropy_share < self.limits.min_entropy
        self._conclude(
            update_verdicts(
                outcome,
                divergence_target(model),
                judges_high_clipping=judges_clipping(model),
                judges_low_clipping=judges_clipping(model) and explores and not is_annealed,
                limits=self.limits,
            )
        )

    def _outcome(self) -> UpdateOutcome:
        logged = self._logged.take(self.logger)
        keys = [f"train/{name}" for name in UpdateOutcome._fields]
        if self._probe is None or all(key in logged for key in keys):
            return UpdateOutcome(*(float(logged.get(key, math.nan)) for key in keys))
        with self._budget.spending():
            measured = update_outcome(self._algorithm, self._probe.minibatch)
        return UpdateOutcome(*(float(logged.get(key, value)) for key, value in zip(keys, measured, strict=True)))

    def _record(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            self.logger.record(f"diagnostics/{name}", value)

    def _conclude(self, verdicts: Verdicts) -> None:
        for cause, finding in verdicts.items():
            self._streaks[cause] = 0 if finding is None else self._streaks[cause] + 1
            enough = 1 if cause in CERTAIN else self.patience
            if finding is not None and self._streaks[cause] >= enough and cause not in self._warned:
                self._warned.add(cause)
                warnings.warn(f"{cause}: {finding}", DiagnosticWarning, stacklevel=2)
