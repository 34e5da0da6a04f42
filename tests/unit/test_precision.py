"""Claims about ``precision="bf16"``: one precision in rollout and update, heads and loss in fp32, SB3's parameters."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecFrameStack
from torch.utils._python_dispatch import TorchDispatchMode

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.core.records import FrameStacks, LossTerms
from sb3_ppo_from_scratch.settings import bf16_objection
from tests.environments import vector_environment
from tests.faults.models import Assign, logged, tiny_model
from tests.parity.cases import ScaledValuePolicy
from tests.unit.engine_models import engine_of, learn_from, model_of, parameters, rolled_out

FAMILIES = ("discrete", "box", "gsde", "multi_discrete", "multi_binary")
SMALL_CNN = {"features_extractor_kwargs": {"features_dim": 32}}
FRAME = spaces.Box(0, 255, (1, 84, 84), np.uint8)
# What is built, and how many products its features extractor and hidden layers take.
POLICIES: dict[str, tuple[dict[str, Any], int]] = {
    "mlp": ({"policy_kwargs": {"net_arch": [64]}}, 2),
    "cnn": ({"policy": "CnnPolicy", "observation": FRAME, "policy_kwargs": SMALL_CNN}, 4),
    "multi_input": ({"policy": "MultiInputPolicy", "observation": "dict", "policy_kwargs": {"net_arch": [8]}}, 6),
}
PROBES = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
every_policy = pytest.mark.parametrize("name", POLICIES)


@pytest.fixture(autouse=True)
def _native_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every CPU computes in bfloat16, some of them slowly, which the tests need not be told again and again."""
    for probe in PROBES:
        monkeypatch.setattr(th.cpu, probe, lambda: True, raising=False)


def bf16_model(name: str, action: str = "discrete", *, precision: str = "bf16", **settings: Any) -> Any:
    """A model whose weights are worth rounding; pictures come as stacks of four."""
    arguments, _ = POLICIES[name]
    arguments = {**arguments, **settings}
    if action == "gsde":
        action, arguments["use_sde"] = "box", True
    env: Any = vector_environment(2, observation=arguments.pop("observation", "vector"), action=action)
    if name == "cnn":
        env = VecFrameStack(env, 4, channels_order="first")
    model = tiny_model(env, precision=precision, **arguments)
    with th.no_grad():  # SB3's actor head is so small that no rounding would show
        th.nn.init.orthogonal_(model.policy.action_net.weight, 1.0)
    return model


def learnt(model: Any) -> list[LossTerms]:
    """What every minibatch of a training said before its step."""
    history: list[LossTerms] = []
    evaluate = model._engine.updater.evaluate

    def remembering(*arguments: Any) -> LossTerms:
        history.append(evaluate(*arguments))
        return history[-1]

    model._engine.updater.evaluate = remembering
    model.learn(32)
    return history


def drawn_log_ratios(model: Any, updater: Any) -> Any:
    """log π(a|s) of the rollout of a model by the network of an engine, less what the rollout has stored."""
    updater.begin(model.rollout_buffer, 32)
    (minibatch,) = updater.minibatches()
    network = updater._network
    head, _ = network.forward(minibatch.observations)
    log_prob = network.family.evaluate(head, minibatch.actions).log_prob
    updater.finish()
    return np.asarray(log_prob) - np.asarray(minibatch.old_log_prob)


def test_precision_is_a_keyword_whose_default_is_fp32_and_knows_one_other_value() -> None:
    parameter = inspect.signature(PPO).parameters["precision"]
    assert (parameter.kind, parameter.default) == (inspect.Parameter.KEYWORD_ONLY, "fp32")
    with pytest.raises(ValueError, match=r"precision='fp16' is unknown; choose one of 'fp32', 'bf16'\."):
        model_of(precision="fp16")


@every_policy
@pytest.mark.parametrize("action", FAMILIES)
def test_the_update_begins_where_the_rollout_ended(name: str, action: str) -> None:
    model = bf16_model(name, action, batch_size=8, n_epochs=2)
    assert "bf16" in engine_of(model)
    first, *others = learnt(model)
    assert float(first.approx_kl) == pytest.approx(0.0, abs=1e-6)
    assert float(first.clip_fraction) == 0.0
    assert len(others) == 7
    assert max(float(terms.approx_kl) for terms in others) > 1e-6  # which a step changes


