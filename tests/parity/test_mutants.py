"""Faults seeded into the package one at a time: each must break parity, or the parity tests prove nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch as th

from sb3_ppo_from_scratch.algorithm import PPO
from sb3_ppo_from_scratch.core import diagnostics, losses
from sb3_ppo_from_scratch.core.records import LossTerms, UpdateReport, UpdateSettings
from sb3_ppo_from_scratch.rollout import buffer, collector
from sb3_ppo_from_scratch.update import objective, reference
from tests.parity.comparison import Case, Run, differences, trained_ours, trained_stock

Patch = pytest.MonkeyPatch

# Everything at once that a fault could hide behind: several environments, both kinds of episode ends, every
# coefficient, value clipping. The rollout ends in the middle of an episode.
CASE = Case(
    {"action": "box", "episode_length": 11, "time_limit": 5},
    n_envs=3,
    settings={"ent_coef": 0.02, "clip_range": 0.1, "clip_range_vf": 0.1, "max_grad_norm": 0.3, "gamma": 0.97},
)
TERMINATING = replace(CASE, environment={"action": "box", "episode_length": 5})
STOPPING = replace(CASE, settings={**CASE.settings, "target_kl": 0.02})


@pytest.fixture(scope="module", params=[CASE, TERMINATING, STOPPING], ids=["truncating", "terminating", "stopping"])
def sound_case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(scope="module")
def stock_runs() -> dict[int, Run]:
    return {id(case): trained_stock(case) for case in (CASE, TERMINATING, STOPPING)}


def gae_with(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., Any]:
    names = ("rewards", "values", "episode_starts", "last_values", "dones", "gamma", "gae_lambda")
    sound = buffer.compute_gae

    def mutated(*arguments: Any) -> Any:
        named = dict(zip(names, arguments, strict=True))
        return sound(**{**named, **change(named)})

    return mutated


def biased_deviation(patch: Patch) -> None:
    patch.setattr(losses, "normalized_advantages", lambda x: (x - x.mean()) / (x.std(unbiased=False) + 1e-8))


def smaller_epsilon(patch: Patch) -> None:
    patch.setattr(losses, "normalized_advantages", lambda x: (x - x.mean()) / (x.std() + 1e-5))


def raw_advantages(patch: Patch) -> None:
    patch.setattr(losses, "normalized_advantages", lambda x: x)


def lambda_off_by_a_thousandth(patch: Patch) -> None:
    patch.setattr(buffer, "compute_gae", gae_with(lambda a: {"gae_lambda": a["gae_lambda"] - 0.001}))


def done_mask_one_step_late(patch: Patch) -> None:
    patch.setattr(
        buffer, "compute_gae", gae_with(lambda a: {"episode_starts": np.roll(a["episode_starts"], 1, axis=0)})
    )


def done_mask_dropped(patch: Patch) -> None:
    patch.setattr(buffer, "compute_gae", gae_with(lambda a: {"episode_starts": np.zeros_like(a["episode_starts"])}))


def last_value_dropped(patch: Patch) -> None:
    patch.setattr(buffer, "compute_gae", gae_with(lambda a: {"last_values": np.zeros_like(a["last_values"])}))


def monte_carlo_returns(patch: Patch) -> None:
    sound = buffer.compute_gae

    def mutated(*arguments: Any) -> Any:
        advantages, _ = sound(*arguments)
        return advantages, sound(*arguments[:-1], 1.0)[1]

    patch.setattr(buffer, "compute_gae", mutated)


def no_bootstrap_at_time_limits(patch: Patch) -> None:
    patch.setattr(collector, "time_limit_bootstrap", lambda *_: None)


def undiscounted_bootstrap(patch: Patch) -> None:
    sound = collector.time_limit_bootstrap
    patch.setattr(collector, "time_limit_bootstrap", lambda *arguments: sound(*arguments[:-1], 1.0))


def one_order_for_every_epoch(patch: Patch) -> None:
    sound = buffer.RolloutBuffer.get

    def mutated(self: buffer.RolloutBuffer, batch_size: int | None = None) -> Iterator[Any]:
        # Every rollout has new advantages.
        if getattr(self, "shuffled", None) is not self.advantages:
            self.shuffled, self.first_order = self.advantages, np.random.get_state()
        np.random.set_state(self.first_order)
        yield from sound(self, batch_size)

    patch.setattr(buffer.RolloutBuffer, "get", mutated)


def step_major_rows(patch: Patch) -> None:
    patch.setattr(buffer, "rows", lambda array, indices: array.reshape(-1, *array.shape[2:])[indices])


def halved_value_loss(patch: Patch) -> None:
    patch.setitem(objective.VALUE_LOSSES, "mse", objective.VALUE_LOSSES["half_mse"])


def larger_of_both_value_losses(patch: Patch) -> None:
    patch.setitem(objective.VALUE_CLIPS, "sb3", objective.VALUE_CLIPS["openai"])


def maximum_of_both_surrogates(patch: Patch) -> None:
    def mutated(ratio: th.Tensor, advantages: th.Tensor, clip_range: float) -> th.Tensor:
        return -th.max(advantages * ratio, advantages * ratio.clamp(1 - clip_range, 1 + clip_range)).mean()

    patch.setattr(losses, "clipped_surrogate_loss", mutated)


def unclipped_surrogate(patch: Patch) -> None:
    patch.setattr(
        losses, "clipped_surrogate_loss", lambda ratio, advantages, _: losses.surrogate_loss(ratio, advantages)
    )


def entropy_penalised(patch: Patch) -> None:
    sound = losses.entropy_loss
    patch.setattr(losses, "entropy_loss", lambda *arguments: -sound(*arguments))


def gradient_norm_unclipped(patch: Patch) -> None:
    patch.setattr(th.nn.utils, "clip_grad_norm_", lambda *_: None)


def actions_stored_after_clipping(patch: Patch) -> None:
    sound = collector.store_step

    def mutated(rollout_buffer: Any, observations: Any, actions: Any, *rest: Any) -> None:
        sound(rollout_buffer, observations, actions.clip(-1.0, 1.0), *rest)

    patch.setattr(collector, "store_step", mutated)


def first_order_kl(patch: Patch) -> None:
    patch.setattr(diagnostics, "approx_kl", lambda log_ratio, _: diagnostics.approx_kl_k1(log_ratio))


def approx_kl_off_by_rounding(patch: Patch) -> None:
    sound = PPO._log_update

    def mutated(self: PPO, report: UpdateReport, settings: UpdateSettings) -> None:
        sound(self, replace(report, approx_kl=report.approx_kl * (1 + 1e-7)), settings)

    patch.setattr(PPO, "_log_update", mutated)


def clip_fraction_of_one_side(patch: Patch) -> None:
    patch.setattr(diagnostics, "clip_fraction", lambda ratio, clip_range: (ratio > 1 + clip_range).float().mean())


def step_taken_before_the_stop(patch: Patch) -> None:
    sound = reference.ReferenceEngine.evaluate

    def mutated(self: reference.ReferenceEngine, minibatch: Any, settings: UpdateSettings) -> LossTerms:
        terms = sound(self, minibatch, settings)
        if terms.approx_kl > 1.5 * settings.target_kl:
            self.step(settings)
        return terms

    patch.setattr(reference.ReferenceEngine, "evaluate", mutated)


FAULTS_OF_THE_MODEL = [
    (biased_deviation, CASE),
    (smaller_epsilon, CASE),
    (raw_advantages, CASE),
    (lambda_off_by_a_thousandth, CASE),
    (done_mask_one_step_late, TERMINATING),
    (done_mask_dropped, TERMINATING),
    (last_value_dropped, CASE),
    (monte_carlo_returns, CASE),
    (no_bootstrap_at_time_limits, CASE),
    (undiscounted_bootstrap, CASE),
    (one_order_for_every_epoch, CASE),
    (step_major_rows, CASE),
    (halved_value_loss, CASE),
    (larger_of_both_value_losses, CASE),
    (maximum_of_both_surrogates, CASE),
    (unclipped_surrogate, CASE),
    (entropy_penalised, CASE),
    (gradient_norm_unclipped, CASE),
    (actions_stored_after_clipping, CASE),
    (first_order_kl, STOPPING),
    (step_taken_before_the_stop, STOPPING),
]
FAULTS_OF_THE_LOG = [first_order_kl, approx_kl_off_by_rounding, clip_fraction_of_one_side]


def test_without_a_fault_there_is_no_difference(sound_case: Case, stock_runs: dict[int, Run]) -> None:
    assert differences(trained_ours(sound_case), stock_runs[id(sound_case)]) == []


@pytest.mark.parametrize("fault, case", FAULTS_OF_THE_MODEL, ids=lambda value: getattr(value, "__name__", ""))
def test_a_fault_shows_in_the_parameters(
    fault: Callable[[Patch], None], case: Case, stock_runs: dict[int, Run], monkeypatch: Patch
) -> None:
    stock = stock_runs[id(case)]
    fault(monkeypatch)
    found = differences(trained_ours(case), stock)
    assert any(entry.startswith("policy/") for entry in found)


@pytest.mark.parametrize("fault", FAULTS_OF_THE_LOG, ids=lambda fault: fault.__name__)
def test_a_fault_of_the_log_shows_in_the_log_alone(
    fault: Callable[[Patch], None], stock_runs: dict[int, Run], monkeypatch: Patch
) -> None:
    stock = stock_runs[id(CASE)]
    fault(monkeypatch)
    found = differences(trained_ours(CASE), stock)
    assert found
    assert all(entry.startswith("log/") for entry in found)
