"""A finite Markov decision process whose values are known exactly: the gridworld of the experiments.

Owns transitions, rewards and the solution by dynamic programming; must not know any estimator or network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left


@dataclass(frozen=True)
class MarkovDecisionProcess:
    """S states and A actions; terminal states lead nowhere and are worth nothing.

    :param transitions: [S, A, S] probabilities of the next state
    :param rewards: [S, A, S], of the step into the next state
    :param terminal: [S] bool, where episodes end
    :param start: state in which episodes begin
    """

    transitions: Array
    rewards: Array
    terminal: npt.NDArray[np.bool_]
    start: int

    @property
    def n_states(self) -> int:
        """S."""
        return int(self.transitions.shape[0])

    @property
    def n_actions(self) -> int:
        """A."""
        return int(self.transitions.shape[1])

    def between_live_states(self, policy: Array) -> Array:
        """Probabilities of going on from a state to another one in the same episode.

        :param policy: [S, A] probabilities of the actions
        :return: [S, S]; rows sum to less than 1 where the episode may end
        """
        live = ~self.terminal
        mixed = np.einsum("sa,sat->st", policy, self.transitions)
        return np.asarray(mixed * live[:, None] * live[None, :])


def state_values(process: MarkovDecisionProcess, policy: Array, gamma: float) -> Array:
    """V^π, the solution of V = r_π + γ P_π V.

    :param process: to solve
    :param policy: [S, A] probabilities of the actions
    :param gamma: discount factor γ in [0, 1]; below 1 if episodes may last for ever
    :return: [S], zero at terminal states
    """
    rewards = np.einsum("sa,sat,sat->s", policy, process.transitions, process.rewards) * ~process.terminal
    matrix = np.eye(process.n_states) - gamma * process.between_live_states(policy)
    return np.asarray(np.linalg.solve(matrix, rewards))


def greedy_actions(process: MarkovDecisionProcess, gamma: float) -> npt.NDArray[np.int64]:
    """Best actions, by policy iteration.

    :param process: in which every policy that moves at random now and then ends its episodes
    :param gamma: discount factor γ below 1
    :return: [S]
    """
    actions = np.zeros(process.n_states, dtype=np.int64)
    while True:
        values = state_values(process, np.eye(process.n_actions)[actions], gamma)
        advantages = action_advantages(process, values, gamma)
        better = np.where(advantages.max(axis=1) > 1e-12, advantages.argmax(axis=1), actions)
        if (better == actions).all():
            return actions
        actions = better


def action_advantages(process: MarkovDecisionProcess, values: Array, gamma: float) -> Array:
    """A^π(s, a) = E[r + γ V(s')] − V(s).

    :param process: whose transitions and rewards count
    :param values: [S], V^π, zero at terminal states
    :param gamma: discount factor γ
    :return: [S, A]
    """
    following = np.einsum("sat,sat->sa", process.transitions, process.rewards + gamma * values)
    return np.asarray(following - values[:, None])


def gridworld(
    *, size: int = 4, slip: float = 0.1, step_reward: float = -0.01, goal: float = 1.0, pit: float = -1.0
) -> MarkovDecisionProcess:
    """A square of cells: from the upper left corner to the goal in the lower right one, past a pit.

    An action moves one cell up, right, down or left, but slips into a random direction now and then; a wall stops it.

    :param size: cells a side, at least 3
    :param slip: probability of a random direction
    :param step_reward: of every step
    :param goal: further reward of the step into the goal
    :param pit: further reward of the step into the pit, which lies one cell before the goal's diagonal neighbour
    """
    n_states, goal_state = size * size, size * size - 1
    pit_state = (size - 2) * size + size - 2
    transitions = np.zeros((n_states, 4, n_states))
    for state in range(n_states):
        for action in range(4):
            for direction, move in enumerate(_MOVES):
                row, column = np.clip(np.add(divmod(state, size), move), 0, size - 1)
                transitions[state, action, row * size + column] += slip / 4 + (1 - slip) * (direction == action)
    rewards = np.full((n_states, 4, n_states), step_reward)
    rewards[:, :, goal_state] += goal
    rewards[:, :, pit_state] += pit
    terminal = np.zeros(n_states, dtype=bool)
    terminal[[goal_state, pit_state]] = True
    return MarkovDecisionProcess(transitions, rewards, terminal, start=0)
