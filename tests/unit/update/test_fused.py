"""Claims about the fused engine: its steps are torch's, its epochs serve everything once, and nothing is left over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core.records import Minibatch
from sb3_ppo_from_scratch.networks.counterpart import Counterpart
from sb3_ppo_from_scratch.networks.mlp_policy import MlpPolicy
from sb3_ppo_from_scratch.networks.recognition import recognise
from sb3_ppo_from_scratch.networks.torch_policy import TorchPolicy
from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from sb3_ppo_from_scratch.update.epochs import run_epochs
from sb3_ppo_from_scratch.update.fused import FusedEngine
from sb3_ppo_from_scratch.update.reference import ReferenceEngine
from tests.unit.networks.policies import Setup, assert_close
from tests.unit.update.test_objective import SETTINGS

T, E = 6, 3
OBSERVATIONS = spaces.Box(-np.inf, np.inf, (4,), np.float32)
SETUP = Setup(observation=OBSERVATIONS, action="box")
LIBRARIES: dict[str, Callable[..., Counterpart]] = {"numpy": MlpPolicy, "torch": TorchPolicy}
every_library = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)


def engine_for(policy: ActorCriticPolicy, library: Callable[..., Counterpart]) -> FusedEngine:
    return FusedEngine(library(policy, recognise(policy).family), np.random.default_rng(0))


def filled(buffer_class: type[Any] = RolloutBuffer, n_steps: int = T) -> Any:
    """A rollout whose numbers say where they belong: step t of environment e is 10·t + e in every column."""
    buffer = buffer_class(n_steps, OBSERVATIONS, spaces.Box(-1, 1, (2,), np.float32), device="cpu", n_envs=E)
    for step in range(n_steps):
        mark = 10.0 * step + np.arange(E, dtype=np.float32)
        buffer.add(
            np.tile(mark[:, None], (1, 4)),
            np.tile(mark[:, None], (1, 2)),
            mark,
            mark == 0,
            *map(th.tensor, (mark, mark)),
        )
    buffer.compute_returns_and_advantage(th.zeros(E), np.zeros(E))
    return buffer


def unmarked(n_steps: int = T) -> Any:
    """The same with small random numbers, to learn from."""
    buffer, generator = filled(n_steps=n_steps), np.random.default_rng(1)
    for name in ("actions", "values", "log_probs", "advantages", "returns"):
        getattr(buffer, name)[:] = generator.normal(size=getattr(buffer, name).shape)
    buffer.log_probs -= 2.0
    return buffer


def served(engine: FusedEngine, buffer: Any, batch_size: int) -> list[Minibatch]:
    engine.begin(buffer, batch_size)
    minibatches = [Minibatch(*map(np.asarray, minibatch)) for minibatch in engine.minibatches()]
    engine.finish()
    return minibatches


def marks(minibatches: list[Minibatch]) -> list[float]:
    return [float(mark) for minibatch in minibatches for mark in minibatch.old_values]


class DoublingBuffer(RolloutBuffer):
    """A user's own way of serving: every transition twice."""

    def get(self, batch_size: int | None = None) -> Iterator[Minibatch]:
        yield from super().get(batch_size)
        yield from super().get(batch_size)


@every_library
@pytest.mark.parametrize("buffer_class", [RolloutBuffer, StockRolloutBuffer])
@pytest.mark.parametrize("batch_size, sizes", [(6, [6, 6, 6]), (5, [5, 5, 5, 3]), (100, [18])])
def test_an_epoch_serves_every_transition_once_and_its_columns_together(
    library: Callable[..., Counterpart], buffer_class: type[Any], batch_size: int, sizes: list[int]
) -> None:
    minibatches = served(engine_for(SETUP.build(), library), filled(buffer_class), batch_size)
    assert [len(minibatch.old_values) for minibatch in minibatches] == sizes
    assert sorted(marks(minibatches)) == sorted(10.0 * t + e for t in range(T) for e in range(E))
    for minibatch in minibatches:
        for column in (minibatch.observations[:, 3], minibatch.actions[:, 1], minibatch.old_log_prob):
            np.testing.assert_array_equal(column, minibatch.old_values)
        np.testing.assert_allclose(minibatch.returns, minibatch.advantages + minibatch.old_values, rtol=1e-5)


@every_library
def test_a_buffer_that_serves_in_its_own_way_is_let_to(library: Callable[..., Counterpart]) -> None:
    minibatches = served(engine_for(SETUP.build(), library), filled(DoublingBuffer), 6)
    assert len(marks(minibatches)) == 2 * T * E


@every_library
def test_each_epoch_has_an_order_of_its_own_that_the_generator_decides(library: Callable[..., Counterpart]) -> None:
    orders = []
    for _ in range(2):
        engine = engine_for(SETUP.build(), library)
        orders.append([marks(served(engine, filled(), 6)) for _ in range(2)])
        np.random.rand(3)
    assert orders[0] == orders[1]
    assert orders[0][0] != orders[0][1]


@every_library
def test_a_small_remainder_joins_the_minibatch_before_it_if_the_buffer_says_so(
    library: Callable[..., Counterpart],
) -> None:
    buffer = filled()
    buffer.min_batch_size = 2
    sizes = [len(minibatch.old_values) for minibatch in served(engine_for(SETUP.build(), library), buffer, 17)]
    assert sizes == [18]


@every_library
def test_an_update_is_that_of_the_reference_engine_on_the_same_minibatches(
    library: Callable[..., Counterpart],
) -> None:
    policy, stock = SETUP.build(), SETUP.build()
    minibatches = list(unmarked().get(6))
    updaters = [engine_for(policy, library), ReferenceEngine(stock)]
    for updater in updaters:
        updater.begin(None if isinstance(updater, ReferenceEngine) else filled(), 64)
        for _ in range(3):
            for minibatch in minibatches:
                terms = updater.evaluate(updater.prepared(minibatch), SETTINGS)
                assert all(np.isfinite(float(term)) for term in terms)
                updater.step(SETTINGS)
        updater.finish()
    for ours, theirs in zip(policy.parameters(), stock.parameters(), strict=True):
        assert_close(ours, theirs)


@every_library
def test_the_engine_switches_to_training_and_lets_go_of_the_rollout(library: Callable[..., Counterpart]) -> None:
    policy = SETUP.build()
    policy.set_training_mode(False)
    engine, buffer = engine_for(policy, library), unmarked()
    report = run_epochs(engine, buffer, SETTINGS)
    assert policy.training
    assert report.n_epochs == SETTINGS.n_epochs
    assert not any(value is buffer for value in vars(engine).values())


class StoppedByUserError(Exception):
    pass


@every_library
def test_an_update_that_is_interrupted_has_counted_the_steps_it_took(library: Callable[..., Counterpart]) -> None:
    """Moments that are older than the optimizer believes would be scaled wrongly from then on, saved or not."""
    policy = SETUP.build()
    engine, steps = engine_for(policy, library), 0
    take_a_step = engine.step

    def step(settings: Any) -> None:
        nonlocal steps
        if steps == 2:
            raise StoppedByUserError
        take_a_step(settings)
        steps += 1

    engine.step = step  # type: ignore[method-assign]
    with pytest.raises(StoppedByUserError):
        run_epochs(engine, unmarked(), SETTINGS)
    assert {state["step"].item() for state in policy.optimizer.state.values()} == {2.0}
