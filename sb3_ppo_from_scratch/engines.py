"""Which engine acts and updates for a policy: the choice, its reason, and the random generators it owns.

Owns the pairing of an actor with an update engine; must not know how either computes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core.families import ActionFamily
from sb3_ppo_from_scratch.core.randomness import Generators
from sb3_ppo_from_scratch.networks.counterpart import Counterpart
from sb3_ppo_from_scratch.networks.mlp_policy import MlpPolicy
from sb3_ppo_from_scratch.networks.recognition import flattens_observations, recognise
from sb3_ppo_from_scratch.networks.torch_policy import TorchPolicy
from sb3_ppo_from_scratch.rollout.actors import Actor, FusedActor, PolicyActor
from sb3_ppo_from_scratch.update.engine import UpdateEngine
from sb3_ppo_from_scratch.update.fused import FusedEngine
from sb3_ppo_from_scratch.update.reference import IsolatedEngine, ReferenceEngine

ENGINES = ("auto", "reference")


@dataclass(frozen=True)
class Engine:
    """An actor and an update engine that belong together.

    :param name: "auto" or "reference", as asked
    :param policy: which they serve
    :param actor: acts during rollouts
    :param updater: updates from them
    :param generator: of the order in which a buffer serves; None for NumPy's global one
    :param description: which was chosen and why, for the user
    """

    name: str
    policy: ActorCriticPolicy
    actor: Actor
    updater: UpdateEngine
    generator: np.random.Generator | None
    description: str
    _optimizer: th.optim.Optimizer
    _recognition: str

    def still_serves(self, name: str, policy: ActorCriticPolicy) -> bool:
        """Tell whether the same engine would be built again.

        :param name: "auto" or "reference"
        :param policy: which may have been replaced, frozen in part, or given hooks since
        """
        return (
            (name, recognise(policy).reason) == (self.name, self._recognition)
            and policy is self.policy
            and policy.optimizer is self._optimizer
        )


def build_engine(name: str, policy: ActorCriticPolicy, generators: Generators) -> Engine:
    """The engine that serves a policy.

    :param name: "auto" or "reference"
    :param policy: which acts and is updated
    :param generators: what the engine draws from; the reference engine uses the global ones, as SB3
    :return: bound to the policy
    """
    recognition = recognise(policy)
    actor: Actor
    updater: UpdateEngine
    generator, randomness = generators
    if name == "reference":
        actor, updater = PolicyActor(policy), ReferenceEngine(policy)
        description = "reference engine, as asked: bit for bit SB3"
    elif recognition.family is None:
        actor, updater = PolicyActor(policy, randomness), IsolatedEngine(policy, randomness)
        description = f"reference engine: {recognition.reason}"
    else:
        network, library = _counterpart(policy, recognition.family)
        actor, updater = FusedActor(network, policy.action_space, generator), FusedEngine(network, generator)
        description = f"fused engine in {library}: {recognition.reason}"
    order = None if name == "reference" else generator
    return Engine(name, policy, actor, updater, order, description, policy.optimizer, recognition.reason)


def _counterpart(policy: ActorCriticPolicy, family: ActionFamily) -> tuple[Counterpart, str]:
    if policy.device.type == "cpu" and flattens_observations(policy):
        perceptrons = MlpPolicy(policy, family)
        if perceptrons.is_complete:
            return perceptrons, "NumPy"
    return TorchPolicy(policy, family), "torch"
