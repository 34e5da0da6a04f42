"""Claims about PPO's objective with its gradients written out: autograd of the formulas, and every clip boundary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch as th
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sb3_ppo_from_scratch.core import diagnostics, losses
from sb3_ppo_from_scratch.core.families import Categorical, Head
from sb3_ppo_from_scratch.core.records import AdvantageStatistics, LossTerms, Minibatch, UpdateSettings
from sb3_ppo_from_scratch.update.objective import (
    POLICY_OBJECTIVES,
    VALUE_CLIPS,
    VALUE_LOSSES,
    HeadGradients,
    objective,
)
from tests.strategies import tensors
from tests.unit.core.test_families import KINDS, Batch, Kind, batches

SETTINGS = UpdateSettings(
    n_epochs=2,
    batch_size=6,
    clip_range=0.2,
    clip_range_vf=None,
    ent_coef=0.0,
    vf_coef=0.5,
    max_grad_norm=0.5,
    normalize_advantage=False,
    target_kl=None,
)
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
all_settings = st.builds(
    replace,
    st.just(SETTINGS),
    ent_coef=st.sampled_from([0.0, 0.01, 1.0]),
    vf_coef=st.sampled_from([0.0, 0.5, 1.0]),
    clip_range=st.sampled_from([0.1, 0.2]),
    clip_range_vf=st.sampled_from([None, 0.25]),
    normalize_advantage=st.booleans(),
    objective=st.sampled_from(sorted(POLICY_OBJECTIVES)),
    kl_coef=st.sampled_from([0.0, 0.5, 3.0]),
    value_clip=st.sampled_from(sorted(VALUE_CLIPS)),
    value_loss=st.sampled_from(sorted(VALUE_LOSSES)),
    advantage_statistics=st.sampled_from([None, AdvantageStatistics(0.3, 1.7)]),
)


def policy_loss(log_ratio: th.Tensor, advantages: th.Tensor, wanted: UpdateSettings) -> th.Tensor:
    """The paper's equations, written once more and without anything that they share."""
    ratio = log_ratio.exp()
    if wanted.objective == "clip":
        bounded = ratio.clamp(1 - wanted.clip_range, 1 + wanted.clip_range)
        return -th.minimum(ratio * advantages, bounded * advantages).mean()
    penalty = 0.0 if wanted.objective == "unclipped" else wanted.kl_coef * (ratio - 1 - log_ratio)
    return -(ratio * advantages - penalty).mean()


def automatic(
    kind: Kind, batch: Batch, values: th.Tensor, minibatch: Minibatch, wanted: UpdateSettings
) -> tuple[LossTerms, HeadGradients]:
    """The same from ``core.distributions`` and ``core.losses``, differentiated by torch."""
    head, leaves = batch.leaves()
    values = values.clone().requires_grad_()
    advantages = minibatch.advantages
    if wanted.normalize_advantage:
        advantages = losses.normalized_advantages(advantages)
    elif wanted.advantage_statistics is not None:
        mean, std = wanted.advantage_statistics
        advantages = (advantages - mean) / (std + 1e-8)
    log_prob, entropy = kind.differentiable(head, minibatch.actions)
    log_ratio = log_prob - minibatch.old_log_prob
    ratio = log_ratio.exp()
    policy = policy_loss(log_ratio, advantages, wanted)
    value = VALUE_CLIPS[wanted.value_clip].loss(
        values, minibatch.old_values, minibatch.returns, wanted.clip_range_vf, VALUE_LOSSES[wanted.value_loss]
    )
    bonus = losses.entropy_loss(entropy, log_prob)
    loss = losses.total_loss(policy, value, bonus, wanted.vf_coef, wanted.ent_coef)
    kl, fraction = diagnostics.approx_kl(log_ratio), diagnostics.clip_fraction(ratio, wanted.clip_range)
    by_values, by_outputs, *by_log_std = th.autograd.grad(loss, [values, *leaves])
    terms = LossTerms(loss, policy, value, bonus, kl, fraction, -log_ratio.mean())
    return terms, HeadGradients(by_outputs, by_values, by_log_std[0] if by_log_std else None)


