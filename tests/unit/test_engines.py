"""Claims about which engine serves a policy: the choice, what is said of it, and that it follows every change."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from sb3_ppo_from_scratch.engines import ENGINES
from tests.faults.models import logged
from tests.parity.cases import RestlessExtractor, ScaledValuePolicy
from tests.unit.engine_models import (
    assert_acts_as_the_policy_itself,
    engine_of,
    learn_from,
    model_of,
    parameters,
    rolled_out,
)
from tests.unit.networks.test_recognition import OwnMlpPolicy

CHOICES: dict[str, tuple[dict[str, Any], str]] = {
    "mlp": ({}, "fused engine in NumPy: ActorCriticPolicy computes what SB3's own policies compute"),
    "gaussian": ({"action": "box"}, "fused engine in NumPy"),
    "unknown_activation": ({"policy_kwargs": {"activation_fn": nn.SiLU}}, "fused engine in torch"),
    "cnn": ({"policy": "CnnPolicy", "observation": "image"}, "fused engine in torch: ActorCriticCnnPolicy computes"),
    "dict": ({"policy": "MultiInputPolicy", "observation": "dict"}, "fused engine in torch"),
    "gsde": ({"action": "box", "use_sde": True}, "fused engine in NumPy"),
    "squashed_gsde": (
        {"action": "box", "use_sde": True, "policy_kwargs": {"squash_output": True}},
        "reference engine: its actions follow a StateDependentNoiseDistribution with squash_output",
    ),
    "custom_policy": ({"policy": ScaledValuePolicy}, "reference engine: ScaledValuePolicy overrides forward"),
    "custom_mlp": ({"policy": OwnMlpPolicy}, "reference engine: its mlp_extractor is a OwnMlpExtractor"),
    "reference": ({"engine": "reference"}, "reference engine, as asked: bit for bit SB3"),
}


@pytest.mark.parametrize("settings, description", CHOICES.values(), ids=CHOICES)
def test_with_verbose_1_the_user_is_told_which_engine_serves_and_why(
    settings: dict[str, Any], description: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model_of(**settings, verbose=1)
    assert f"Using the {description}" in capsys.readouterr().out


def test_without_verbose_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    model_of(ScaledValuePolicy).learn(32)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("policy", [ScaledValuePolicy, OwnMlpPolicy])
def test_a_custom_policy_acts_and_learns_by_its_own_methods(policy: type[ActorCriticPolicy]) -> None:
    model = model_of(policy)
    assert_acts_as_the_policy_itself(model)
    model.learn(32)
    assert logged(model, "approx_kl") == pytest.approx(0.0, abs=1e-6)
    assert logged(model, "clip_fraction") == 0.0
    reference = model_of(policy, engine="reference")
    reference.policy.load_state_dict(model.policy.state_dict())
    # A copy, since torch's optimizers keep the very tensors that they are given.
    reference.policy.optimizer.load_state_dict(copy.deepcopy(model.policy.optimizer.state_dict()))
    minibatches = rolled_out(model)
    for side in (model, reference):
        learn_from(side, minibatches)
    assert th.equal(parameters(model), parameters(reference))  # the same operations, to the last bit


@pytest.mark.parametrize("engines", [("auto", "reference"), ("reference", "auto"), ("auto", "reference", "auto")])
def test_the_engine_may_be_exchanged_at_any_time(engines: tuple[str, ...]) -> None:
    model = model_of(engine=engines[0])
    for engine in engines:
        model.engine = engine
        before = parameters(model)
        assert_acts_as_the_policy_itself(model)
        model.learn(32)
        assert ("as asked" in engine_of(model)) == (engine == "reference")
        assert not th.equal(parameters(model), before)
    assert {state["step"].item() for state in model.policy.optimizer.state.values()} == {len(engines)}


def test_nothing_is_rebuilt_while_nothing_changes() -> None:
    model = model_of().learn(32)
    engine = model._engine
    model.learning_rate, model.n_epochs = 1e-4, 2
    assert model.learn(32)._engine is engine


@pytest.mark.parametrize(
    "settings",
    [
        {"policy_kwargs": {"features_extractor_class": RestlessExtractor}},
        {"action": "box", "policy_kwargs": {"optimizer_class": th.optim.AdamW}},
        {"policy": "CnnPolicy", "observation": "image"},
    ],
    ids=["batch_norm_and_dropout", "adamw", "cnn"],
)
def test_stock_ppo_trains_on_from_what_the_fast_engine_saved(settings: dict[str, Any], tmp_path: Any) -> None:
    model = model_of(**settings).learn(64)
    model.save(tmp_path / "model.zip")
    stock = stable_baselines3.PPO.load(tmp_path / "model.zip", env=model.get_env(), device="cpu")
    assert th.equal(parameters(stock), parameters(model))
    ours = model.policy.optimizer.state_dict()["state"]
    theirs = stock.policy.optimizer.state_dict()["state"]
    assert ours.keys() == theirs.keys()
    for key, state in ours.items():
        for name, value in state.items():
            th.testing.assert_close(theirs[key][name], value, rtol=0, atol=0)
    stock.learn(32)
    assert not th.equal(parameters(stock), parameters(model))


def test_parameters_set_from_outside_are_what_the_next_rollout_acts_on() -> None:
    model, other = model_of(seed=0).learn(32), model_of(seed=1).learn(32)
    model.set_parameters(other.get_parameters())
    assert th.equal(parameters(model), parameters(other))
    assert_acts_as_the_policy_itself(model)


def test_an_untrained_model_s_parameters_bring_its_empty_optimizer_along() -> None:
    """Set back to the beginning, a model must not remember the momentum of what it has unlearnt."""
    fresh = model_of(seed=1)
    used = model_of(seed=0).learn(64)
    used.set_parameters(fresh.get_parameters())
    minibatches = rolled_out(fresh)
    rolled_out(used)
    for model in (fresh, used):
        learn_from(model, minibatches)
    assert th.equal(parameters(used), parameters(fresh))


class IdleExtractor(FlattenExtractor):
    """Has weights that nothing goes through."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space)
        self.idle = nn.Linear(3, 3)


@pytest.mark.parametrize("optimizer", [th.optim.Adam, th.optim.AdamW])
def test_weights_that_took_no_part_stay_where_they_are(optimizer: type[th.optim.Optimizer]) -> None:
    """torch skips a parameter without a gradient, where a gradient of zero would let the weight decay go on."""
    model = model_of(
        policy_kwargs={
            "features_extractor_class": IdleExtractor,
            "optimizer_class": optimizer,
            "optimizer_kwargs": {"weight_decay": 0.5},
        }
    )
    before = model.policy.features_extractor.idle.weight.detach().clone()
    model.learn(64)
    assert th.equal(model.policy.features_extractor.idle.weight, before)


@pytest.mark.parametrize("action", ["discrete", "box", "multi_discrete", "multi_binary"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_policy_that_has_diverged_raises_instead_of_acting_at_random(action: str, engine: str) -> None:
    """As SB3 does, whose distributions validate their parameters."""
    model = model_of(action=action, engine=engine)
    with th.no_grad():
        model.policy.action_net.bias.fill_(float("nan"))
    with pytest.raises(ValueError, match=r"(?i)nan|constraint"):
        model.learn(32)
