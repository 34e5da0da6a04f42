"""Claims about who acts: both actors say what the policy's own methods say, and draw only from what they were given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch.core.randomness import PrivateTorchRandom, seeded_generators
from sb3_ppo_from_scratch.networks.mlp_policy import MlpPolicy
from sb3_ppo_from_scratch.networks.recognition import flattens_observations, recognise
from sb3_ppo_from_scratch.networks.torch_policy import TorchPolicy
from sb3_ppo_from_scratch.rollout.actors import Actor, FusedActor, PolicyActor
from tests.environments import ACTION_SPACES
from tests.unit.networks.policies import Setup, as_tensors, assert_close, cnn, multi_input

E = 4
SETUPS = {
    **{action: Setup(action=action) for action in ACTION_SPACES},
    **{f"{name}_observations": Setup(observation=name) for name in ("discrete", "multi_discrete", "multi_binary")},
    "pixels": Setup(observation="image"),
    "cnn": cnn(action="box"),
    "dict": multi_input(action="multi_discrete"),
}
every_setup = pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)


@pytest.fixture(autouse=True)
def _global_state() -> Iterator[None]:
    state = np.random.get_state(), th.get_rng_state()
    yield
    np.random.set_state(state[0])
    th.set_rng_state(state[1])


def fused(policy: ActorCriticPolicy, seed: int = 0, library: Any = None) -> FusedActor:
    family = recognise(policy).family
    assert family is not None
    library = library or (MlpPolicy if flattens_observations(policy) else TorchPolicy)
    return FusedActor(library(policy, family), policy.action_space, seeded_generators(seed, policy.device))


def by_methods(policy: ActorCriticPolicy, seed: int = 0) -> PolicyActor:
    return PolicyActor(policy, PrivateTorchRandom(seed, policy.device))


ACTORS = pytest.mark.parametrize("actor_of", [fused, by_methods])


@every_setup
@ACTORS
def test_values_and_log_probabilities_are_those_of_the_policy(setup: Setup, actor_of: Any) -> None:
    policy, observations = setup.build(), setup.observations(E)
    actor = actor_of(policy)
    actor.begin()
    actions, values, log_prob = actor.act(observations)
    assert actions.shape == (E, *policy.action_space.shape)
    assert values.shape == (E, 1)
    assert log_prob.shape == (E,)
    # Buffers keep every action in floats; an index must be whole.
    stored = (
        th.as_tensor(actions) if isinstance(policy.action_space, spaces.Discrete) else th.as_tensor(actions).float()
    )
    with th.no_grad():
        expected_values, expected_log_prob, _ = policy.evaluate_actions(as_tensors(observations), stored)
    assert_close(values, expected_values)
    assert_close(log_prob, expected_log_prob)
    assert not values.requires_grad
    assert not log_prob.requires_grad


@every_setup
@ACTORS
def test_actions_are_of_the_kind_that_sb3_stores(setup: Setup, actor_of: Any) -> None:
    policy, observations = setup.build(), setup.observations(E)
    with th.no_grad():
        stock = policy(as_tensors(observations))[0].numpy()
    actor: Actor = actor_of(policy)
    actions, _, _ = actor.act(observations)
    assert np.can_cast(actions.dtype, stock.dtype, "same_kind")
    assert actions.shape == stock.shape
    if not isinstance(policy.action_space, spaces.Box):
        assert all(policy.action_space.contains(action.astype(policy.action_space.dtype)) for action in actions)


@every_setup
@ACTORS
def test_the_critic_alone_says_the_same_to_arrays_and_tensors(setup: Setup, actor_of: Any) -> None:
    policy, observations = setup.build(), setup.observations(E)
    actor = actor_of(policy)
    with th.no_grad():
        expected = policy.predict_values(as_tensors(observations))
    for given in (observations, as_tensors(observations)):
        values = actor.values(given)
        assert values.shape == (E, 1)
        assert not values.requires_grad
        assert_close(values, expected)


@pytest.mark.parametrize("setup", [SETUPS["discrete"], SETUPS["box"], SETUPS["cnn"]], ids=["discrete", "box", "cnn"])
@ACTORS
def test_an_actor_draws_from_its_own_generator_and_from_no_other(setup: Setup, actor_of: Any) -> None:
    policy, observations = setup.build(), setup.observations(64)

    def sequence(seed: int, disturbed: bool) -> Any:
        actor = actor_of(policy, seed)
        drawn = []
        for _ in range(3):
            drawn.append(actor.act(observations)[0])
            if disturbed:
                np.random.rand(3), th.rand(3)
        return np.stack(drawn)

    before = np.random.get_state()[1].copy(), th.get_rng_state()
    expected = sequence(0, disturbed=False)
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])
    assert th.equal(th.get_rng_state(), before[1])
    np.testing.assert_array_equal(sequence(0, disturbed=True), expected)
    assert not np.array_equal(sequence(1, disturbed=False), expected)
    assert not np.array_equal(expected[0], expected[1])


@pytest.mark.parametrize("action", ACTION_SPACES)
def test_both_libraries_sample_the_same_actions_from_the_same_seed(action: str) -> None:
    policy, observations = Setup(action=action).build(), Setup().observations(64)
    actions = [fused(policy, 0, library).act(observations)[0] for library in (MlpPolicy, TorchPolicy)]
    assert_close(*actions, tolerance=1e-6)


@ACTORS
def test_acting_switches_to_evaluation(actor_of: Any) -> None:
    policy = Setup().build()
    policy.set_training_mode(True)
    actor_of(policy).begin()
    assert not policy.training


@ACTORS
def test_from_the_beginning_of_a_rollout_the_present_parameters_count(actor_of: Any) -> None:
    setup = Setup()
    policy, observations = setup.build(), setup.observations(E)
    actor = actor_of(policy)
    for parameter, other in zip(policy.parameters(), setup.build(seed=1).parameters(), strict=True):
        parameter.data = other.detach().clone()
    actor.begin()
    with th.no_grad():
        assert_close(actor.act(observations)[1], policy.predict_values(as_tensors(observations)))


def test_what_was_said_of_one_step_is_not_overwritten_by_the_next() -> None:
    setup = Setup(action="box")
    actor = fused(setup.build())
    first = actor.act(setup.observations(E, seed=0))
    kept = [np.asarray(part).copy() for part in first]
    actor.act(setup.observations(E, seed=1))
    for part, copy in zip(first, kept, strict=True):
        np.testing.assert_array_equal(np.asarray(part), copy)


GSDE = {
    "gsde": Setup(action="box", kwargs={"use_sde": True}),
    "gsde_one_deviation": Setup(action="uneven_box", kwargs={"use_sde": True, "full_std": False}),
    "cnn": cnn(action="box", use_sde=True),
}
every_gsde = pytest.mark.parametrize("setup", GSDE.values(), ids=GSDE)


@every_gsde
def test_with_gsde_the_counterpart_acts_with_the_policys_own_noise(setup: Setup) -> None:
    policy, observations = setup.build(), setup.observations(E)
    actor = fused(policy)
    actor.begin()
    for _ in range(2):
        actor.reset_noise(E)
        actions, values, log_prob = actor.act(observations)
        with th.no_grad():
            expected, expected_values, expected_log_prob = policy(as_tensors(observations))
        assert_close(actions, expected)
        assert_close(values, expected_values)
        assert_close(log_prob, expected_log_prob)
        assert not np.allclose(actions, policy.predict(observations, deterministic=True)[0])


@pytest.mark.parametrize("actor_of", [fused, by_methods])
def test_new_noise_of_gsde_is_drawn_from_the_private_sequence(actor_of: Any) -> None:
    policy = GSDE["gsde"].build()
    matrices = []
    for _ in range(2):
        actor, before = actor_of(policy), th.get_rng_state()
        actor.reset_noise(E)
        assert th.equal(th.get_rng_state(), before)
        matrices.append(policy.action_dist.exploration_matrices.clone())
        th.rand(5)
    assert th.equal(*matrices)
    assert matrices[0].shape[0] == E
