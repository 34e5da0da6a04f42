"""How much memory a model's rollout buffer holds, and whether it serves what it was given.

Owns the measurement by what becomes free with the model; must not know any buffer from the inside.
"""

from __future__ import annotations

import gc
import hashlib
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from benchmarks.throughput.records import Segment

_BATCH_SIZE = 256


def measure_buffer(make_model: Callable[[], OnPolicyAlgorithm], env: VecEnv, seed: int) -> Segment:
    """Fill a model's buffer, serve it, learn from it, and let the model go.

    What the buffer holds is what becomes free with the model, counted by ``tracemalloc``, to which NumPy reports its
    arrays. What an update needs on top may be torch's, and is read off the process as a whole, which never shrinks:
    nothing larger must have been done in it before.

    :param make_model: a model as its user gets it, for ``env``
    :param env: not yet reset
    :param seed: of the actions and values
    :return: bytes held with a full buffer, by how much the process grew, and a digest of what the buffer served
    """
    tracemalloc.start()
    start, peak_before = time.perf_counter(), peak_of_process()
    model = make_model()
    steps = fill(model.rollout_buffer, env, np.random.default_rng(seed))
    digest = digest_of_served(model.rollout_buffer)
    model.train()
    grown = peak_of_process() - peak_before
    gc.collect()
    full, _ = tracemalloc.get_traced_memory()
    del model
    gc.collect()
    without, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    seconds = time.perf_counter() - start
    return Segment(steps, seconds, held_bytes=full - without, peak_bytes=grown, outcome=digest)


def peak_of_process() -> int:
    """The most memory that this process has had at once.

    :return: bytes
    """
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def fill(buffer: Any, env: VecEnv, random: np.random.Generator) -> int:
    """Fill a buffer with what random actions lead to; no policy is asked.

    :param buffer: with the interface of SB3's, empty
    :param env: Discrete actions, not yet reset
    :param random: of the actions, values and log-probabilities
    :return: how many transitions it took
    """
    action_space: Any = env.action_space
    observations, starts = env.reset(), np.ones(env.num_envs, dtype=bool)
    for _ in range(buffer.buffer_size):
        actions = random.integers(action_space.n, size=env.num_envs)
        values, log_probs = th.from_numpy(random.standard_normal((2, env.num_envs), dtype=np.float32))
        now, rewards, dones, _ = env.step(actions)
        buffer.add(observations, actions.reshape(-1, 1), rewards, starts, values, -log_probs.abs())
        observations, starts = now, dones
    buffer.compute_returns_and_advantage(last_values=th.zeros(env.num_envs), dones=starts)
    return int(buffer.buffer_size * env.num_envs)


def digest_of_served(buffer: Any) -> str:
    """A digest of every observation with the value that belongs to it, whatever order they are served in.

    :param buffer: full
    :return: hexadecimal
    """
    rows = []
    for batch in buffer.get(_BATCH_SIZE):
        values = batch.old_values.numpy(force=True)
        for observation, value in zip(batch.observations.numpy(force=True), values, strict=True):
            rows.append(hashlib.blake2b(observation.tobytes() + value.tobytes(), digest_size=16).digest())
    return hashlib.blake2b(b"".join(sorted(rows)), digest_size=16).hexdigest()
