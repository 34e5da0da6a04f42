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
from sb3_ppo_from_scratch.core.families import (
    ActionFamily,
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    MultiCategorical,
)
from tests.strategies import tensors

NVEC = (2, 3)
Differentiable = Callable[[th.Tensor, th.Tensor | None, th.Tensor], tuple[th.Tensor, th.Tensor]]


@dataclass(frozen=True)
class Kind:
    """A family, and the same log-probability and entropy [B] as ``core.distributions`` leaves them to autograd."""

    family: ActionFamily
    n_outputs: int
    choices: tuple[int, ...]  # of each dimension of an action; 0 for a real number
    differentiable: Differentiable

    @property
    def is_gaussian(self) -> bool:
        return self.choices[0] == 0


def _gaussian(mean: th.Tensor, log_std: th.Tensor | None, actions: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
    assert log_std is not None
    return d.gaussian_log_prob(mean, log_std, actions), d.gaussian_entropy(log_std.expand_as(mean))


KINDS = {
    "categorical": Kind(
        Categorical(), 4, (4,), lambda z, _, a: (d.categorical_log_prob(z, a[:, 0]), d.categorical_entropy(z))
    ),
    "multi_categorical": Kind(
        MultiCategorical(NVEC),
        sum(NVEC),
        NVEC,
        lambda z, _, a: (d.multi_categorical_log_prob(z, a, NVEC), d.multi_categorical_entropy(z, NVEC)),
    ),
    "bernoulli": Kind(Bernoulli(), 3, (2, 2, 2), lambda z, _, a: (d.bernoulli_log_prob(z, a), d.bernoulli_entropy(z))),
    "gaussian": Kind(DiagonalGaussian(), 2, (0, 0), _gaussian),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@dataclass(frozen=True)
class Batch:
    outputs: th.Tensor
    log_std: th.Tensor | None
    actions: th.Tensor

    def numpy(self) -> tuple[Any, Any, Any]:
        return self.outputs.numpy(), None if self.log_std is None else self.log_std.numpy(), self.actions.numpy()

    def torch(self) -> tuple[th.Tensor, th.Tensor | None, th.Tensor]:
        return self.outputs, self.log_std, self.actions


@st.composite
def batches(draw: st.DrawFn, kind: Kind, dtype: Any = np.float64, spread: float = 5.0) -> Batch:
    """Any parameters, and actions as rollout buffers store them: in floats."""
    n = draw(st.integers(1, 6))
    outputs = draw(tensors(n, kind.n_outputs, low=-spread, high=spread, dtype=dtype))
    if kind.is_gaussian:
        log_std = draw(tensors(kind.n_outputs, low=-3, high=2, dtype=dtype))
        return Batch(outputs, log_std, draw(tensors(n, kind.n_outputs, dtype=dtype)))
    rows = st.tuples(*(st.integers(0, k - 1) for k in kind.choices))
    return Batch(outputs, None, th.tensor(draw(st.lists(rows, min_size=n, max_size=n)), dtype=outputs.dtype))


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
    log_prob_gradient = data.draw(tensors(len(batch.outputs)))
    outputs = batch.outputs.clone().requires_grad_()
    log_std = None if batch.log_std is None else batch.log_std.clone().requires_grad_()
    log_prob, entropy = kind.differentiable(outputs, log_std, batch.actions)
    total = (log_prob_gradient * log_prob).sum() + entropy_gradient * entropy.sum()
    expected = th.autograd.grad(total, [outputs] if log_std is None else [outputs, log_std])

    for arguments, slope in ((batch.numpy(), log_prob_gradient.numpy()), (batch.torch(), log_prob_gradient)):
        evaluation = kind.family.evaluate(*arguments)
        by_outputs, by_log_std = kind.family.gradients(evaluation, slope, entropy_gradient)
        assert type(by_outputs) is type(arguments[0])
        th.testing.assert_close(as_tensor(by_outputs), expected[0], rtol=1e-9, atol=1e-9)
        assert (by_log_std is None) == (log_std is None)
        if by_log_std is not None:
            th.testing.assert_close(as_tensor(by_log_std), expected[1], rtol=1e-9, atol=1e-9)


@every_kind
@given(data=st.data())
@settings(max_examples=50)
def test_in_single_precision_both_libraries_agree_and_leave_their_arguments_alone(
    kind: Kind, data: st.DataObject
) -> None:
    batch = data.draw(batches(kind, np.float32))
    slope = th.linspace(-1, 1, len(batch.outputs))
    untouched = [argument.clone() for argument in batch.torch() if argument is not None]
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
    for argument, copy in zip((a for a in batch.torch() if a is not None), untouched, strict=True):
        assert th.equal(argument, copy)


@every_kind
@pytest.mark.parametrize("size", [1e2, 1e4, 1e30])
def test_extreme_parameters_stay_finite_and_raise_no_warning(kind: Kind, size: float) -> None:
    pattern = np.resize(np.array([1.0, -1.0, 0.0, 1.0, -1.0], np.float32), (4, kind.n_outputs))
    outputs = pattern * np.float32(1.0 if kind.is_gaussian else size)
    # A deviation of e⁻²⁰ or e²⁰ is as far as the square of what it standardises stays within single precision.
    log_std = np.array([-20.0, 20.0], np.float32) if kind.is_gaussian else None
    generator = np.random.default_rng(0)
    actions = kind.family.sample(outputs, log_std, generator)
    for arguments in (
        (outputs, log_std, actions),
        (th.from_numpy(outputs), None if log_std is None else th.from_numpy(log_std), th.as_tensor(actions)),
    ):
        evaluation = kind.family.evaluate(*arguments)
        slope = arguments[0][:, 0] * 0 + 1
        results = [*evaluation[:2], *kind.family.gradients(evaluation, slope, 0.1)]
        assert all(bool(th.isfinite(as_tensor(result)).all()) for result in results if result is not None)


def test_a_certain_choice_has_no_entropy_and_no_gradient_of_it() -> None:
    logits = np.array([[1e4, -1e4, 0.0]])
    evaluation = Categorical().evaluate(logits, None, np.array([[0.0]]))
    assert (evaluation.log_prob.item(), evaluation.entropy.item()) == (0.0, 0.0)
    by_outputs, _ = Categorical().gradients(evaluation, np.zeros(1), 1.0)
    assert by_outputs.tolist() == [[0.0, 0.0, 0.0]]


def test_an_action_of_a_multi_categorical_is_read_dimension_by_dimension() -> None:
    logits = np.log(np.array([[0.2, 0.8, 0.1, 0.3, 0.6]]))
    evaluation = MultiCategorical(NVEC).evaluate(logits, None, np.array([[1.0, 2.0]]))
    assert evaluation.log_prob.item() == pytest.approx(np.log(0.8 * 0.6))
