"""Claims about the NumPy counterpart of SB3's MlpPolicy: heads and gradients are SB3's, on SB3's own parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from sb3_ppo_from_scratch.core.records import Minibatch, PackedRollout
from sb3_ppo_from_scratch.networks.mlp_policy import MlpPolicy
from sb3_ppo_from_scratch.networks.recognition import flattens_observations, recognise
from tests.environments import ACTION_SPACES, OBSERVATION_SPACES
from tests.unit.networks.policies import UNIT_IMAGE, Setup, as_tensors, assert_close, gradients, stock_heads

ARRAYS = [name for name in OBSERVATION_SPACES if not name.startswith("dict")]
SETUPS = {
    **{f"{action}_actions": Setup(action=action) for action in ACTION_SPACES},
    **{f"{observation}_observations": Setup(observation=observation) for observation in ARRAYS},
    # Pixels up to 255 would saturate a tanh, whose slope is then nothing but rounding.
    "raw_pixels": Setup(observation="image", kwargs={"normalize_images": False, "activation_fn": nn.ReLU}),
    "float_pixels": Setup(observation=UNIT_IMAGE, kwargs={"normalize_images": False}),
    **{
        f"{activation.__name__}_activation": Setup(action="box", kwargs={"activation_fn": activation})
        for activation in (nn.Tanh, nn.ReLU, nn.LeakyReLU, nn.ELU)
    },
    "no_hidden_layer": Setup(kwargs={"net_arch": []}),
    "list_of_layers": Setup(kwargs={"net_arch": [12, 7, 5]}),
    "layers_of_each": Setup(kwargs={"net_arch": {"pi": [16, 8], "vf": [12]}}),
    "critic_layers_only": Setup(kwargs={"net_arch": {"pi": [], "vf": [12]}}),
    "gsde": Setup(action="box", kwargs={"use_sde": True}),
    "gsde_one_deviation": Setup(action="uneven_box", kwargs={"use_sde": True, "full_std": False}),
    "gsde_no_hidden_layer": Setup(action="box", kwargs={"use_sde": True, "net_arch": []}),
    "separate_features": Setup(kwargs={"share_features_extractor": False}),
    "separate_features_of_a_number": Setup(observation="discrete", kwargs={"share_features_extractor": False}),
    "separate_features_of_pixels": Setup(observation="image", kwargs={"share_features_extractor": False}),
}
every_setup = pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)


def counterpart(policy: ActorCriticPolicy) -> MlpPolicy:
    family = recognise(policy).family
    assert family is not None
    assert flattens_observations(policy)
    network = MlpPolicy(policy, family)
    assert network.is_complete
    return network


@every_setup
def test_heads_are_those_of_stable_baselines3(setup: Setup) -> None:
    policy, observations = setup.build(), setup.observations(6)
    outputs, values = stock_heads(policy, observations)
    network = counterpart(policy)
    head, ours = network.forward(network.features(observations))
    assert {array.dtype for array in (*head, ours) if array is not None} == {np.dtype(np.float32)}
    assert_close(head.outputs, outputs)
    assert_close(ours, values)
    assert_close(ours, policy.predict_values(as_tensors(observations))[:, 0])


@every_setup
def test_gradients_of_all_parameters_are_those_of_automatic_differentiation(setup: Setup) -> None:
    policy, stock, observations = setup.build(), setup.build(), setup.observations(6)
    outputs, values = stock_heads(stock, observations)
    by_outputs, by_values = (th.from_numpy(random(tuple(head.shape))) for head in (outputs, values))
    th.autograd.backward((outputs, values), (by_outputs, by_values))
    network = counterpart(policy)
    by_log_std = None
    for _ in range(2):  # gradients are overwritten, not added up
        head, _ = network.forward(network.features(observations))
        if head.log_std is not None:
            by_log_std = random(head.log_std.shape)
            stock.log_std.grad = th.from_numpy(by_log_std)
        network.backward(by_outputs.numpy(), by_values.numpy(), by_log_std)
    for name, expected in gradients(stock).items():
        assert_close(gradients(policy)[name], expected, 2e-5)


@every_setup
def test_log_probabilities_are_those_that_the_policy_itself_gives(setup: Setup) -> None:
    policy, observations = setup.build(), setup.observations(6)
    with th.no_grad():
        actions, values, log_prob = policy(as_tensors(observations), deterministic=True)
    network = counterpart(policy)
    head, ours = network.forward(network.features(observations))
    flat = actions.numpy().reshape(6, -1)
    assert_close(network.family.evaluate(head, flat).log_prob, log_prob)
    assert_close(ours, values[:, 0])


def random(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


@every_setup
def test_a_rollout_loaded_at_once_has_the_features_of_its_rows(setup: Setup) -> None:
    observations = setup.observations(8)
    stored = observations.reshape(8, -1) if setup.observation == "discrete" else observations
    network = counterpart(setup.build())
    scalars, actions = random((4, 8)), random((8, 2))
    rollout = network.loaded(PackedRollout(stored, actions, scalars))
    indices = network.indices(np.array([5, 0, 5]))
    drawn = network.drawn(rollout, indices)
    np.testing.assert_array_equal(drawn.observations, network.features(observations[[5, 0, 5]]))
    np.testing.assert_array_equal(drawn.actions, actions[[5, 0, 5]])
    np.testing.assert_array_equal(np.stack(drawn[2:]), scalars[:, [5, 0, 5]])


def test_a_minibatch_of_tensors_is_prepared_into_the_same_arrays_as_a_drawn_one() -> None:
    setup = SETUPS["image_observations"]
    observations, columns, actions = setup.observations(4), random((4, 4)), random((4, 1))
    network = counterpart(setup.build())
    drawn = network.drawn(network.loaded(PackedRollout(observations, actions, columns)), network.indices(np.arange(4)))
    tensors = Minibatch(th.as_tensor(observations), *map(th.from_numpy, (actions, *columns)))
    for one, other in zip(network.prepared(tensors), drawn, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_activation_without_counterpart_leaves_the_chains_incomplete() -> None:
    policy = Setup(kwargs={"activation_fn": nn.SiLU}).build()
    family = recognise(policy).family
    assert family is not None
    assert not MlpPolicy(policy, family).is_complete


def test_the_chains_follow_parameters_that_are_loaded_or_moved() -> None:
    setup = Setup(action="box")
    policy, other, observations = setup.build(), setup.build(seed=1), setup.observations(5)
    network = counterpart(policy)
    expected = [head.detach().numpy() for head in stock_heads(other, observations)]
    policy.load_state_dict(other.state_dict())
    policy.to(th.float64).to(th.float32)  # as a move to another device and back
    network.bind()
    head, values = network.forward(network.features(observations))
    for ours, theirs in zip((head.outputs, values), expected, strict=True):
        assert_close(ours, theirs)
    assert_close(head.log_std, other.log_std)


def test_a_policy_whose_memory_is_shared_with_another_process_is_still_followed() -> None:
    """torch moves a tensor's memory when it is sent through a queue; a view that NumPy took before is then astray."""
    setup = Setup()
    policy, observations = setup.build(), setup.observations(5)
    network = counterpart(policy)
    policy.share_memory()
    network.bind()
    with th.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(1.5)
    expected = stock_heads(policy, observations)
    head, values = network.forward(network.features(observations))
    for ours, theirs in zip((head.outputs, values), expected, strict=True):
        assert_close(ours, theirs)
