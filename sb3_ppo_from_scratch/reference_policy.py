"""Where a reference policy comes from, and how it is kept from learning.

Owns reading, checking and freezing; must not know what the policy is then asked.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.utils import ConstantSchedule

from sb3_ppo_from_scratch.networks.graphs import release_graphs
from sb3_ppo_from_scratch.networks.recognition import is_evaluable
from sb3_ppo_from_scratch.settings import InvalidArgumentError


def reference_policy(
    source: ActorCriticPolicy | str | Path, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> ActorCriticPolicy:
    """A frozen copy of a policy, fit to be compared with one that learns.

    :param source: a policy, or the path of a saved PPO or A2C
    :param observation_space: of the policy that learns
    :param action_space: likewise
    :return: on the CPU, so that a model saved with it can be loaded where there is no other device
    :raises InvalidArgumentError: if there is no such model, or its policy takes masks or states, or has other spaces
    """
    if isinstance(source, ActorCriticPolicy):
        policy = source
    else:
        try:
            policy = saved_policy(source)
        except (OSError, ValueError) as error:
            raise InvalidArgumentError(
                f"reference_policy={str(source)!r} cannot be read ({error}); pass the path of a saved PPO or A2C."
            ) from error
    if not is_evaluable(type(policy)):
        raise InvalidArgumentError(
            f"reference_policy is a {type(policy).__name__}, which judges actions by more than observations (masks, "
            "recurrent states); pass the policy of a PPO or A2C."
        )
    _check_spaces(policy, observation_space, action_space)
    return frozen(policy)


def frozen(policy: ActorCriticPolicy, device: th.device | str = "cpu") -> ActorCriticPolicy:
    """A copy that nobody trains: its parameters want no gradients, its modules evaluate, its optimizer is gone.

    :param policy: to copy
    :param device: of the copy
    :return: the copy
    """
    release_graphs(policy)  # which could not be copied
    copied = copy.deepcopy(policy, {id(getattr(policy, "optimizer", None)): None})
    copied.requires_grad_(False)
    copied.set_training_mode(False)
    return copied.to(device)


def saved_policy(path: str | Path) -> ActorCriticPolicy:
    """The policy inside a saved model of any on-policy algorithm, without its environment, buffer or generators.

    :param path: of a zip that ``save`` wrote; ``.zip`` may be left out
    :return: on the CPU
    :raises FileNotFoundError: if there is no such file
    :raises ValueError: if it is no saved model, or its policy is no ``ActorCriticPolicy``
    """
    data, parameters, _ = load_from_zip_file(path, device="cpu")
    policy_class = None if data is None else data.get("policy_class")
    if data is None or not (isinstance(policy_class, type) and issubclass(policy_class, ActorCriticPolicy)):
        raise ValueError(f"{path} holds no ActorCriticPolicy but {policy_class}")
    with th.random.fork_rng(devices=[]):  # weights are drawn before they are replaced by the saved ones
        policy = policy_class(
            data["observation_space"],
            data["action_space"],
            ConstantSchedule(0.0),
            use_sde=data["use_sde"],
            **data["policy_kwargs"],
        )
    policy.load_state_dict(parameters["policy"])  # type: ignore[arg-type]  # SB3 says that it is a tensor
    return policy


def _check_spaces(
    policy: ActorCriticPolicy, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> None:
    for role, theirs, ours in (
        ("observation", policy.observation_space, observation_space),
        ("action", policy.action_space, action_space),
    ):
        if theirs != ours:
            raise InvalidArgumentError(
                f"reference_policy has the {role} space {theirs}, but the environment has {ours}; pass a policy that "
                "was trained on the same spaces, wrappers included."
            )
