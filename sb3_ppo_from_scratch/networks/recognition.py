"""Which policies have a hand-written counterpart, and why another one does not.

Owns the inspection of SB3 policies; must not compute with them.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import torch as th
from stable_baselines3.common import distributions as stock
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor, MlpExtractor, NatureCNN
from torch import nn

from sb3_ppo_from_scratch.core.families import ActionFamily, Bernoulli, Categorical, MultiCategorical
from sb3_ppo_from_scratch.core.gaussians import DiagonalGaussian, StateDependentGaussian

_METHODS = (
    "forward",
    "evaluate_actions",
    "predict_values",
    "get_distribution",
    "extract_features",
    "_get_action_dist_from_latent",
    "__call__",
)
_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_post_accumulate_grad_hooks",
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
)
_DETERMINISTIC = (
    *(FlattenExtractor, nn.Flatten, nn.Linear, nn.Conv2d, nn.Sequential),
    *(nn.Tanh, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SiLU, nn.GELU, nn.Sigmoid),
)


class Recognition(NamedTuple):
    """What is known of a policy.

    :param family: of its actions; None if the policy must be used through its public methods
    :param reason: why, in words for the user
    """

    family: ActionFamily | None
    reason: str


def recognise(policy: ActorCriticPolicy) -> Recognition:
    """Tell whether a policy computes what SB3's own policies compute.

    :param policy: any actor-critic policy
    :return: its action family, or None and the reason
    """
    for name in _METHODS:
        if getattr(type(policy), name) is not getattr(ActorCriticPolicy, name) or name in vars(policy):
            return Recognition(None, f"{type(policy).__name__} overrides {name}")
    if any(_has_hooks(module) for module in policy.modules()):
        return Recognition(None, "a module of the policy has hooks")
    if any(_has_hooks(owner) for owner in (*policy.parameters(), policy.optimizer)):
        return Recognition(None, "a parameter or the optimizer has hooks")
    if type(policy.mlp_extractor) is not MlpExtractor:
        return Recognition(None, f"its mlp_extractor is a {type(policy.mlp_extractor).__name__}")
    if type(policy.action_net) is not nn.Linear or type(policy.value_net) is not nn.Linear:
        return Recognition(None, "its heads are not linear layers")
    if (reason := _unusual_parameters(policy)) is not None:
        return Recognition(None, reason)
    family = _family_of(policy.action_dist)
    if family is None:
        description = " with ".join([type(policy.action_dist).__name__, *_gsde_options(policy.action_dist)])
        return Recognition(None, f"its actions follow a {description}")
    return Recognition(family, f"{type(policy).__name__} computes what SB3's own policies compute")


def flattens_observations(policy: ActorCriticPolicy) -> bool:
    """Tell whether the features are the observation itself, flattened.

    :param policy: recognised
    """
    extractors = (policy.features_extractor, policy.pi_features_extractor, policy.vf_features_extractor)
    return all(type(extractor) is FlattenExtractor for extractor in extractors)


def is_evaluable(policy_class: type[ActorCriticPolicy]) -> bool:
    """Whether observations and actions are all that ``evaluate_actions`` takes: no masks, no recurrent states.

    :param policy_class: of any on-policy algorithm
    :return: the answer
    """
    return len(inspect.signature(policy_class.evaluate_actions).parameters) == len(("self", "obs", "actions"))


def may_draw(policy: ActorCriticPolicy) -> bool:
    """Tell whether the modules may draw random numbers by themselves, as dropout does.

    :param policy: recognised
    """
    leaves = (module for module in policy.modules() if not any(module.children()))
    return not _is_of_sb3(policy) or any(type(leaf) not in _DETERMINISTIC for leaf in leaves)


def _family_of(distribution: Any) -> ActionFamily | None:
    if type(distribution) is stock.CategoricalDistribution:
        return Categorical()
    if type(distribution) is stock.MultiCategoricalDistribution:
        return MultiCategorical([int(n) for n in distribution.action_dims])
    if type(distribution) is stock.BernoulliDistribution:
        return Bernoulli()
    if type(distribution) is stock.DiagGaussianDistribution:
        return DiagonalGaussian()
    if type(distribution) is stock.StateDependentNoiseDistribution and not _gsde_options(distribution):
        return StateDependentGaussian(distribution.epsilon)
    return None


def _gsde_options(distribution: Any) -> list[str]:
    """Those in use that change what is computed, and have no counterpart; none of any other distribution."""
    if type(distribution) is not stock.StateDependentNoiseDistribution:
        return []
    options = {
        "squash_output": distribution.bijector is not None,
        "use_expln": distribution.use_expln,
        "learn_features": distribution.learn_features,
    }
    return [name for name, is_used in options.items() if is_used]


def _unusual_parameters(policy: ActorCriticPolicy) -> str | None:
    parameters = list(policy.parameters())
    groups = policy.optimizer.param_groups
    if len(groups) != 1 or {id(p) for p in groups[0]["params"]} != {id(p) for p in parameters}:
        return "its optimizer does not hold all parameters in one group"
    if not all(p.requires_grad and p.dtype == th.float32 for p in parameters):
        return "some parameters are frozen or not float32"
    if any(p.device.type == "cpu" and p.is_shared() for p in parameters):  # type: ignore[no-untyped-call]
        return "its parameters are shared with other processes"
    if groups[0].get("weight_decay") and not _is_of_sb3(policy):
        return "weights decay, and a features extractor may have some that take no part"
    return None


def _is_of_sb3(policy: ActorCriticPolicy) -> bool:
    extractors = (policy.features_extractor, policy.pi_features_extractor, policy.vf_features_extractor)
    return all(type(extractor) in (FlattenExtractor, NatureCNN, CombinedExtractor) for extractor in extractors)


def _has_hooks(owner: object) -> bool:
    return any(getattr(owner, name, None) for name in _HOOKS)
