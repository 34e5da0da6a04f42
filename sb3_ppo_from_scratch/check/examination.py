"""One rollout and one update of a model, and what is wrong with them.

Owns the order of measurements and findings; must not know which causes count, nor how the result is shown.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ppo_from_scratch.algorithm import PPO
from sb3_ppo_from_scratch.callbacks import environment
from sb3_ppo_from_scratch.callbacks.measurement import (
    Probe,
    probe,
    ratio_tolerance,
    rollout_statistics,
    update_outcome,
)
from sb3_ppo_from_scratch.core.health import Episodes, Finding, RolloutStatistics, Thresholds, UpdateOutcome
from sb3_ppo_from_scratch.core.judgements import CAUSES, Verdicts
from sb3_ppo_from_scratch.core.rollout_judgements import rollout_verdicts
from sb3_ppo_from_scratch.core.setting_judgements import horizon_verdicts, setting_verdicts
from sb3_ppo_from_scratch.core.update_judgements import gradient_verdicts, minibatch_verdicts
from sb3_ppo_from_scratch.rollout.actors import DivergedError

# Far more steps than are taken, so that schedules are at their beginning.
_ENDLESS = 10**12


class Examination(NamedTuple):
    """Everything that was measured; None what something that is not finite kept from being measured.

    :param statistics: of the rollout
    :param probe: one minibatch before the update
    :param outcome: of the update, on that minibatch
    :param episodes: that ended in the rollout
    :param findings: what is wrong, the likeliest cause first
    """

    statistics: RolloutStatistics | None
    probe: Probe | None
    outcome: UpdateOutcome | None
    episodes: Episodes | None
    findings: list[Finding]


class NotFiniteError(Exception):
    """NaN or infinity where it was first seen."""

    def finding(self) -> Finding:
        """The same as a finding."""
        return Finding("not_finite", f"{self}.", "Find out where it comes from before training any further.")


def examination(model: PPO, limits: Thresholds, counting: Container[str]) -> Examination:
    """Let a model act and learn once, and judge what is seen.

    :param model: with environments; it is trained, and not to be used afterwards
    :param limits: of health
    :param counting: the causes that are looked for
    :return: numbers and findings
    """
    watch = _OneUpdate()
    not_finite: list[Finding] = []
    try:
        _check_parameters(model, "The model's parameters contain")
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is a finding
            model.learn(_ENDLESS, callback=watch, log_interval=None)
    except NotFiniteError as error:
        not_finite = [error.finding()]
    except ValueError as error:
        # What torch's distributions say of parameters that are no numbers has no class of its own.
        if not (isinstance(error, DivergedError) or "Expected parameter" in str(error)):
            raise
        not_finite = [NotFiniteError("The policy's outputs are NaN or infinity").finding()]
    verdicts = _verdicts(model, watch, limits)
    found = [*not_finite, *(verdicts.get(cause) for cause in CAUSES if cause in counting)]
    findings = [finding for finding in found if finding is not None]
    return Examination(watch.statistics, watch.probe, watch.outcome, watch.episodes, findings)


def _verdicts(model: PPO, watch: _OneUpdate, limits: Thresholds) -> Verdicts:
    env = model.get_env()
    assert env is not None
    verdicts = setting_verdicts(
        model.gamma,
        environment.normalization_gamma(env),
        environment.emulator_frame_skip(env),
        environment.is_wrapped_to_skip(env),
    )
    if watch.statistics is not None and watch.episodes is not None:
        verdicts |= rollout_verdicts(watch.statistics, limits)
        verdicts |= horizon_verdicts(watch.episodes, model.gamma, limits)
        if watch.probe is not None:
            verdicts |= minibatch_verdicts(watch.probe.first, watch.statistics, ratio_tolerance(model, limits), limits)
            verdicts |= gradient_verdicts(watch.probe.gradients, watch.statistics.advantage_std, limits)
    return verdicts


class _OneUpdate(BaseCallback):
    """Measures a rollout and the update that follows, then stops the training."""

    statistics: RolloutStatistics | None = None
    probe: Probe | None = None
    outcome: UpdateOutcome | None = None
    episodes: Episodes | None = None

    @property
    def _ppo(self) -> PPO:
        assert isinstance(self.model, PPO)
        return self.model

    def _on_rollout_start(self) -> None:
        if self.statistics is None:
            _check_arrays("The first observation contains", self._ppo._last_obs)
            return
        _check_parameters(self._ppo, "A single update leaves the parameters with")
        if self.probe is not None:
            self.outcome = update_outcome(self._ppo, self.probe.minibatch)

    def _on_step(self) -> bool:
        _check_arrays(f"Step {self.n_calls} of the environment returns rewards with", self.locals["rewards"])
        _check_arrays(f"Step {self.n_calls} of the environment returns observations with", self.locals["new_obs"])
        return self.statistics is None

    def _on_rollout_end(self) -> None:
        model = self._ppo
        buffer = model.rollout_buffer
        record = environment.EpisodeRecord()
        record.add(buffer.rewards, buffer.episode_starts)
        self.episodes = record.latest(rewards_are_raw=True)
        self.statistics = rollout_statistics(buffer)
        if self.statistics.is_finite:
            self.probe = probe(model, np.random.default_rng(0))


def _check_arrays(where: str, arrays: Any) -> None:
    for array in arrays.values() if isinstance(arrays, dict) else (arrays,):
        if not np.isfinite(np.asarray(array, dtype=np.float64)).all():
            raise NotFiniteError(f"{where} NaN or infinity")


def _check_parameters(model: PPO, where: str) -> None:
    if not all(bool(th.isfinite(parameter).all()) for parameter in model.policy.parameters()):
        raise NotFiniteError(f"{where} NaN or infinity")
