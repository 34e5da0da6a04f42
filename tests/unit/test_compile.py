"""Claims about ``compile=True``: the same update to rounding, and nothing that is drawn goes through the compiler."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from sb3_ppo_from_scratch import PPO
from tests.parity.cases import ScaledValuePolicy
from tests.unit.engine_models import engine_of, learn_from, model_of, parameters, rolled_out

# Of torch's compiler about itself: it uses, and looks at, what torch warns its users of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*autograd.function.Function.* should not be:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
]
needs_a_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))), reason="torch.compile needs a C++ compiler"
)
SMALL_CNN = {"features_extractor_kwargs": {"features_dim": 16}}
# SiLU has no counterpart in NumPy, so that the model that is not compiled computes in torch as well.
MLP = {"action": "box", "policy_kwargs": {"net_arch": [8], "activation_fn": nn.SiLU}}
MODELS: dict[str, dict[str, Any]] = {
    "mlp": MLP,
    "cnn": {"policy": "CnnPolicy", "observation": "image", "policy_kwargs": SMALL_CNN},
    "multi_input": {"policy": "MultiInputPolicy", "observation": "dict", "policy_kwargs": {"net_arch": [8]}},
}
OPTIONS: list[dict[str, Any]] = [
    {"objective": "kl_penalty", "kl_coef": 3.0},
    {"objective": "unclipped", "advantage_normalization": "rollout"},
    {"value_loss": "huber", "value_clip": "openai", "clip_range_vf": 0.1},
]


@pytest.fixture(autouse=True)
def validation_stays_on() -> Iterator[None]:
    """torch's compiler switches the validation of all distributions off, for the whole process."""
    yield
    th.distributions.Distribution.set_default_validate_args(True)