@every_policy
@pytest.mark.parametrize("action", FAMILIES)
def test_a_rollout_in_bf16_has_the_ratio_one_in_bf16_only(name: str, action: str) -> None:
    model, fp32 = (bf16_model(name, action, precision=precision) for precision in ("bf16", "fp32"))
    fp32.policy.load_state_dict(model.policy.state_dict())
    rolled_out(model)
    assert isinstance(model.rollout_buffer.packed().observations, FrameStacks) == (name == "cnn")
    own = np.abs(np.expm1(drawn_log_ratios(model, model._engine.updater)))
    foreign = np.abs(np.expm1(drawn_log_ratios(model, fp32._engine.updater)))
    assert own.max() < 1e-3
    assert own.mean() < foreign.mean() / 20


class Operations(TorchDispatchMode):
    """Remembers which operations had results of which dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[tuple[str, th.dtype]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        tensors = result if isinstance(result, (tuple, list)) else (result,)
        name = function.overloadpacket.__name__
        self.results += [(name, tensor.dtype) for tensor in tensors if isinstance(tensor, th.Tensor)]
        return result


@every_policy
@pytest.mark.parametrize("action", ["discrete", "box", "gsde"])
def test_what_is_below_the_heads_is_multiplied_in_bf16_and_all_else_computed_in_fp32(name: str, action: str) -> None:
    model = bf16_model(name, action)
    (stored,) = rolled_out(model)
    assert {column.dtype for column in stored[1:]} == {th.float32}
    # Values that had gone through bfloat16 would have nothing in their lower sixteen bits.
    assert (stored.old_values.numpy().view(np.uint32) & 0xFFFF).any()
    updater = model._engine.updater
    updater.begin(model.rollout_buffer, 32)
    (minibatch,) = updater.minibatches()
    with Operations() as operations:
        terms = updater.evaluate(minibatch, model._update_settings())
    products = [i for i, (kind, _) in enumerate(operations.results) if kind in ("mm", "addmm", "convolution")]
    n_hidden = POLICIES[name][1]
    dtypes = [operations.results[i][1] for i in products[: n_hidden + 2]]
    assert dtypes == [th.bfloat16] * n_hidden + [th.float32] * 2
    assert th.bfloat16 not in {dtype for _, dtype in operations.results[products[n_hidden] :]}
    assert {term.dtype for term in terms} == {th.float32}
    updater.step(model._update_settings())
    updater.finish()
    head, values = updater._network.forward(minibatch.observations)
    assert head.outputs.dtype == values.dtype == th.float32


@every_policy
def test_parameters_moments_and_names_are_those_of_stable_baselines3(name: str) -> None:
    model = bf16_model(name).learn(64)
    arguments = {key: value for key, value in POLICIES[name][0].items() if key != "observation"}
    stock = tiny_model(model.get_env(), stable_baselines3.PPO, **arguments)
    ours, theirs = model.policy.state_dict(), stock.policy.state_dict()
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        assert (ours[key].dtype, ours[key].shape) == (th.float32, value.shape)
    moments = {tensor.dtype for state in model.policy.optimizer.state.values() for tensor in state.values()}
    assert moments == {th.float32}


@every_policy
def test_a_saved_model_keeps_its_precision_and_stock_ppo_trains_on_from_it(name: str, tmp_path: Any) -> None:
    model = bf16_model(name).learn(32)
    model.save(tmp_path / "model.zip")
    loaded = PPO.load(tmp_path / "model.zip", env=model.get_env(), device="cpu")
    assert loaded.precision == "bf16"
    assert engine_of(loaded) == engine_of(model)
    assert th.equal(parameters(loaded), parameters(model))
    assert "bf16" not in engine_of(PPO.load(tmp_path / "model.zip", device="cpu", precision="fp32"))
    stock = stable_baselines3.PPO.load(tmp_path / "model.zip", env=model.get_env(), device="cpu")
    assert th.equal(parameters(stock), parameters(model))
    assert not th.equal(parameters(stock.learn(32)), parameters(model))


OPTIONS: list[dict[str, Any]] = [
    {"objective": "kl_penalty", "value_loss": "huber", "value_clip": "openai", "clip_range_vf": 10.0},
    {"objective": "unclipped", "advantage_normalization": "rollout", "value_loss": "half_mse"},
]


def value_loss(model: Any, minibatch: Any) -> float:
    updater = model._engine.updater
    return float(updater.evaluate(updater.prepared(minibatch), model._update_settings()).value_loss)


@pytest.mark.parametrize(
    "name, options", [*((name, {}) for name in POLICIES), *(("mlp", options) for options in OPTIONS)], ids=str
)
def test_updates_stay_near_those_of_fp32(name: str, options: dict[str, Any]) -> None:
    settings = {"learning_rate": 1e-3, **options}
    model, fp32 = (bf16_model(name, precision=precision, **settings) for precision in ("bf16", "fp32"))
    fp32.policy.load_state_dict(model.policy.state_dict())
    before, minibatches = parameters(model), rolled_out(fp32)
    losses = []
    for side in (model, fp32):
        side.rollout_buffer = fp32.rollout_buffer
        losses.append(value_loss(side, minibatches[0]))
        for _ in range(10):
            learn_from(side, minibatches)
        losses.append(value_loss(side, minibatches[0]))
    first, last, first_of_fp32, last_of_fp32 = losses
    assert last_of_fp32 < 0.95 * first_of_fp32
    # As a share of what there was to lose: how much is left of it differs from processor to processor.
    assert (first, last) == pytest.approx((first_of_fp32, last_of_fp32), abs=0.1 * first_of_fp32)
    moved, moved_by_fp32 = parameters(model) - before, parameters(fp32) - before
    assert th.cosine_similarity(moved, moved_by_fp32, dim=0) > 0.9


def test_a_precision_that_is_assigned_takes_effect_at_the_next_rollout() -> None:
    model = model_of(policy_kwargs={"net_arch": [64]}).learn(32, callback=Assign(3, precision="bf16"))
    assert "NumPy" in engine_of(model)
    for precision, library in (("bf16", "torch, bf16"), ("fp32", "NumPy"), ("bf16", "torch, bf16")):
        model.precision = precision
        before = parameters(model)
        model.learn(32)
        assert library in engine_of(model)
        assert logged(model, "approx_kl") == pytest.approx(0.0, abs=1e-6)
        assert not th.equal(parameters(model), before)
    assert {state["step"].item() for state in model.policy.optimizer.state.values()} == {4.0}


@pytest.mark.parametrize(
    "settings",
    [{"engine": "reference"}, {"policy": ScaledValuePolicy}],
    ids=["reference", "custom_policy"],
)
def test_what_only_the_reference_engine_serves_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"precision='bf16'.*need the fused engine.*use precision='fp32'"):
        model_of(**settings, precision="bf16")
    model = model_of(**settings)
    model.precision = "bf16"
    with pytest.raises(ValueError, match="precision='bf16'"):
        model.learn(32)


def test_the_user_is_warned_once_where_the_cpu_has_no_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    for probe in PROBES:
        monkeypatch.setattr(th.cpu, probe, lambda: False, raising=False)
    with pytest.warns(UserWarning, match="slower than 'fp32' here: the CPU has neither AVX512_BF16 nor AMX") as warned:
        model_of(precision="bf16").learn(64)
    assert len(warned) == 1
    model_of().learn(32)  # nobody asked


@pytest.mark.parametrize("missing", PROBES)
def test_one_kind_of_native_bf16_is_enough_and_old_versions_of_torch_may_lack_a_probe(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(th.cpu, missing)
    assert bf16_objection(th.device("cpu")) is None


def test_devices_without_bf16_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="precision='bf16' is not known to work on mps; use 'fp32'"):
        bf16_objection(th.device("mps"))
    monkeypatch.setattr(th.cuda, "get_device_name", lambda _: "an old GPU")
    monkeypatch.setattr(th.cuda, "is_bf16_supported", lambda including_emulation: True)
    assert bf16_objection(th.device("cuda")) is None
    monkeypatch.setattr(th.cuda, "is_bf16_supported", lambda including_emulation: False)
    with pytest.raises(ValueError, match="precision='bf16': an old GPU has no bfloat16; use 'fp32'"):
        bf16_objection(th.device("cuda"))
