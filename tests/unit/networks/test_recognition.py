"""Claims about which policies have a written-out counterpart, and what is said of those that have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor, MlpExtractor
from torch import nn

from sb3_ppo_from_scratch.core.families import ActionFamily, Bernoulli, Categorical, MultiCategorical
from sb3_ppo_from_scratch.core.gaussians import DiagonalGaussian, StateDependentGaussian
from sb3_ppo_from_scratch.networks.recognition import flattens_observations, recognise
from tests.unit.networks.policies import Setup, cnn, multi_input

OVERRIDABLE = ["forward", "evaluate_actions", "predict_values", "get_distribution", "extract_features"]


class OwnExtractor(BaseFeaturesExtractor):
    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, features_dim=3)
        self.layer = nn.Linear(4, 3)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return self.layer(observations).sin()


class OwnMlpExtractor(MlpExtractor):
    def forward_critic(self, features: th.Tensor) -> th.Tensor:
        return 2 * super().forward_critic(features)


class OwnMlpPolicy(ActorCriticPolicy):
    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = OwnMlpExtractor(self.features_dim, [8], nn.Tanh)


class HarmlessPolicy(ActorCriticPolicy):
    """Overrides only what neither acting nor learning goes through."""

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return super()._get_constructor_parameters()


@pytest.mark.parametrize(
    "setup, family, is_flat",
    [
        pytest.param(Setup(), Categorical, True, id="mlp"),
        pytest.param(Setup(action="box"), DiagonalGaussian, True, id="gaussian"),
        pytest.param(Setup(action="box", kwargs={"use_sde": True}), StateDependentGaussian, True, id="gsde"),
        pytest.param(Setup(action="multi_discrete"), MultiCategorical, True, id="multi_categorical"),
        pytest.param(Setup(action="multi_binary"), Bernoulli, True, id="bernoulli"),
        pytest.param(Setup(kwargs={"share_features_extractor": False}), Categorical, True, id="separate"),
        pytest.param(Setup(HarmlessPolicy), Categorical, True, id="harmless_subclass"),
        pytest.param(cnn(), Categorical, False, id="cnn"),
        pytest.param(multi_input(), Categorical, False, id="multi_input"),
        pytest.param(Setup(kwargs={"features_extractor_class": OwnExtractor}), Categorical, False, id="own_features"),
        pytest.param(Setup(kwargs={"optimizer_class": th.optim.SGD}), Categorical, True, id="other_optimizer"),
    ],
)
def test_sb3s_own_policies_are_recognised(setup: Setup, family: type[ActionFamily], is_flat: bool) -> None:
    policy = setup.build()
    recognition = recognise(policy)
    assert type(recognition.family) is family
    assert type(policy).__name__ in recognition.reason
    assert flattens_observations(policy) == is_flat


@pytest.mark.parametrize("name", OVERRIDABLE)
@pytest.mark.parametrize("where", ["class", "instance"])
def test_a_policy_that_overrides_a_method_is_not(name: str, where: str) -> None:
    def own(self: Any, *arguments: Any, **settings: Any) -> Any:
        return getattr(ActorCriticPolicy, name)(self, *arguments, **settings)

    if where == "class":
        policy = Setup(type("OwnPolicy", (ActorCriticPolicy,), {name: own})).build()
    else:
        policy = Setup().build()
        setattr(policy, name, own.__get__(policy))
    recognition = recognise(policy)
    assert recognition.family is None
    assert f"overrides {name}" in recognition.reason


def hook_into(policy: ActorCriticPolicy) -> None:
    policy.mlp_extractor.policy_net.register_forward_hook(lambda *_: None)


def prepare_in_a_hook(policy: ActorCriticPolicy) -> None:
    policy.register_forward_pre_hook(lambda *_: None)


def hook_into_the_backward_pass(policy: ActorCriticPolicy) -> None:
    policy.action_net.register_full_backward_hook(lambda *_: None)


def hook_into_a_gradient(policy: ActorCriticPolicy) -> None:
    policy.action_net.weight.register_hook(lambda gradient: gradient.clamp(-1, 1))


def watch_a_gradient(policy: ActorCriticPolicy) -> None:
    policy.action_net.weight.register_post_accumulate_grad_hook(lambda _: None)


def hook_into_the_optimizer(policy: ActorCriticPolicy) -> None:
    policy.optimizer.register_step_post_hook(lambda *_: None)


def freeze(policy: ActorCriticPolicy) -> None:
    policy.mlp_extractor.policy_net.requires_grad_(False)


def widen(policy: ActorCriticPolicy) -> None:
    policy.double()


def split_into_groups(policy: ActorCriticPolicy) -> None:
    head = list(policy.value_net.parameters())
    rest = [p for p in policy.parameters() if not any(p is q for q in head)]
    policy.optimizer = th.optim.Adam([{"params": rest}, {"params": head, "lr": 1e-4}], lr=1e-3)


def leave_out_of_the_optimizer(policy: ActorCriticPolicy) -> None:
    policy.optimizer = th.optim.Adam(policy.mlp_extractor.parameters(), lr=1e-3)


def exchange_a_head(policy: ActorCriticPolicy) -> None:
    policy.value_net = nn.Sequential(nn.Linear(64, 8), nn.Linear(8, 1))
    policy.optimizer = th.optim.Adam(policy.parameters())


def normalise_a_head(policy: ActorCriticPolicy) -> None:
    th.nn.utils.parametrizations.spectral_norm(policy.action_net)


CHANGES: dict[Callable[..., None], str] = {
    hook_into: "hook",
    prepare_in_a_hook: "hook",
    hook_into_the_backward_pass: "hook",
    hook_into_a_gradient: "hook",
    watch_a_gradient: "hook",
    hook_into_the_optimizer: "hook",
    freeze: "frozen",
    widen: "not float32",
    split_into_groups: "optimizer",
    leave_out_of_the_optimizer: "optimizer",
    exchange_a_head: "heads",
    normalise_a_head: "heads",
}


@pytest.mark.parametrize("change, reason", CHANGES.items())
def test_a_policy_that_was_changed_is_not(change: Callable[..., None], reason: str) -> None:
    policy = Setup().build()
    assert recognise(policy).family is not None
    change(policy)
    recognition = recognise(policy)
    assert recognition.family is None
    assert reason in recognition.reason


@pytest.mark.parametrize(
    "setup, reason",
    [
        pytest.param(Setup(OwnMlpPolicy), "mlp_extractor is a OwnMlpExtractor", id="own_mlp_extractor"),
        *(
            pytest.param(
                Setup(action="box", kwargs={"use_sde": True, option: True}),
                f"StateDependentNoiseDistribution with {option}",
                id=option,
            )
            for option in ("squash_output", "use_expln")
        ),
    ],
)
def test_a_policy_that_was_built_differently_is_not(setup: Setup, reason: str) -> None:
    recognition = recognise(setup.build())
    assert recognition.family is None
    assert reason in recognition.reason


def test_recognising_changes_nothing() -> None:
    policy, untouched = Setup().build(), Setup().build()
    recognise(policy)
    assert policy.state_dict().keys() == untouched.state_dict().keys()
    assert all(parameter.grad is None for parameter in policy.parameters())
    assert type(policy.features_extractor) is FlattenExtractor