def largest_difference(model: Any, other: Any) -> float:
    """Over all parameters, in units of the largest."""
    ours, theirs = parameters(model), parameters(other)
    return float((ours - theirs).abs().max() / theirs.abs().max())


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was translated: graphs that then run as they were traced, so that no C++ has to be compiled."""
    graphs: list[Any] = []
    compile_fully = th.compile

    def keep_graph(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def compile_lightly(function: Callable[..., Any]) -> Any:
        return compile_fully(function, backend=keep_graph)

    th.compiler.reset()  # what an earlier test has compiled would be used again
    monkeypatch.setattr(th, "compile", compile_lightly)
    return graphs


def test_compile_is_a_keyword_whose_default_is_false_and_takes_truth_values_only() -> None:
    parameter = inspect.signature(PPO).parameters["compile"]
    assert (parameter.kind, parameter.default) == (inspect.Parameter.KEYWORD_ONLY, False)
    with pytest.raises(TypeError, match="compile='default' must be True or False, not str"):
        model_of(compile="default")


@pytest.mark.parametrize(
    "settings",
    [{"engine": "reference"}, {"policy": ScaledValuePolicy}],
    ids=["reference", "custom_policy"],
)
def test_what_only_the_reference_engine_serves_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"compile=True need the fused engine.*compile=False"):
        model_of(**settings, compile=True)


@needs_a_compiler
def test_a_compiled_model_learns_and_draws_what_one_that_is_not_does() -> None:
    """The one test of every run that goes all the way to machine code."""
    compiled, eager = model_of(**MLP, compile=True), model_of(**MLP)
    assert (", compiled" in engine_of(compiled), ", compiled" in engine_of(eager)) == (True, False)
    for _ in range(2):
        (ours,), (theirs,) = rolled_out(compiled), rolled_out(eager)
        np.testing.assert_allclose(ours.actions, theirs.actions, atol=1e-5)
        before = parameters(compiled)
        for model in (compiled, eager):
            for _ in range(3):
                learn_from(model, [theirs])
        assert not th.equal(parameters(compiled), before)
        assert largest_difference(compiled, eager) < 1e-5


@needs_a_compiler
@pytest.mark.slow
@pytest.mark.parametrize("precision, tolerance", [("fp32", 1e-5), ("bf16", 1e-3)])
@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_policy_compiles_in_either_precision(name: str, precision: str, tolerance: float) -> None:
    settings = {**MODELS[name], "precision": precision}
    compiled, eager = model_of(**settings, compile=True), model_of(**settings)
    minibatches = rolled_out(eager)
    rolled_out(compiled)
    for model in (compiled, eager):
        learn_from(model, minibatches)
    assert largest_difference(compiled, eager) < tolerance
    compiled.batch_size = 16  # another size than was translated for
    assert th.isfinite(parameters(compiled.learn(64))).all()


@pytest.mark.parametrize("name", MODELS)
def test_the_translated_forward_pass_is_the_forward_pass(name: str, traced: list[Any]) -> None:
    compiled, eager = model_of(**MODELS[name], compile=True), model_of(**MODELS[name])
    minibatches = rolled_out(eager)
    rolled_out(compiled)
    assert not traced  # acting is not translated
    for model in (compiled, eager):
        learn_from(model, minibatches)
    assert traced
    assert largest_difference(compiled, eager) < 1e-5


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_is_what_it_is_without_compiling(options: dict[str, Any], traced: list[Any]) -> None:
    settings = {**MLP, **options, "learning_rate": 1e-2}
    compiled, eager = model_of(**settings, compile=True), model_of(**settings)
    minibatches = rolled_out(eager)
    rolled_out(compiled)
    for model in (compiled, eager):
        model.rollout_buffer = eager.rollout_buffer
        for _ in range(3):
            learn_from(model, minibatches)
    assert traced
    assert largest_difference(compiled, eager) < 1e-5


@pytest.mark.parametrize("name", MODELS)
def test_acting_never_enters_what_is_compiled(name: str) -> None:
    model = model_of(**MODELS[name], compile=True, time_limit=5)

    def refuse(_: Any) -> Any:
        raise AssertionError("compiled code was called while acting")

    model._engine.updater._network._differentiated = refuse
    (minibatch,) = rolled_out(model)
    assert len(minibatch.actions) == 32
    with pytest.raises(AssertionError, match="compiled code was called"):
        model.learn(32)


def test_noise_is_not_frozen_when_the_same_observation_comes_again(traced: list[Any]) -> None:
    compiled, eager = model_of(**MLP, compile=True), model_of(**MLP)
    observation = compiled.get_env().reset()
    drawn: dict[str, list[Any]] = {"compiled": [], "eager": []}
    for side, model in (("compiled", compiled), ("eager", eager)):
        minibatches = rolled_out(model)
        for _ in range(3):
            drawn[side].append(model._engine.actor.act(observation)[0])
        if side == "compiled":
            learn_from(model, minibatches)
            assert traced
            assert not any(np.array_equal(model._engine.actor.act(observation)[0], before) for before in drawn[side])
    assert len({actions.tobytes() for actions in drawn["compiled"]}) == 3
    np.testing.assert_array_equal(drawn["compiled"], drawn["eager"])


class DroppingExtractor(FlattenExtractor):
    """Half of the observation is dropped at random, in training only."""

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return nn.functional.dropout(super().forward(observations), training=self.training)


def losses_of_equal_minibatches(n: int, **settings: Any) -> list[float]:
    model = model_of(policy_kwargs={"net_arch": [8], "features_extractor_class": DroppingExtractor}, **settings)
    minibatches = rolled_out(model)
    updater = model._engine.updater
    updater.begin(model.rollout_buffer, model.batch_size)
    wanted = model._update_settings()
    losses = [float(updater.evaluate(updater.prepared(minibatches[0]), wanted).value_loss) for _ in range(n)]
    updater.finish()
    return losses


def test_dropout_is_translated_without_freezing_its_noise(traced: list[Any]) -> None:
    losses = losses_of_equal_minibatches(4, compile=True)
    assert traced
    assert len(set(losses)) == 4
    assert losses_of_equal_minibatches(4, compile=True) == losses  # the model's own generator, seeded


@needs_a_compiler
@pytest.mark.slow
def test_dropout_in_machine_code_has_noise_that_is_not_frozen() -> None:
    losses = losses_of_equal_minibatches(4, compile=True)
    assert len(set(losses)) == 4
    assert losses_of_equal_minibatches(4, compile=True) == losses


def test_a_saved_model_is_compiled_again_and_stock_ppo_trains_on_from_it(traced: list[Any], tmp_path: Any) -> None:
    model = model_of(**MLP, compile=True).learn(32)
    model.save(tmp_path / "model.zip")
    loaded = PPO.load(tmp_path / "model.zip", env=model.get_env(), device="cpu")
    assert loaded.compile is True
    assert engine_of(loaded) == engine_of(model)
    assert th.equal(parameters(loaded), parameters(model))
    assert not th.equal(parameters(loaded.learn(32)), parameters(model))
    stock = stable_baselines3.PPO.load(tmp_path / "model.zip", env=model.get_env(), device="cpu")
    assert not th.equal(parameters(stock.learn(32)), parameters(model))


def test_compiling_is_switched_on_and_off_at_the_next_rollout(traced: list[Any]) -> None:
    model = model_of(**MLP).learn(32)
    assert not traced
    model.compile = True
    model.learn(32)
    n_graphs = len(traced)
    assert n_graphs > 0
    model.compile = False
    model.learn(32)
    assert ", compiled" not in engine_of(model)
    assert len(traced) == n_graphs
