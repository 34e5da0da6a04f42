"""One rollout buffer for array and Dict observations, in three phases: accumulate, finalise, serve.

Owns storage only; the arithmetic is in ``core.advantages``, the order of serving in ``rollout.minibatches``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.vec_env import VecNormalize

from sb3_ppo_from_scratch.core.advantages import compute_gae
from sb3_ppo_from_scratch.core.records import Minibatch, PackedRollout
from sb3_ppo_from_scratch.rollout import frames
from sb3_ppo_from_scratch.rollout.minibatches import IntArray, minibatch_slices, rows

Array = npt.NDArray[Any]


class RolloutBuffer(BaseBuffer):
    """T steps of E environments under one policy, with the interface of SB3's two rollout buffers.

    1. ``add`` T times (and ``add_bootstrap`` where a time limit cut an episode),
    2. ``compute_returns_and_advantage`` once,
    3. ``get`` once per epoch; what is stored keeps its shape [T, E, ...] throughout.

    Stock SB3 accepts it as ``rollout_buffer_class``. It differs from SB3's buffers: actions
    of a ``Box`` are stored as float32 whatever the dtype of the space, and observations that arrive as floats are not
    truncated to a narrower space (VecNormalize over integers or float16). What is stored is what the policy saw and
    did. Stacks of images are kept as single frames, about 1/C of the bytes, and put together when they are read.

    :param buffer_size: T, steps per environment and rollout
    :param observation_space: Box, Discrete, MultiDiscrete, MultiBinary or a Dict of these
    :param action_space: Box, Discrete, MultiDiscrete or MultiBinary
    :param device: where minibatches are put
    :param gae_lambda: λ in [0, 1]
    :param gamma: γ in [0, 1]
    :param n_envs: E
    :ivar actions: [T, E, action_dim], as sampled by the policy; float32 for a Box, else the dtype of the space
    :ivar rewards: [T, E] float32, as the environment gave them, less what a reference policy charges
    :ivar bootstraps: [T, E] float32, γ·V(terminal observation) where a time limit cut the episode, else 0
    :ivar episode_starts: [T, E] float32, 1 where the observation is the first of its episode
    :ivar values: [T, E] float32
    :ivar log_probs: [T, E] float32, in nats
    :ivar advantages: [T, E] float32
    :ivar returns: [T, E] float32
    :ivar generator: of the order in which ``get`` serves; None for NumPy's global one, as SB3
    :ivar min_batch_size: a ragged last minibatch smaller than this joins the one before it (default 1: SB3's cut)
    """

    rewards: npt.NDArray[np.float32]
    bootstraps: npt.NDArray[np.float32]
    episode_starts: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    log_probs: npt.NDArray[np.float32]
    advantages: npt.NDArray[np.float32]
    returns: npt.NDArray[np.float32]

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        gae_lambda: float = 1,
        gamma: float = 0.99,
        n_envs: int = 1,
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, device, n_envs=n_envs)
        self.gae_lambda = gae_lambda
        self.gamma = gamma
        self.min_batch_size = 1
        self.generator: np.random.Generator | None = None
        self._allocate()
        self.reset()

    def _allocate(self) -> None:
        steps_and_envs = (self.buffer_size, self.n_envs)
        shapes: Any = self.obs_shape
        self._stored: frames.Stored | dict[str, frames.Stored]
        if isinstance(self.observation_space, spaces.Dict):
            self._stored = {
                key: np.zeros((*steps_and_envs, *shapes[key]), dtype=space.dtype)
                for key, space in self.observation_space.spaces.items()
            }
        else:
            self._stored = frames.new_storage(*steps_and_envs, self.observation_space, shapes)
        # Policies sample a Box in float32; its own dtype would truncate or wrap what was sampled.
        action_dtype = np.float32 if isinstance(self.action_space, spaces.Box) else self.action_space.dtype
        self.actions = np.zeros((*steps_and_envs, self.action_dim), dtype=action_dtype)
        for name in ("rewards", "bootstraps", "episode_starts", "values", "log_probs", "advantages", "returns"):
            setattr(self, name, np.zeros(steps_and_envs, dtype=np.float32))

    @property
    def observations(self) -> Array | dict[str, Array]:
        """[T, E, *obs_shape], or a dict of such arrays: the storage, or a copy where that holds single frames.

        What is assigned becomes the storage.
        """
        observations: Array | dict[str, Array] = self._of_each(frames.whole)
        return observations

    @observations.setter
    def observations(self, observations: Array | dict[str, Array]) -> None:
        self._stored = {**observations} if isinstance(observations, dict) else observations

    def _of_each(self, function: Callable[[frames.Stored], Any]) -> Any:
        if isinstance(self._stored, dict):
            return {key: function(stored) for key, stored in self._stored.items()}
        return function(self._stored)

    def reset(self) -> None:
        """Begin a new rollout. Rows are overwritten as they come; none is served before all are new."""
        if isinstance(self._stored, frames.FrameStore):
            self._stored.reset()
        self.bootstraps[:] = 0.0
        self.advantages[:] = 0.0
        self.returns[:] = 0.0
        super().reset()

    def add(
        self,
        obs: Array | Mapping[str, Array],
        action: Array,
        reward: Array,
        episode_start: Array,
        value: th.Tensor,
        log_prob: th.Tensor,
    ) -> None:
        """Store one step of every environment.

        :param obs: [E, *obs_shape], or a mapping of such arrays: what the policy saw
        :param action: [E, ...], what the policy sampled, before clipping or casting
        :param reward: [E], what the environment gave
        :param episode_start: [E], whether ``obs`` begins an episode
        :param value: [E] or [E, 1], V(obs)
        :param log_prob: [E], log π(action|obs) in nats
        :raises IndexError: if T steps are stored already
        """
        if self.full:
            raise IndexError(f"The buffer already holds buffer_size={self.buffer_size} steps; call reset() first.")
        self._add_observations(obs)
        self.actions[self.pos] = action.reshape((self.n_envs, self.action_dim))
        self.rewards[self.pos] = reward
        self.episode_starts[self.pos] = episode_start
        self.values[self.pos] = value.detach().cpu().numpy().reshape(self.n_envs)
        self.log_probs[self.pos] = log_prob.detach().cpu().numpy().reshape(self.n_envs)
        self.pos += 1
        self.full = self.pos == self.buffer_size

    def _add_observations(self, obs: Array | Mapping[str, Array]) -> None:
        if isinstance(self._stored, dict):
            assert isinstance(obs, Mapping)
            for key, stored in self._stored.items():
                self._stored[key] = frames.with_row(stored, self.pos, np.asarray(obs[key]))
        else:
            self._stored = frames.with_row(self._stored, self.pos, np.asarray(obs))

    def add_bootstrap(self, bootstrap: Array) -> None:
        """Credit the newest step with the value of a state that a time limit kept from being visited.

        Source: Pardo et al. 2018 (arXiv:1712.00378), eq. 6. SB3 adds the same number to the reward itself.

        :param bootstrap: [E] float32, γ·V(terminal observation), 0 where no time limit struck
        :raises RuntimeError: if no step is stored yet
        """
        if self.pos == 0:
            raise RuntimeError("No step is stored yet that a bootstrap could belong to; call add() first.")
        self.bootstraps[self.pos - 1] = bootstrap

    def compute_returns_and_advantage(self, last_values: th.Tensor, dones: Array) -> None:
        """Fill ``advantages`` and ``returns``; see :func:`~sb3_ppo_from_scratch.core.advantages.compute_gae`.

        :param last_values: [E] or [E, 1], V of the observation after the last step
        :param dones: [E] bool, whether the last step ended its episode
        :raises RuntimeError: if fewer than T steps are stored
        """
        self._require_full()
        self.advantages, self.returns = compute_gae(
            self.rewards + self.bootstraps,
            self.values,
            self.episode_starts,
            last_values.detach().cpu().numpy().flatten(),
            np.asarray(dones),
            self.gamma,
            self.gae_lambda,
        )

    def get(self, batch_size: int | None = None) -> Iterator[Minibatch]:
        """Serve every transition once, in a fresh random order.

        :param batch_size: transitions per minibatch; None for all in one
        :return: an iterator over minibatches of tensors [B, ...] on ``device``
        :raises RuntimeError: at the first minibatch, if fewer than T steps are stored
        :raises ValueError: likewise, if ``batch_size`` < 1
        """
        self._require_full()
        generator = np.random if self.generator is None else self.generator
        order = generator.permutation(self.buffer_size * self.n_envs)
        for part in self.slices(batch_size):
            yield self._get_samples(order[part])

    def slices(self, batch_size: int | None = None) -> Iterator[slice]:
        """How one epoch over a shuffled rollout is cut into minibatches.

        :param batch_size: transitions per minibatch; None for all in one
        :return: slices that cover [0, T·E) once
        """
        n_samples = self.buffer_size * self.n_envs
        return minibatch_slices(n_samples, n_samples if batch_size is None else batch_size, self.min_batch_size)

    def packed(self) -> PackedRollout | None:
        """The whole rollout as flat columns, for engines that draw minibatches themselves.

        The rows are step-major, unlike those of ``get``, and views of the storage: images that are kept as single
        frames come as ``FrameStacks``.

        :return: None if somebody made it serve minibatches in another way, which must then be respected
        :raises RuntimeError: if fewer than T steps are stored
        """
        self._require_full()
        for name in ("get", "_get_samples"):
            if name in vars(self) or getattr(type(self), name) is not getattr(RolloutBuffer, name):
                return None
        n_samples = self.buffer_size * self.n_envs
        scalars = np.stack([self.values, self.log_probs, self.advantages, self.returns]).reshape(4, n_samples)
        actions = self.actions.reshape(n_samples, self.action_dim).astype(np.float32, copy=False)
        return PackedRollout(self._of_each(frames.packed), actions, scalars)

    def _get_samples(self, batch_inds: IntArray, env: VecNormalize | None = None) -> Minibatch:  # type: ignore[override]
        # Fancy indexing has copied already, so that the tensors may share its memory.
        return Minibatch(
            observations=self._of_each(lambda stored: self.to_torch(frames.served(stored, batch_inds), copy=False)),
            actions=self.to_torch(rows(self.actions, batch_inds).astype(np.float32, copy=False), copy=False),
            old_values=self.to_torch(rows(self.values, batch_inds), copy=False),
            old_log_prob=self.to_torch(rows(self.log_probs, batch_inds), copy=False),
            advantages=self.to_torch(rows(self.advantages, batch_inds), copy=False),
            returns=self.to_torch(rows(self.returns, batch_inds), copy=False),
        )

    def _require_full(self) -> None:
        if not self.full:
            raise RuntimeError(
                f"The rollout is not complete: {self.pos} of buffer_size={self.buffer_size} steps are stored. "
                "Call add() for the others first."
            )
