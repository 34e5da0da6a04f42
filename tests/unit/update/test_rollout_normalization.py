"""Claims about advantages that are whitened by the whole rollout: the same numbers in every minibatch and engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th

from sb3_ppo_from_scratch.core import losses
from sb3_ppo_from_scratch.core.records import AdvantageStatistics
from tests.faults.models import logged
from tests.unit.engine_models import model_of
from tests.unit.test_training_log import ENGINES

every_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)


@every_engine
def test_every_minibatch_is_whitened_by_the_rollouts_own_statistics(
    engine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    sound = losses.standardized_advantages

    def watched(advantages: Any, statistics: AdvantageStatistics) -> Any:
        whitened = sound(advantages, statistics)
        seen.append(np.asarray(whitened))
        return whitened

    monkeypatch.setattr(losses, "standardized_advantages", watched)
    model = model_of(advantage_normalization="rollout", n_epochs=2, batch_size=8, **engine).learn(32)
    advantages = model.rollout_buffer.advantages
    expected = np.sort((advantages - advantages.mean()).ravel() / advantages.std(ddof=1))
    assert [len(part) for part in seen] == [8] * 8
    for epoch in (seen[:4], seen[4:]):
        np.testing.assert_allclose(np.sort(np.concatenate(epoch)), expected, rtol=1e-4, atol=1e-5)
    assert max(abs(part.mean()) for part in seen) > 0.05


@every_engine
@pytest.mark.parametrize("scope, expected", [("minibatch", 0.0), ("rollout", 0.0), ("none", None)])
def test_the_first_loss_of_a_single_minibatch_is_minus_the_mean_advantage(
    engine: dict[str, Any], scope: str, expected: float | None
) -> None:
    model = model_of(advantage_normalization=scope, **engine).learn(32)
    mean = float(model.rollout_buffer.advantages.mean()) if expected is None else expected
    assert abs(mean) > 1e-2 or expected == 0.0
    assert logged(model, "policy_gradient_loss") == pytest.approx(-mean, abs=1e-6)


@every_engine
def test_what_is_stored_stays_what_was_estimated(engine: dict[str, Any]) -> None:
    stored = [
        model_of(advantage_normalization=scope, **engine).learn(32).rollout_buffer.advantages
        for scope in ("rollout", "none")
    ]
    np.testing.assert_array_equal(*stored)


@every_engine
def test_minibatches_of_one_sample_are_whitened_too(engine: dict[str, Any]) -> None:
    model = model_of(advantage_normalization="rollout", batch_size=1, **engine).learn(32)
    assert np.isfinite(logged(model, "loss"))
    assert all(th.isfinite(parameter).all() for parameter in model.policy.parameters())