def in_numpy(minibatch: Minibatch) -> Minibatch:
    return Minibatch(*(column.numpy() for column in minibatch))


def assert_same(ours: Any, expected: Any, tolerance: float) -> None:
    for one, other in zip(ours, expected, strict=True):
        assert (one is None) == (other is None)
        if other is not None:
            np.testing.assert_allclose(np.asarray(one), other.detach().numpy(), rtol=tolerance, atol=tolerance)


def assert_agrees(kind: Kind, batch: Batch, values: th.Tensor, minibatch: Minibatch, wanted: UpdateSettings) -> None:
    expected_terms, expected_gradients = automatic(kind, batch, values, minibatch, wanted)
    for terms, gradients in (
        objective(kind.family, batch.head, values, minibatch, wanted),
        objective(kind.family, batch.numpy()[0], values.numpy(), in_numpy(minibatch), wanted),
    ):
        assert_same(terms, expected_terms, 1e-6)  # shares of samples are counted in single precision
        assert_same(gradients, expected_gradients, 1e-8)


@every_kind
@given(data=st.data(), wanted=all_settings)
def test_terms_and_gradients_are_what_automatic_differentiation_gives(
    kind: Kind, data: st.DataObject, wanted: UpdateSettings
) -> None:
    batch = data.draw(batches(kind))
    n = len(batch.actions)
    log_prob, _ = kind.differentiable(*batch.torch())
    # A grid of quarters puts value changes on their boundary; ratios keep clear of theirs, see the next tests.
    values, old_values = ((data.draw(tensors(n)) * 4).round() / 4 for _ in range(2))
    log_ratio, advantages = data.draw(tensors(n, low=-1, high=1)), data.draw(tensors(n))
    for boundary in (1 - wanted.clip_range, 1 + wanted.clip_range):
        assume(bool(((log_ratio.exp() - boundary).abs() > 1e-6).all()))
    assume(not wanted.normalize_advantage or n < 2 or advantages.std() > 1e-2)
    minibatch = Minibatch(
        th.zeros(n), batch.actions, old_values, log_prob - log_ratio, advantages, data.draw(tensors(n))
    )
    assert_agrees(kind, batch, values, minibatch, wanted)


def fair_choice(log_ratio: float, advantage: float) -> tuple[Batch, th.Tensor, Minibatch]:
    """One sample of a choice among four, whose log-probability every formula gets to the same bit."""
    batch = Batch(Head(th.zeros(1, 4, dtype=th.float64)), th.zeros(1, 1, dtype=th.float64))
    column = th.zeros(1, dtype=th.float64)
    old_log_prob = th.log_softmax(batch.head.outputs, -1)[:, 0] - log_ratio
    return batch, column, Minibatch(column, batch.actions, column, old_log_prob, column + advantage, column + 1)


def choice_at_an_agreed_ratio(side: int, advantage: float) -> tuple[Batch, th.Tensor, Minibatch, float]:
    """A fair choice whose ratio NumPy's and torch's exponential round to the same number, and that number."""
    for log_ratio in np.linspace(0.3, 0.4, 50):
        batch, values, minibatch = fair_choice(side * log_ratio, advantage)
        exponent = th.log_softmax(batch.head.outputs, -1)[:, 0] - minibatch.old_log_prob
        if exponent.exp().item() == np.exp(exponent.item()):
            return batch, values, minibatch, exponent.exp().item()
    raise AssertionError("the two libraries never agree")


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("advantage", [2.0, 0.0, -2.0])
@pytest.mark.parametrize("beyond", [-1e-9, 0.0, 1e-9], ids=["just_inside", "on_the_boundary", "just_outside"])
def test_at_the_boundary_of_the_ratio_the_clip_begins_where_automatic_differentiation_has_it_begin(
    side: int, advantage: float, beyond: float
) -> None:
    batch, values, minibatch, actual = choice_at_an_agreed_ratio(side, advantage)
    wanted = replace(SETTINGS, clip_range=abs(actual - 1) - beyond)
    if beyond == 0.0:
        assert 1 + side * wanted.clip_range == actual
    assert_agrees(KINDS["categorical"], batch, values, minibatch, wanted)
    _, gradients = objective(Categorical(), batch.head, values, minibatch, wanted)
    holds = beyond > 0 and side * advantage > 0
    assert bool((gradients.outputs != 0).any()) == (advantage != 0 and not holds)


