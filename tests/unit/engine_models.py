"""Models of every kind, and what it means that an engine acts and learns as the policy itself would.

Owns construction and comparison; must not know which engine is at work.
"""

from __future__ import annotations

from typing import Any

import torch as th
from torch import nn

from sb3_ppo_from_scratch.core.records import Minibatch
from sb3_ppo_from_scratch.update.epochs import run_epochs
from tests.environments import vector_environment
from tests.faults.models import tiny_model
from tests.parity.test_auto_engine import ServedBuffer


def model_of(policy: Any = "MlpPolicy", **settings: Any) -> Any:
    environment = {name: settings.pop(name) for name in ("observation", "action", "time_limit") if name in settings}
    return tiny_model(vector_environment(2, **environment), policy=policy, **settings)


def engine_of(model: Any) -> str:
    return str(model._engine.description)


def parameters(model: Any) -> th.Tensor:
    return nn.utils.parameters_to_vector(model.policy.parameters()).detach().clone()


def rolled_out(model: Any) -> list[Minibatch]:
    """One rollout without an update: the whole of it as one minibatch."""
    model.train = lambda: None
    model.learn(32)
    del model.train
    return list(model.rollout_buffer.get())


def assert_acts_as_the_policy_itself(model: Any) -> None:
    """What is stored is what the policy's own methods say."""
    (minibatch,) = rolled_out(model)
    with th.no_grad():
        actions = minibatch.actions.long().flatten()
        values, log_prob, _ = model.policy.evaluate_actions(minibatch.observations, actions)
    th.testing.assert_close(minibatch.old_log_prob, log_prob, atol=1e-5, rtol=1e-5)
    th.testing.assert_close(minibatch.old_values, values[:, 0], atol=1e-5, rtol=1e-5)


def learn_from(model: Any, minibatches: list[Minibatch]) -> None:
    """One update of one epoch, from given minibatches.

    :param model: whose engine learns
    :param minibatches: to learn from
    """
    run_epochs(model._engine.updater, ServedBuffer([minibatches]), model._update_settings())
