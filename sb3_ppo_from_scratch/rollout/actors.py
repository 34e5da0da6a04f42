"""Who acts during a rollout: the policy through its public methods, or its hand-written counterpart.

Owns the way from an observation to an action, a value and a log-probability; must not know environments or storage.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.distributions import StateDependentNoiseDistribution
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core.arrays import Array
from sb3_ppo_from_scratch.core.families import Head
from sb3_ppo_from_scratch.core.randomness import Generators
from sb3_ppo_from_scratch.networks.counterpart import Counterpart
from sb3_ppo_from_scratch.networks.observations import as_tensors

Actions = npt.NDArray[Any]


class DivergedError(ValueError):
    """The policy's outputs are not numbers any more; a ``ValueError``, as torch's distributions raise there."""


class Actor(Protocol):
    """Acts for E environments at once."""

    def begin(self) -> None:
        """Get ready for a rollout under the policy's present parameters."""
        ...

    def reset_noise(self, n_envs: int) -> None:
        """Draw a new exploration matrix for each environment (gSDE only).

        :param n_envs: E
        """
        ...

    def act(self, observations: Any) -> tuple[Actions, th.Tensor, th.Tensor]:
        """Sample actions.

        :param observations: [E, *obs_shape], or a dict of such arrays
        :return: actions [E, *action_space.shape], values [E, 1], log-probabilities [E] in nats
        """
        ...

    def values(self, observations: Any) -> th.Tensor:
        """What the critic expects.

        :param observations: [B, *obs_shape] array or tensor, or a dict of such
        :return: [B, 1]
        """
        ...


class PolicyActor:
    """Any SB3 policy through ``forward`` and ``predict_values``.

    :param policy: overridden methods included
    :param randomness: a context in which everything is drawn; by default torch's global state, as SB3
    """

    def __init__(self, policy: ActorCriticPolicy, randomness: AbstractContextManager[None] | None = None) -> None:
        self._policy = policy
        self._randomness = nullcontext() if randomness is None else randomness

    def begin(self) -> None:
        """Switch dropout and batch normalisation to evaluation."""
        self._policy.set_training_mode(False)

    def reset_noise(self, n_envs: int) -> None:
        """See ``Actor``."""
        with th.no_grad(), self._randomness:
            self._policy.reset_noise(n_envs)

    def act(self, observations: Any) -> tuple[Actions, th.Tensor, th.Tensor]:
        """See ``Actor``."""
        with th.no_grad(), self._randomness:
            actions, values, log_probs = self._policy(as_tensors(observations, self._policy.device))
        return actions.cpu().numpy(), values, log_probs

    def values(self, observations: Any) -> th.Tensor:
        """See ``Actor``."""
        with th.no_grad(), self._randomness:
            return self._policy.predict_values(as_tensors(observations, self._policy.device))


class FusedActor:
    """A recognised policy through its hand-written counterpart, actions drawn by NumPy.

    :param network: the policy's counterpart
    :param action_space: of one environment
    :param generators: NumPy's draws actions, torch's the noise matrices of gSDE
    """

    def __init__(self, network: Counterpart, action_space: spaces.Space[Any], generators: Generators) -> None:
        self._network = network
        self._shape = action_space.shape or ()
        self._dtype = np.float32 if isinstance(action_space, spaces.Box) else action_space.dtype
        self._generator, self._randomness = generators
        self._exploration: npt.NDArray[np.float32] | None = None

    def begin(self) -> None:
        """Switch to evaluation and bind to the policy's parameters."""
        self._network.policy.set_training_mode(False)
        self._network.bind()

    def reset_noise(self, n_envs: int) -> None:
        """See ``Actor``: drawn by the policy itself, which also predicts with them."""
        policy = self._network.policy
        with th.no_grad(), self._randomness:
            policy.reset_noise(n_envs)
        assert isinstance(policy.action_dist, StateDependentNoiseDistribution)
        self._exploration = _on_host(policy.action_dist.exploration_matrices)

    def act(self, observations: Any) -> tuple[Actions, th.Tensor, th.Tensor]:
        """See ``Actor``.

        :raises DivergedError: if an action's log-probability is not finite
        """
        network = self._network
        features = network.features(observations)
        with th.no_grad(), network.computing(len(features)):
            head, values = network.forward(features)
        head = Head(*(None if part is None else _on_host(part) for part in head))
        actions = network.family.sample(head._replace(exploration=self._exploration), self._generator)
        log_prob = network.family.evaluate(head, actions).log_prob
        if not np.isfinite(log_prob).all():
            raise DivergedError(
                "The policy has diverged: it gives its own action the log-probability "
                f"{log_prob[~np.isfinite(log_prob)][0]}. Lower learning_rate or max_grad_norm, or normalise "
                "observations and rewards (VecNormalize)."
            )
        actions = actions.reshape((len(actions), *self._shape)).astype(self._dtype, copy=False)
        return actions, th.from_numpy(_on_host(values)[:, None]), th.from_numpy(log_prob)

    def values(self, observations: Any) -> th.Tensor:
        """See ``Actor``."""
        features = self._network.features(observations)
        with th.no_grad(), self._network.computing(len(features)):
            _, values = self._network.forward(features)
        return th.from_numpy(_on_host(values)[:, None])


def _on_host(array: Array) -> npt.NDArray[np.float32]:
    on_host: npt.NDArray[np.float32] = array.cpu().numpy() if isinstance(array, th.Tensor) else array
    return on_host
