"""Which engine acts and updates for a policy: the choice, its reason, and the random generators it owns.

Owns the pairing of an actor with an update engine; must not know how either computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core.families import ActionFamily
from sb3_ppo_from_scratch.core.randomness import Generators, PrivateTorchRandom
from sb3_ppo_from_scratch.networks.counterpart import Counterpart
from sb3_ppo_from_scratch.networks.mlp_policy import MlpPolicy
from sb3_ppo_from_scratch.networks.recognition import flattens_observations, recognise
from sb3_ppo_from_scratch.networks.torch_policy import TorchPolicy
from sb3_ppo_from_scratch.rollout.actors import Actor, FusedActor, PolicyActor
from sb3_ppo_from_scratch.settings import InvalidArgumentError
from sb3_ppo_from_scratch.update.engine import UpdateEngine
from sb3_ppo_from_scratch.update.fused import FusedEngine
from sb3_ppo_from_scratch.update.reference import IsolatedEngine, ReferenceEngine

ENGINES = ("auto", "reference")
DTYPES = {"fp32": th.float32, "bf16": th.bfloat16}


@dataclass(frozen=True)
class Engine:
    """An actor and an update engine that belong together.

    :param policy: which they serve
    :param actor: acts during rollouts
    :param updater: updates from them
    :param generator: of the order in which a buffer serves; None for NumPy's global one
    :param description: which was chosen and why, for the user
    """

    policy: ActorCriticPolicy
    actor: Actor
    updater: UpdateEngine
    generator: np.random.Generator | None
    description: str
    _asked_for: tuple[Any, ...]
    _optimizer: th.optim.Optimizer
    _modules: tuple[th.nn.Module, ...]
    _recognition: str

    def still_serves(self, policy: ActorCriticPolicy, *asked_for: Any) -> bool:
        """Tell whether the same engine would be built again.

        :param policy: which may have been replaced, frozen in part, or given hooks since
        :param asked_for: name, precision and compile_update as ``build_engine`` takes them
        """
        return (
            (*asked_for, recognise(policy).reason) == (*self._asked_for, self._recognition)
            and policy is self.policy
            and policy.optimizer is self._optimizer
            and list(map(id, policy.modules())) == list(map(id, self._modules))
        )


def build_engine(
    name: str,
    policy: ActorCriticPolicy,
    generators: Generators,
    precision: str = "fp32",
    compile_update: bool = False,
) -> Engine:
    """The engine that serves a policy.

    :param name: "auto" or "reference"
    :param policy: which acts and is updated
    :param generators: what the engine draws from; the reference engine uses the global ones, as SB3
    :param precision: "fp32" or "bf16", of everything before the heads
    :param compile_update: translate the update with ``torch.compile``
    :return: bound to the policy
    :raises InvalidArgumentError: if the policy has no counterpart that could offer what was asked for
    """
    recognition = recognise(policy)
    actor: Actor
    updater: UpdateEngine
    generator, randomness = generators
    if (name == "reference" or recognition.family is None) and (precision != "fp32" or compile_update):
        why = "engine='reference' is bit for bit SB3" if name == "reference" else recognition.reason
        raise InvalidArgumentError(
            f"precision={precision!r} and compile={compile_update} need the fused engine, but {why}; "
            "use precision='fp32' and compile=False."
        )
    if name == "reference":
        actor, updater = PolicyActor(policy), ReferenceEngine(policy)
        description = "reference engine, as asked: bit for bit SB3"
    elif recognition.family is None:
        actor, updater = PolicyActor(policy, randomness), IsolatedEngine(policy, randomness)
        description = f"reference engine: {recognition.reason}"
    else:
        network, library = _counterpart(policy, recognition.family, DTYPES[precision], randomness, compile_update)
        actor, updater = FusedActor(network, policy.action_space, generators), FusedEngine(network, generator)
        description = f"fused engine in {library}: {recognition.reason}"
    order = None if name == "reference" else generator
    asked_for = (name, precision, compile_update)
    parts = (policy.optimizer, tuple(policy.modules()))
    return Engine(policy, actor, updater, order, description, asked_for, *parts, recognition.reason)


def _counterpart(
    policy: ActorCriticPolicy,
    family: ActionFamily,
    dtype: th.dtype,
    randomness: PrivateTorchRandom,
    compile_update: bool,
) -> tuple[Counterpart, str]:
    plain = dtype == th.float32 and not compile_update
    if plain and policy.device.type == "cpu" and flattens_observations(policy):
        perceptrons = MlpPolicy(policy, family)
        if perceptrons.is_complete:
            return perceptrons, "NumPy"
    features = ", bf16" * (dtype == th.bfloat16) + ", compiled" * compile_update
    return TorchPolicy(policy, family, dtype, randomness, compile_update), f"torch{features}"
