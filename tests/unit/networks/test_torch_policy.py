"""Claims about the torch counterpart: heads and gradients are SB3's for every features extractor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from sb3_ppo_from_scratch.core.records import PackedRollout
from sb3_ppo_from_scratch.networks.recognition import recognise
from sb3_ppo_from_scratch.networks.torch_policy import TorchPolicy
from tests.environments import ACTION_SPACES
from tests.unit.networks.policies import (
    ATARI,
    UNEVEN_IMAGE,
    UNIT_IMAGE,
    Setup,
    as_tensors,
    assert_close,
    cnn,
    gradients,
    multi_input,
    stock_heads,
)

SETUPS = {
    **{f"cnn_{action}_actions": cnn(action=action) for action in ACTION_SPACES},
    "atari": cnn(ATARI),
    "size_not_of_whole_blocks": cnn(UNEVEN_IMAGE),
    "separate_cnns": cnn(share_features_extractor=False),
    "raw_pixels": cnn(normalize_images=False),
    "float_pixels": cnn(UNIT_IMAGE, normalize_images=False),
    "cnn_with_hidden_layers": cnn(net_arch={"pi": [8], "vf": [12, 8]}, activation_fn=nn.ReLU),
    "cnn_gsde": cnn(action="box", use_sde=True),
    "multi_input": multi_input(),
    "multi_input_box_actions": multi_input(action="box"),
    "multi_input_separate": multi_input(share_features_extractor=False),
    "multi_input_of_vectors": multi_input("dict_of_vectors"),
    "silu": Setup(action="box", kwargs={"activation_fn": nn.SiLU}),
    "silu_separate": Setup(
        observation="discrete", kwargs={"activation_fn": nn.SiLU, "share_features_extractor": False}
    ),
}
every_setup = pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)


def counterpart(policy: ActorCriticPolicy) -> TorchPolicy:
    family = recognise(policy).family
    assert family is not None
    return TorchPolicy(policy, family)


@every_setup
def test_heads_are_those_of_stable_baselines3(setup: Setup) -> None:
    policy, observations = setup.build(), setup.observations(3)
    outputs, values = stock_heads(policy, observations)
    network = counterpart(policy)
    head, ours = network.forward(network.features(observations))
    assert not any(part.requires_grad for part in (*head, ours) if part is not None)
    assert_close(head.outputs, outputs)
    assert_close(ours, values)
    assert_close(ours, policy.predict_values(as_tensors(observations))[:, 0])


@every_setup
def test_gradients_of_all_parameters_are_those_of_automatic_differentiation(setup: Setup) -> None:
    policy, stock, observations = setup.build(), setup.build(), setup.observations(3)
    heads = stock_heads(stock, observations)
    slopes = [th.from_numpy(random(tuple(head.shape))) for head in heads]
    th.autograd.backward(heads, slopes)
    network = counterpart(policy)
    by_log_std = None
    for _ in range(2):  # gradients are overwritten, not added up
        head, _ = network.forward(network.features(observations))
        if head.log_std is not None:
            by_log_std = th.from_numpy(random(tuple(head.log_std.shape)))
            stock.log_std.grad = by_log_std.clone()
        network.backward(slopes[0], slopes[1], by_log_std)
    for name, expected in gradients(stock).items():
        assert_close(gradients(policy)[name], expected, 2e-5)


def test_gradients_follow_an_optimizer_that_lists_the_parameters_in_another_order() -> None:
    setup = cnn()
    policy, stock, observations = setup.build(), setup.build(), setup.observations(3)
    policy.optimizer = th.optim.Adam(reversed(list(policy.parameters())), lr=1e-3)
    heads = stock_heads(stock, observations)
    slopes = [th.from_numpy(random(tuple(head.shape))) for head in heads]
    th.autograd.backward(heads, slopes)
    network = counterpart(policy)
    network.forward(network.features(observations))
    network.backward(slopes[0], slopes[1], None)
    for name, expected in gradients(stock).items():
        assert_close(gradients(policy)[name], expected, 2e-5)


def random(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


@every_setup
def test_a_rollout_loaded_at_once_has_the_features_of_its_rows(setup: Setup) -> None:
    observations = setup.observations(5)
    network = counterpart(setup.build())
    rollout = network.loaded(PackedRollout(observations, random((5, 2)), random((4, 5))))
    drawn = network.drawn(rollout, network.indices(np.array([4, 0, 4])))
    chosen = (
        {key: array[[4, 0, 4]] for key, array in observations.items()}
        if isinstance(observations, dict)
        else observations[[4, 0, 4]]
    )
    expected = network.features(chosen)
    for key in expected if isinstance(expected, dict) else [...]:
        assert th.equal(drawn.observations[key], expected[key])
    assert_close(np.stack(drawn[2:]), rollout.scalars.numpy()[:, [4, 0, 4]], 0.0)


@pytest.mark.parametrize("setup", [cnn(ATARI), cnn(UNEVEN_IMAGE)], ids=["rearranged", "as_it_is"])
def test_pictures_of_a_rollout_stay_bytes_until_they_are_computed_with(setup: Setup) -> None:
    network = counterpart(setup.build())
    assert network.features(setup.observations(2)).dtype == th.uint8


def test_pictures_that_may_not_be_written_to_are_read_without_a_warning() -> None:
    setup = cnn()
    network, observations = counterpart(setup.build()), setup.observations(2)
    expected = network.features(observations.copy())
    observations.flags.writeable = False
    assert th.equal(network.features(observations), expected)


@pytest.mark.parametrize("setup", [cnn(), multi_input(action="box")], ids=["cnn", "multi_input"])
def test_the_modules_follow_parameters_that_are_loaded_or_moved(setup: Setup) -> None:
    policy, other, observations = setup.build(), setup.build(seed=1), setup.observations(3)
    network = counterpart(policy)
    policy.load_state_dict(other.state_dict())
    policy.to(th.float64).to(th.float32)  # as a move to another device and back
    network.bind()
    head, values = network.forward(network.features(observations))
    for ours, theirs in zip((head.outputs, values), stock_heads(other, observations), strict=True):
        assert_close(ours, theirs)


def test_acting_keeps_no_graph() -> None:
    setup = cnn()
    network, observations = counterpart(setup.build()), setup.observations(2)
    with th.no_grad():
        network.forward(network.features(observations))
    with pytest.raises(RuntimeError, match="does not require grad"):
        network.backward(th.zeros(2, 3), th.zeros(2), None)
