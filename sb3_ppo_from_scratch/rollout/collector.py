"""From environment to buffer: one rollout under the current policy, callbacks included.

Owns the order of events and SB3's local names for callbacks; must not know how the rollout is learnt from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv

from sb3_ppo_from_scratch.networks.observations import as_tensors
from sb3_ppo_from_scratch.rollout.actions import environment_actions
from sb3_ppo_from_scratch.rollout.actors import Actor
from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from sb3_ppo_from_scratch.rollout.reference_penalty import ReferencePenalty


def collect_rollout(
    model: OnPolicyAlgorithm,
    actor: Actor,
    env: VecEnv,
    callback: BaseCallback,
    rollout_buffer: Any,
    n_rollout_steps: int,
    *,
    bootstraps_at_time_limits: bool = True,
    reference: ReferencePenalty | None = None,
) -> bool:
    """Step the environments ``n_rollout_steps`` times and fill the buffer.

    With a ``PolicyActor`` it does what SB3 2.9's ``collect_rollouts`` does, bit for bit. Unlike there, nothing that the
    environment returned is written to, and the model's last observation follows the environment even when the
    callback stops the rollout (or raises) in the middle.

    :param model: whose counters and last observation are kept up to date
    :param actor: acts for the model's policy
    :param env: E environments
    :param callback: asked after each step; may stop the rollout
    :param rollout_buffer: ours, or any class with the interface of SB3's
    :param n_rollout_steps: T, steps per environment
    :param bootstraps_at_time_limits: credit the value of the state that a time limit kept from being visited, as SB3;
        otherwise an episode that was cut short ends like any other
    :param reference: charges the rewards for the divergence from a frozen policy; None for no such policy
    :return: False if the callback stopped the rollout before its end
    """
    actor.begin()
    rollout_buffer.reset()
    n_steps = 0
    if model.use_sde:
        actor.reset_noise(env.num_envs)
    callback.on_rollout_start()

    while n_steps < n_rollout_steps:
        if model.use_sde and model.sde_sample_freq > 0 and n_steps % model.sde_sample_freq == 0:
            actor.reset_noise(env.num_envs)
        # Copies, for environments that overwrite what they returned with what comes next.
        observations, episode_starts = snapshot(model._last_obs), snapshot(model._last_episode_starts)
        actions, values, log_probs = actor.act(observations)
        clipped_actions = environment_actions(actions, model.action_space, model.policy)

        new_obs, rewards, dones, infos = env.step(clipped_actions)
        model.num_timesteps += env.num_envs

        obs_tensor = as_tensors(observations, model.device)
        callback.update_locals({**locals(), "self": model})
        try:
            if not callback.on_step():
                return False
        finally:
            model._last_obs, model._last_episode_starts = new_obs, dones  # type: ignore[assignment]
        model._update_info_buffer(infos, dones)
        n_steps += 1

        if isinstance(model.action_space, spaces.Discrete):
            actions = actions.reshape(-1, 1)
        bootstrap = None
        if bootstraps_at_time_limits:
            bootstrap = time_limit_bootstrap(actor, model.policy, infos, dones, rollout_buffer.gamma)
        store_step(rollout_buffer, observations, actions, rewards, episode_starts, values, log_probs, bootstrap)

    values = actor.values(new_obs)
    if reference is not None:
        model.logger.record("rollout/reference_kl", reference.charge(rollout_buffer))
    rollout_buffer.compute_returns_and_advantage(last_values=values, dones=dones)
    callback.update_locals({**locals(), "self": model})
    callback.on_rollout_end()
    return True


def time_limit_bootstrap(
    actor: Actor,
    policy: ActorCriticPolicy,
    infos: Sequence[dict[str, Any]],
    dones: npt.NDArray[np.bool_],
    gamma: float,
) -> npt.NDArray[np.float32] | None:
    """γ·V(terminal observation) of each environment whose episode a time limit cut short.

    Source: Pardo et al. 2018 (arXiv:1712.00378), eq. 6. The numbers are those SB3 2.9 adds to the rewards.

    :param actor: whose critic values the terminal observation
    :param policy: turns it into a batch of one
    :param infos: E dicts; ``TimeLimit.truncated`` and ``terminal_observation`` are read
    :param dones: [E]
    :param gamma: γ in [0, 1]
    :return: [E] float32, 0 where no time limit struck; None where none struck at all
    """
    bootstrap: npt.NDArray[np.float32] | None = None
    for env_index in np.flatnonzero(dones).tolist():
        info = infos[env_index]
        if info.get("terminal_observation") is None or not info.get("TimeLimit.truncated", False):
            continue
        if bootstrap is None:
            bootstrap = np.zeros(len(dones), dtype=np.float32)
        terminal_obs, _ = policy.obs_to_tensor(info["terminal_observation"])
        terminal_value = actor.values(terminal_obs)[0]
        bootstrap[env_index] = (gamma * terminal_value).item()
    return bootstrap


def snapshot(arrays: Any) -> Any:
    """A copy of an array, or of every array of a dict.

    :param arrays: of any shape and dtype
    :return: the same, in memory of its own
    """
    if isinstance(arrays, dict):
        return {key: snapshot(array) for key, array in arrays.items()}
    return np.array(arrays)


def store_step(
    rollout_buffer: Any,
    observations: Any,
    actions: npt.NDArray[Any],
    rewards: npt.NDArray[Any],
    episode_starts: Any,
    values: th.Tensor,
    log_probs: th.Tensor,
    bootstrap: npt.NDArray[np.float32] | None,
) -> None:
    """Add one step to the buffer, the bootstrap beside the reward where the buffer has room for it.

    :param rollout_buffer: ours, or a class with the interface of SB3's, which gets rewards with the bootstrap added
    :param bootstrap: [E] or None; the other arguments are those of ``RolloutBuffer.add``
    """
    if bootstrap is None or isinstance(rollout_buffer, RolloutBuffer):
        rollout_buffer.add(observations, actions, rewards, episode_starts, values, log_probs)
        if bootstrap is not None:
            rollout_buffer.add_bootstrap(bootstrap)
    else:
        rollout_buffer.add(observations, actions, rewards + bootstrap, episode_starts, values, log_probs)
