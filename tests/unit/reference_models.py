"""Policies to be referred to, and models that are charged for leaving them."""

from __future__ import annotations

from typing import Any

import torch as th

from tests.unit.engine_models import model_of


def other_policy(**setup: Any) -> Any:
    """A policy of the same kind that has learnt something else."""
    return model_of(**{**setup, "seed": 9, "learning_rate": 0.05, "n_epochs": 3}).learn(32).policy


def with_probabilities(*probabilities: float) -> Any:
    """A policy that chooses among three with these probabilities, whatever it sees."""
    policy = model_of(policy_kwargs={"net_arch": []}).policy
    with th.no_grad():
        policy.action_net.weight.zero_()
        policy.action_net.bias.copy_(th.tensor(probabilities).log())
    return policy


def learn(model: Any, total_timesteps: int, **arguments: Any) -> Any:
    """Without writing the log, which would empty it."""
    return model.learn(total_timesteps, log_interval=None, **arguments)


def logged_kl(model: Any) -> float:
    return float(model.logger.name_to_value["rollout/reference_kl"])
