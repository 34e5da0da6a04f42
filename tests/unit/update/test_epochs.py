"""Claims about the loop over epochs and minibatches, driven by an engine that replays numbers made up here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import torch as th

from sb3_ppo_from_scratch.core.records import LossTerms, Minibatch, UpdateSettings
from sb3_ppo_from_scratch.update.epochs import run_epochs

SETTINGS = UpdateSettings(
    n_epochs=2,
    batch_size=64,
    clip_range=0.2,
    clip_range_vf=None,
    ent_coef=0.0,
    vf_coef=0.5,
    max_grad_norm=0.5,
    normalize_advantage=True,
    target_kl=None,
)
MINIBATCH = Minibatch(*[th.zeros(1)] * 6)


class ReplayEngine:
    """Gives the terms it was told to give, and writes down what was asked of it."""

    def __init__(self, approx_kls: Iterable[float]) -> None:
        self._approx_kls = list(approx_kls)
        self._evaluated = 0
        self.calls: list[str] = []

    def begin(self, rollout_buffer: Any, batch_size: int) -> None:
        self._serve, self._batch_size = rollout_buffer, batch_size

    def minibatches(self) -> Iterator[Minibatch]:
        yield from self._serve(self._batch_size)

    def prepared(self, minibatch: Minibatch) -> Minibatch:
        return minibatch

    def evaluate(self, minibatch: Minibatch, settings: UpdateSettings) -> LossTerms:
        number = self._evaluated
        self._evaluated += 1
        self.calls.append(f"evaluate {number}")
        value = float(number)
        return LossTerms(
            loss=th.tensor(value),
            policy_loss=th.tensor(value + 0.1),
            value_loss=th.tensor(value + 0.2),
            entropy_loss=th.tensor(value + 0.3),
            approx_kl=th.tensor(self._approx_kls[number]),
            clip_fraction=th.tensor(value + 0.5),
            approx_kl_k1=th.tensor(-self._approx_kls[number]),
        )

    def step(self, settings: UpdateSettings) -> th.Tensor:
        self.calls.append(f"step {self._evaluated - 1}")
        return th.tensor(10.0 * self._evaluated)

    def finish(self) -> None:
        self.calls.append("finish")


def three_minibatches(batch_size: int) -> Iterator[Minibatch]:
    yield from [MINIBATCH] * 3


def settings(**changes: Any) -> UpdateSettings:
    return dataclasses.replace(SETTINGS, **changes)


def test_every_minibatch_of_every_epoch_is_scored_and_then_stepped() -> None:
    engine = ReplayEngine([0.0] * 6)
    report = run_epochs(engine, three_minibatches, SETTINGS)
    assert engine.calls == [*(f"{verb} {number}" for number in range(6) for verb in ("evaluate", "step")), "finish"]
    assert report.n_epochs == 2
    assert report.stopping_kl is None


def test_each_epoch_asks_anew_for_minibatches_of_the_batch_size() -> None:
    asked = []

    def minibatches(batch_size: int) -> Iterator[Minibatch]:
        asked.append(batch_size)
        return three_minibatches(batch_size)

    run_epochs(ReplayEngine([0.0] * 12), minibatches, settings(n_epochs=4, batch_size=17))
    assert asked == [17] * 4


def test_losses_and_clip_fraction_are_means_over_all_minibatches_and_loss_is_the_last() -> None:
    report = run_epochs(ReplayEngine([0.0] * 6), three_minibatches, SETTINGS)
    assert report.policy_gradient_loss == pytest.approx(2.6)
    assert report.value_loss == pytest.approx(2.7)
    assert report.entropy_loss == pytest.approx(2.8)
    assert report.clip_fraction == pytest.approx(3.0)
    assert report.loss == 5.0


def test_approx_kl_is_the_mean_of_the_last_epoch_only() -> None:
    report = run_epochs(ReplayEngine([9.0, 9.0, 9.0, 0.1, 0.2, 0.3]), three_minibatches, SETTINGS)
    assert report.approx_kl == pytest.approx(0.2)


def test_k1_is_the_mean_of_the_last_epoch_only() -> None:
    report = run_epochs(ReplayEngine([9.0, 9.0, 9.0, 0.1, 0.2, 0.3]), three_minibatches, SETTINGS)
    assert report.approx_kl_k1 == pytest.approx(-0.2)


def test_the_gradient_norm_is_the_mean_over_the_steps_that_were_taken() -> None:
    assert run_epochs(ReplayEngine([0.0] * 6), three_minibatches, SETTINGS).grad_norm == 35.0
    stopped = run_epochs(ReplayEngine([0.0, 0.0, 9.0]), three_minibatches, settings(target_kl=0.1))
    assert stopped.grad_norm == 15.0


def test_an_update_without_a_step_has_no_gradient_norm() -> None:
    report = run_epochs(ReplayEngine([9.0]), three_minibatches, settings(target_kl=0.1))
    assert np.isnan(report.grad_norm)
    assert report.approx_kl == 9.0


def test_every_minibatch_is_reported_and_which_of_them_began_an_epoch() -> None:
    report = run_epochs(ReplayEngine([0.0, 0.1, 0.2, 0.3, 9.0]), three_minibatches, settings(target_kl=1.0))
    assert report.minibatches.approx_kl.tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3, 9.0])
    assert report.minibatches.loss.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert report.epoch_starts == (0, 3)


@pytest.mark.parametrize("kls", [[0.1] * 3 + [0.7] * 3, [0.3, 0.1, 0.2] * 2])
def test_approx_kl_is_averaged_in_single_precision_as_stable_baselines3_does(kls: list[float]) -> None:
    report = run_epochs(ReplayEngine(kls), three_minibatches, SETTINGS)
    assert report.approx_kl == float(np.mean([np.float32(kl) for kl in kls[3:]]))


@pytest.mark.parametrize(
    "stop_at, n_epochs", [pytest.param(0, 1, id="at once"), pytest.param(2, 1, id="end"), pytest.param(4, 2, id="mid")]
)
def test_a_kl_beyond_the_target_stops_everything_after_scoring_and_before_stepping(stop_at: int, n_epochs: int) -> None:
    kls = [0.01] * stop_at + [0.5] + [0.01] * 10
    engine = ReplayEngine(kls)
    report = run_epochs(engine, three_minibatches, settings(n_epochs=4, target_kl=0.1))
    assert engine.calls[-2:] == [f"evaluate {stop_at}", "finish"]
    assert sum(call.startswith("step") for call in engine.calls) == stop_at
    assert report.n_epochs == n_epochs
    assert report.stopping_kl == pytest.approx(0.5)
    # The minibatch that stopped the update still counts in every average.
    assert report.loss == stop_at
    assert report.value_loss == pytest.approx(stop_at / 2 + 0.2)
    assert report.approx_kl == pytest.approx(np.mean(kls[3 * (n_epochs - 1) : stop_at + 1]))


@pytest.mark.parametrize("approx_kl, stops", [(0.149, False), (0.151, True)])
def test_the_bound_is_one_and_a_half_times_the_target(approx_kl: float, stops: bool) -> None:
    report = run_epochs(ReplayEngine([approx_kl] * 6), three_minibatches, settings(target_kl=0.1))
    assert (report.stopping_kl is not None) == stops


def test_the_bound_is_rounded_to_single_precision_before_it_is_compared() -> None:
    """In float32 0.6 is not above 1.5 × 0.4, though its digits in double precision are."""
    assert float(np.float32(0.6)) > 1.5 * 0.4
    report = run_epochs(ReplayEngine([0.6] * 6), three_minibatches, settings(target_kl=0.4))
    assert report.stopping_kl is None


def test_without_a_target_no_divergence_stops_the_update() -> None:
    report = run_epochs(ReplayEngine([1e6] * 6), three_minibatches, SETTINGS)
    assert (report.n_epochs, report.stopping_kl) == (2, None)
