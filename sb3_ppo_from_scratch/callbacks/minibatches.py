"""One minibatch of a finished rollout, seen through the policy's public methods, and nothing left behind.

Owns access to buffer and policy; must not know what is computed from it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core.records import Minibatch
from sb3_ppo_from_scratch.networks.graphs import release_graphs
from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from sb3_ppo_from_scratch.rollout.minibatches import IntArray, rows


def drawn_minibatch(buffer: Any, batch_size: int, generator: np.random.Generator) -> Minibatch:
    """Transitions of a rollout that no ``get`` has served yet, without changing the buffer.

    :param buffer: full; ours or SB3's, still in the shape [T, E, ...]
    :param batch_size: B, cut to the size of the rollout
    :param generator: which transitions
    :return: B transitions
    """
    n_samples = buffer.buffer_size * buffer.n_envs
    indices = generator.choice(n_samples, min(batch_size, n_samples), replace=False)
    return _samples(buffer, indices)


def _samples(buffer: Any, indices: IntArray) -> Minibatch:
    if isinstance(buffer, RolloutBuffer):
        return buffer._get_samples(indices)
    columns = (buffer.values, buffer.log_probs, buffer.advantages, buffer.returns)
    observations = buffer.observations
    return Minibatch(
        {key: buffer.to_torch(rows(array, indices)) for key, array in observations.items()}
        if isinstance(observations, dict)
        else buffer.to_torch(rows(observations, indices)),
        buffer.to_torch(rows(buffer.actions, indices).astype(np.float32, copy=False)),
        *(buffer.to_torch(rows(column, indices)) for column in columns),
    )


def evaluation(policy: ActorCriticPolicy, minibatch: Minibatch) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
    """What the policy makes of a minibatch now.

    :param policy: in whatever mode it is
    :param minibatch: B transitions
    :return: values [B], log-probabilities [B], entropies [B] (its estimate −log π where it has no closed form)
    """
    actions = minibatch.actions
    if isinstance(policy.action_space, spaces.Discrete):
        actions = actions.long().flatten()
    values, log_prob, entropy = policy.evaluate_actions(minibatch.observations, actions)
    return values.flatten(), log_prob, -log_prob if entropy is None else entropy


@contextmanager
def left_as_it_was(policy: ActorCriticPolicy, *, training: bool) -> Iterator[None]:
    """A context after which policy and global generators are as if nothing had been drawn or computed.

    :param policy: that is evaluated within
    :param training: whether dropout and batch normalisation train meanwhile, as in an update, or act as in a rollout
    """
    device, was_training = policy.device, policy.training
    buffers = [(buffer, buffer.clone()) for buffer in policy.buffers()] if training else []
    python_state, numpy_state = random.getstate(), np.random.get_state()
    policy.set_training_mode(training)
    try:
        with th.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        policy.set_training_mode(was_training)
        for buffer, value in buffers:
            buffer.copy_(value)
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        release_graphs(policy)
