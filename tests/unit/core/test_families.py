"""Claims about the action families with written-out gradients: autograd, both libraries, and extreme parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch as th
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_ppo_from_scratch.core import distributions as d
from sb3_ppo_from_scratch.core.families import ActionFamily, Bernoulli, Categorical, Head, MultiCategorical
from sb3_ppo_from_scratch.core.gaussians import DiagonalGaussian, StateDependentGaussian
from tests.strategies import tensors

NVEC = (2, 3)
N_LATENT = 3
Differentiable = Callable[[Head, th.Tensor], tuple[th.Tensor, th.Tensor]]


@dataclass(frozen=True)
class Kind:
    """A family, and the same log-probability and entropy [B] as ``core.distributions`` leaves them to autograd."""

    family: ActionFamily
    n_outputs: int
    choices: tuple[int, ...]  # of each dimension of an action; 0 for a real number
    differentiable: Differentiable
    log_std_shape: tuple[int, ...] | None = None

    @property
    def is_gaussian(self) -> bool:
        return self.choices[0] == 0

    @property
    def is_state_dependent(self) -> bool:
        return self.log_std_shape is not None and len(self.log_std_shape) == 2


def _gaussian(head: Head, actions: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
    log_std = head.log_std
    if head.latent is not None:
        log_std = d.state_dependent_log_std(head.latent, log_std.expand(N_LATENT, head.outputs.shape[-1]))
    return d.gaussian_log_prob(head.outputs, log_std, actions), d.gaussian_entropy(log_std.expand_as(head.outputs))


KINDS = {
    "categorical": Kind(
        Categorical(),
        4,
        (4,),
        lambda head, a: (d.categorical_log_prob(head.outputs, a[:, 0]), d.categorical_entropy(head.outputs)),
    ),
    "multi_categorical": Kind(
        MultiCategorical(NVEC),
        sum(NVEC),
        NVEC,
        lambda head, a: (
            d.multi_categorical_log_prob(head.outputs, a, NVEC),
            d.multi_categorical_entropy(head.outputs, NVEC),
        ),
    ),
    "bernoulli": Kind(
        Bernoulli(),
        3,
        (2, 2, 2),
        lambda head, a: (d.bernoulli_log_prob(head.outputs, a), d.bernoulli_entropy(head.outputs)),
    ),
    "gaussian": Kind(DiagonalGaussian(), 2, (0, 0), _gaussian, (2,)),
    "state_dependent": Kind(StateDependentGaussian(1e-6), 2, (0, 0), _gaussian, (N_LATENT, 2)),
    "state_dependent_one_deviation": Kind(StateDependentGaussian(1e-6), 2, (0, 0), _gaussian, (N_LATENT, 1)),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@dataclass(frozen=True)
class Batch:
    head: Head
    actions: th.Tensor

    def numpy(self) -> tuple[Head, Any]:
        return Head(*(None if part is None else part.numpy() for part in self.head)), self.actions.numpy()

    def torch(self) -> tuple[Head, th.Tensor]:
        return self.head, self.actions

    def leaves(self) -> tuple[Head, list[th.Tensor]]:
        """The same head on copies of what is differentiated by, and the copies; features are not."""
        outputs, log_std = (None if part is None else part.clone().requires_grad_() for part in self.head[:2])
        return self.head._replace(outputs=outputs, log_std=log_std), [
            part for part in (outputs, log_std) if part is not None
        ]


@st.composite
def batches(draw: st.DrawFn, kind: Kind, dtype: Any = np.float64, spread: float = 5.0) -> Batch:
    """Any parameters, and actions as rollout buffers store them: in floats."""
    n = draw(st.integers(1, 6))
    outputs = draw(tensors(n, kind.n_outputs, low=-spread, high=spread, dtype=dtype))
    if kind.is_gaussian:
        assert kind.log_std_shape is not None
        log_std = draw(tensors(*kind.log_std_shape, low=-3, high=2, dtype=dtype))
        latent = draw(tensors(n, N_LATENT, low=-1, high=1, dtype=dtype)) if kind.is_state_dependent else None
        if latent is not None:
            latent[:, 0] = 1.0  # features of 0 leave a deviation of √ε, which turns rounding into errors
        return Batch(Head(outputs, log_std, latent), draw(tensors(n, kind.n_outputs, dtype=dtype)))
    rows = st.tuples(*(st.integers(0, k - 1) for k in kind.choices))
    return Batch(Head(outputs), th.tensor(draw(st.lists(rows, min_size=n, max_size=n)), dtype=outputs.dtype))


def as_tensor(array: Any) -> th.Tensor:
    return array if isinstance(array, th.Tensor) else th.as_tensor(np.asarray(array))


@every_kind
@given(data=st.data())
def test_log_probability_and_entropy_are_those_of_the_differentiable_formulas(kind: Kind, data: st.DataObject) -> None:
    batch = data.draw(batches(kind))
    log_prob, entropy = kind.differentiable(*batch.torch())
    for arguments in (batch.numpy(), batch.torch()):
        evaluation = kind.family.evaluate(*arguments)
        th.testing.assert_close(as_tensor(evaluation.log_prob), log_prob, rtol=1e-10, atol=1e-10)
        ours = as_tensor(evaluation.entropy).expand_as(entropy)
        th.testing.assert_close(ours, entropy, rtol=1e-10, atol=1e-10)


@every_kind
@given(data=st.data(), entropy_gradient=st.just(0.0) | st.floats(-2, 2, width=32))
def test_gradients_are_what_automatic_differentiation_gives(
    kind: Kind, data: st.DataObject, entropy_gradient: float
) -> None:
    batch = data.draw(batches(kind))
    log_prob_gradient = data.draw(tensors(len(batch.actions)))
    head, leaves = batch.leaves()
    log_prob, entropy = kind.differentiable(head, batch.actions)
    total = (log_prob_gradient * log_prob).sum() + entropy_gradient * entropy.sum()
    expected = th.autograd.grad(total, leaves)

    for arguments, slope in ((batch.numpy(), log_prob_gradient.numpy()), (batch.torch(), log_prob_gradient)):
        evaluation = kind.family.evaluate(*arguments)
        by_outputs, by_log_std = kind.family.gradients(evaluation, slope, entropy_gradient)
        assert type(by_outputs) is type(arguments[1])
        ours = [part for part in (by_outputs, by_log_std) if part is not None]
        for one, other in zip(ours, expected, strict=True):
            scale = max(1.0, float(other.abs().max()))
            th.testing.assert_close(as_tensor(one), other, rtol=1e-9, atol=1e-9 * scale)


@every_kind
@given(data=st.data())
@settings(max_examples=50)
def test_in_single_precision_both_libraries_agree_and_leave_their_arguments_alone(
    kind: Kind, data: st.DataObject
) -> None:
    batch = data.draw(batches(kind, np.float32))
    slope = th.linspace(-1, 1, len(batch.actions))
    arguments = [part for part in (*batch.head, batch.actions) if part is not None]
    untouched = [argument.clone() for argument in arguments]
    in_numpy, in_torch = kind.family.evaluate(*batch.numpy()), kind.family.evaluate(*batch.torch())
    pairs = [
        *zip(in_numpy[:2], in_torch[:2], strict=True),
        *zip(
            kind.family.gradients(in_numpy, slope.numpy(), 0.5),
            kind.family.gradients(in_torch, slope, 0.5),
            strict=True,
        ),
    ]
    for ours, theirs in pairs:
        if ours is None:
            assert theirs is None
            continue
        assert ours.dtype == np.float32
        scale = max(1.0, float(th.as_tensor(theirs).abs().max()))
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-5, atol=1e-5 * scale)
    for argument, copy in zip(arguments, untouched, strict=True):
        assert th.equal(argument, copy)


@every_kind
@pytest.mark.parametrize("size", [1e2, 1e4, 1e30])
def test_extreme_parameters_stay_finite_and_raise_no_warning(kind: Kind, size: float) -> None:
    pattern = np.resize(np.array([1.0, -1.0, 0.0, 1.0, -1.0], np.float32), (4, kind.n_outputs))
    outputs = pattern * np.float32(1.0 if kind.is_gaussian else size)
    # A deviation of e⁻²⁰ or e²⁰ is as far as the square of what it standardises stays within single precision.
    head = Head(outputs)
    if kind.log_std_shape is not None:
        head = head._replace(log_std=np.resize(np.array([-20.0, 20.0], np.float32), kind.log_std_shape))
    generator = np.random.default_rng(0)
    if kind.is_state_dependent:
        matrices = np.exp(head.log_std) * generator.normal(size=(4, N_LATENT, 2)).astype(np.float32)
        head = head._replace(latent=np.ones((4, N_LATENT), np.float32), exploration=matrices)
    actions = kind.family.sample(head, generator)
    in_torch = Head(*(None if part is None else th.from_numpy(part) for part in head))
    for arguments in ((head, actions), (in_torch, th.as_tensor(actions))):
        evaluation = kind.family.evaluate(*arguments)
        slope = arguments[0].outputs[:, 0] * 0 + 1
        results = [*evaluation[:2], *kind.family.gradients(evaluation, slope, 0.1)]
        assert all(bool(th.isfinite(as_tensor(result)).all()) for result in results if result is not None)


def test_a_certain_choice_has_no_entropy_and_no_gradient_of_it() -> None:
    logits = np.array([[1e4, -1e4, 0.0]])
    evaluation = Categorical().evaluate(Head(logits), np.array([[0.0]]))
    assert (evaluation.log_prob.item(), evaluation.entropy.item()) == (0.0, 0.0)
    by_outputs, _ = Categorical().gradients(evaluation, np.zeros(1), 1.0)
    assert by_outputs.tolist() == [[0.0, 0.0, 0.0]]


def test_an_action_of_a_multi_categorical_is_read_dimension_by_dimension() -> None:
    logits = np.log(np.array([[0.2, 0.8, 0.1, 0.3, 0.6]]))
    evaluation = MultiCategorical(NVEC).evaluate(Head(logits), np.array([[1.0, 2.0]]))
    assert evaluation.log_prob.item() == pytest.approx(np.log(0.8 * 0.6))


def test_worked_numbers_of_a_state_dependent_gaussian() -> None:
    """φ = (1, 2), s = (½, ¼): σ² = 1·¼ + 4·1/16 = ½; with a − μ = 1, u² = 2."""
    head = Head(np.zeros((1, 1)), np.log([[0.5], [0.25]]), np.array([[1.0, 2.0]]))
    family = StateDependentGaussian(0.0)
    evaluation = family.evaluate(head, np.ones((1, 1)))
    assert evaluation.log_prob.item() == pytest.approx(-0.5 * (2 + np.log(0.5) + np.log(2 * np.pi)))
    assert evaluation.entropy.item() == pytest.approx(0.5 * np.log(2 * np.pi * np.e * 0.5))
    by_mean, by_log_std = family.gradients(evaluation, np.array([3.0]), 0.0)
    assert by_mean.item() == pytest.approx(3 * 1 / 0.5)
    assert by_log_std is not None
    assert by_log_std[:, 0] == pytest.approx([3 * 0.25 * 1 * (2 - 1) / 0.5, 3 * 0.0625 * 4 * (2 - 1) / 0.5])
