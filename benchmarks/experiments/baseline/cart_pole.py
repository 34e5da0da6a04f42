"""Cart-pole, many at a time, and episodes of a small policy on it.

Owns the equations and the sampling; must not know what is computed from the episodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th

Array = npt.NDArray[np.float64]

_GRAVITY, _POLE_MASS, _TOTAL_MASS, _HALF_LENGTH = 9.8, 0.1, 1.1, 0.5  # m/s², kg, kg, m
_FORCE, _SECONDS = 10.0, 0.02  # N; per step
_MAX_POSITION, _MAX_ANGLE = 2.4, np.deg2rad(12)  # m, rad
MAX_STEPS = 500


class Episode(NamedTuple):
    """One episode of L steps, each of which pays 1.

    :param states: [L, 4] float32: position, velocity, angle, angular velocity
    :param actions: [L] int64: 0 pushes left, 1 right
    """

    states: npt.NDArray[np.float32]
    actions: npt.NDArray[np.int64]


def policy_network() -> th.nn.Sequential:
    """A policy with one hidden layer of 32 units, random weights from torch's generator.

    :return: [N, 4] → [N, 2] logits
    """
    return th.nn.Sequential(th.nn.Linear(4, 32), th.nn.Tanh(), th.nn.Linear(32, 2))


def next_states(states: Array, actions: npt.NDArray[np.int64]) -> Array:
    """Barto, Sutton and Anderson's equations, one Euler step.

    :param states: [N, 4]
    :param actions: [N]
    :return: [N, 4]
    """
    _, velocity, angle, angular_velocity = states.T
    force = np.where(actions == 1, _FORCE, -_FORCE)
    cosine, sine = np.cos(angle), np.sin(angle)
    pole_moment = _POLE_MASS * _HALF_LENGTH
    pushed = (force + pole_moment * angular_velocity**2 * sine) / _TOTAL_MASS
    angular_acceleration = (_GRAVITY * sine - cosine * pushed) / (
        _HALF_LENGTH * (4 / 3 - _POLE_MASS * cosine**2 / _TOTAL_MASS)
    )
    acceleration = pushed - pole_moment * angular_acceleration * cosine / _TOTAL_MASS
    rates = np.stack([velocity, acceleration, angular_velocity, angular_acceleration], axis=1)
    return np.asarray(states + _SECONDS * rates)


def sampled_episodes(policy: th.nn.Sequential, n_episodes: int, rng: np.random.Generator) -> list[Episode]:
    """Play episodes side by side.

    :param policy: from ``policy_network``
    :param n_episodes: how many
    :param rng: to draw initial states and actions from
    :return: each until the pole or the cart is lost, at most ``MAX_STEPS`` steps
    """
    first, first_bias, second, second_bias = (p.detach().numpy().astype(np.float64) for p in policy.parameters())
    states = rng.uniform(-0.05, 0.05, size=(n_episodes, 4))
    playing = np.arange(n_episodes)
    seen: list[list[Array]] = [[] for _ in range(n_episodes)]
    done: list[list[int]] = [[] for _ in range(n_episodes)]
    for _ in range(MAX_STEPS):
        logits = np.tanh(states @ first.T + first_bias) @ second.T + second_bias
        right = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
        actions = (rng.random(len(playing)) < right).astype(np.int64)
        for lane, state, action in zip(playing, states, actions, strict=True):
            seen[lane].append(state)
            done[lane].append(int(action))
        states = next_states(states, actions)
        upright = (np.abs(states[:, 0]) <= _MAX_POSITION) & (np.abs(states[:, 2]) <= _MAX_ANGLE)
        states, playing = states[upright], playing[upright]
        if not len(playing):
            break
    return [Episode(np.array(s, dtype=np.float32), np.array(a)) for s, a in zip(seen, done, strict=True)]


def rewards_to_go(length: int, gamma: float = 0.99) -> Array:
    """G_t of an episode in which every step pays 1.

    :param length: L ≥ 1
    :param gamma: discount factor γ < 1
    :return: [L], (1 − γ^(L − t)) / (1 − γ)
    """
    return np.asarray((1 - gamma ** np.arange(length, 0, -1.0)) / (1 - gamma))
