"""The kinds of work that a side can do, each with a clock around it.

Owns what is inside and outside of the clock; must not know the other side, nor where requests come from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch as th

from benchmarks.throughput.environments import make_environments
from benchmarks.throughput.memory import measure_buffer
from benchmarks.throughput.models import make_model
from benchmarks.throughput.records import Conditions, Row, Segment, Side
from sb3_ppo_from_scratch import DiagnosticsCallback

_SMALL = 16  # steps per environment of a rollout that only gets everything imported


class Job(Protocol):
    """A side at work."""

    def segment(self, steps: int, *, watched: bool = False) -> Segment:
        """Work, and say how long it took.

        :param steps: environment steps over all environments
        :param watched: whether to say, too, where the time of learning went, which takes time itself
        """

    def close(self) -> None:
        """Let the environments go."""


def make_job(row: Row, side: Side, conditions: Conditions) -> Job:
    """A side, ready to begin.

    :param row: what it works on
    :param side: which it is
    :param conditions: of the run
    :return: with its environments built
    """
    kinds: dict[str, Callable[[Row, Side, Conditions], Job]] = {
        "learning": Learning,
        "stepping": Stepping,
        "memory": Memory,
    }
    return kinds[row.kind](row, side, conditions)


class Learning:
    """The whole ``learn()`` loop, going on from segment to segment.

    Schedules end with each segment, as they would with each call of ``learn()``; that costs every side the same.

    :param row: what it works on
    :param side: which it is
    :param conditions: of the run
    """

    def __init__(self, row: Row, side: Side, conditions: Conditions) -> None:
        self._env = make_environments(side.vec_env, row.env_id, row.n_envs, conditions.seed)
        settings = {**row.settings, **side.arguments}
        self._model = make_model(side.algorithm, self._env, settings, seed=conditions.seed, device=conditions.device)
        self._callback = DiagnosticsCallback() if side.is_diagnosed else None
        self._finish: Callable[[], None] = th.cuda.synchronize if conditions.device.startswith("cuda") else _nothing

    def segment(self, steps: int, *, watched: bool = False) -> Segment:  # noqa: D102
        before = self._model.num_timesteps
        spent = {"environment": 0.0, "collection": 0.0, "update": 0.0}
        with ExitStack() as stack:
            if watched:
                stack.enter_context(_clock(self._model.env, "step", spent, "environment"))
                stack.enter_context(_clock(self._model, "collect_rollouts", spent, "collection", self._finish))
                stack.enter_context(_clock(self._model, "train", spent, "update", self._finish))
            self._finish()
            start = time.perf_counter()
            self._model.learn(steps, self._callback, reset_num_timesteps=False)
            self._finish()
            seconds = time.perf_counter() - start
        shares = _shares(spent, seconds) if watched else None
        return Segment(self._model.num_timesteps - before, seconds, shares)

    def close(self) -> None:  # noqa: D102
        self._env.close()


class Stepping:
    """Vector environments under random actions, the same for every side, and no algorithm.

    :param row: what it works on
    :param side: which it is
    :param conditions: of the run
    """

    def __init__(self, row: Row, side: Side, conditions: Conditions) -> None:
        self._env = make_environments(side.vec_env, row.env_id, row.n_envs, conditions.seed)
        self._random = np.random.default_rng(conditions.seed)
        self._env.reset()

    def segment(self, steps: int, *, watched: bool = False) -> Segment:  # noqa: D102
        env: Any = self._env
        actions = self._random.integers(env.action_space.n, size=(steps // env.num_envs, env.num_envs))
        rewards, n_dones = 0.0, 0
        start = time.perf_counter()
        for now in actions:
            _, reward, dones, _ = env.step(now)
            rewards += float(reward.sum())
            n_dones += int(dones.sum())
        seconds = time.perf_counter() - start
        return Segment(actions.size, seconds, outcome=f"rewards {rewards:.0f}, episodes {n_dones}")

    def close(self) -> None:  # noqa: D102
        self._env.close()


class Memory:
    """A rollout buffer, filled with what random actions lead to.

    :param row: what it works on
    :param side: which it is
    :param conditions: of the run
    """

    def __init__(self, row: Row, side: Side, conditions: Conditions) -> None:
        self._row, self._side, self._conditions = row, side, conditions
        self.segment(_SMALL * row.n_envs)

    def segment(self, steps: int, *, watched: bool = False) -> Segment:  # noqa: D102
        row, side, seed = self._row, self._side, self._conditions.seed
        settings = {**row.settings, **side.arguments, "n_steps": steps // row.n_envs}
        env = make_environments(side.vec_env, row.env_id, row.n_envs, seed)
        make = partial(make_model, side.algorithm, env, settings, seed=seed, device=self._conditions.device)
        try:
            return measure_buffer(make, env, seed)
        finally:
            env.close()

    def close(self) -> None:  # noqa: D102
        pass


@contextmanager
def _clock(
    owner: Any, method: str, spent: dict[str, float], part: str, finish: Callable[[], None] | None = None
) -> Iterator[None]:
    """Add the time that a method of one object takes to a part of the whole."""
    original = getattr(owner, method)

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            if finish is not None:
                finish()
            spent[part] += time.perf_counter() - start

    setattr(owner, method, timed)
    try:
        yield
    finally:
        delattr(owner, method)


def _shares(spent: dict[str, float], seconds: float) -> dict[str, float]:
    """What is not the environment's in a rollout is the policy's, the buffer's and the statistics'."""
    parts = {
        "environment": spent["environment"],
        "policy": spent["collection"] - spent["environment"],
        "update": spent["update"],
        "rest": seconds - spent["collection"] - spent["update"],
    }
    return {name: part / seconds for name, part in parts.items()}


def _nothing() -> None:
    pass