@pytest.mark.parametrize("change, is_held", [(0.25, False), (-0.25, False), (0.250001, True), (-0.250001, True)])
def test_at_the_boundary_of_the_value_the_slope_is_the_unclipped_one(change: float, is_held: bool) -> None:
    batch, values, minibatch = fair_choice(0.0, 1.0)
    wanted = replace(SETTINGS, clip_range_vf=0.25)
    assert_agrees(KINDS["categorical"], batch, values + change, minibatch, wanted)
    _, gradients = objective(Categorical(), batch.head, values + change, minibatch, wanted)
    assert gradients.values.item() == (0.0 if is_held else change - 1.0)


@pytest.mark.parametrize("normalized", [False, True])
def test_one_sample_alone_keeps_its_advantage(normalized: bool) -> None:
    batch, values, minibatch = fair_choice(0.0, 3.0)
    _, gradients = objective(
        Categorical(), batch.head, values, minibatch, replace(SETTINGS, normalize_advantage=normalized)
    )
    # ∂(−Â)/∂z of the chosen of four equal choices.
    assert gradients.outputs[0, 0].item() == pytest.approx(-3.0 * (1 - 0.25))


@pytest.mark.parametrize("objective_name", POLICY_OBJECTIVES)
@pytest.mark.parametrize("advantage", [2.0, -2.0])
def test_what_a_step_away_from_the_old_policy_is_worth(objective_name: str, advantage: float) -> None:
    """Worked numbers at r = e^0.4 with β = 1.5: ∂loss/∂z of the chosen of four equal choices is −slope · (1 − ¼)."""
    batch, values, minibatch = fair_choice(0.4, advantage)
    ratio = np.exp(0.4)
    slope = {
        "clip": 0.0 if advantage > 0 else ratio * advantage,
        "kl_penalty": ratio * advantage - 1.5 * (ratio - 1),
        "adaptive_kl": ratio * advantage - 1.5 * (ratio - 1),
        "unclipped": ratio * advantage,
    }[objective_name]
    wanted = replace(SETTINGS, objective=objective_name, kl_coef=1.5)
    assert_agrees(KINDS["categorical"], batch, values, minibatch, wanted)
    _, gradients = objective(Categorical(), batch.head, values, minibatch, wanted)
    assert gradients.outputs[0, 0].item() == pytest.approx(-0.75 * slope, abs=1e-12)


@every_kind
@pytest.mark.parametrize(
    "options",
    [
        {"normalize_advantage": True},
        {"objective": "kl_penalty", "kl_coef": 0.3, "value_loss": "huber", "value_clip": "openai"},
        {"objective": "unclipped", "value_loss": "half_mse", "advantage_statistics": AdvantageStatistics(0.1, 0.7)},
    ],
    ids=["default", "penalised", "unclipped"],
)
@given(data=st.data())
@settings(max_examples=25)
def test_numpy_stays_in_single_precision_whatever_number_a_coefficient_is(
    kind: Kind, options: dict[str, Any], data: st.DataObject
) -> None:
    batch = data.draw(batches(kind, np.float32))
    n = len(batch.actions)
    columns = [data.draw(tensors(n, dtype=np.float32)).numpy() for _ in range(4)]
    head, actions = batch.numpy()
    minibatch = Minibatch(columns[0], actions, columns[0], columns[0] * np.float32(0.1), columns[1], columns[2])
    wanted = replace(SETTINGS, ent_coef=0.01, clip_range_vf=0.2, **options)
    with np.errstate(over="ignore", invalid="ignore"):  # ratios of such random numbers may overflow
        _, gradients = objective(kind.family, head, columns[3], minibatch, wanted)
    assert {array.dtype for array in gradients if array is not None} == {np.dtype(np.float32)}
