"""Claims about the measurements: they are the update's own numbers, and taking them leaves no trace."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch as th
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.callbacks.environment import EpisodeRecord, emulator_frame_skip, is_wrapped_to_skip
from sb3_ppo_from_scratch.callbacks.measurement import Probe, divergence_target, max_entropy, probe, rollout_statistics
from tests.environments import ACTION_SPACES, OBSERVATION_SPACES
from tests.faults.environments import ArrayVecEnv
from tests.faults.models import logged, tiny_model
from tests.unit.callbacks.scenes import scene, vigilant

OURS: list[tuple[Any, dict[str, Any]]] = [(PPO, {}), (PPO, {"engine": "reference"})]
ALGORITHMS = [*OURS, (stable_baselines3.PPO, {})]


class ProbeAtTheEnd(BaseCallback):
    """Measures each rollout and changes nothing else."""

    probe: Probe

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.probe = probe(self.model, np.random.default_rng(0))  # type: ignore[arg-type]


def probed(env: Any, algorithm: Any = PPO, **settings: Any) -> tuple[Any, Probe]:
    """One rollout, and one update of a single step."""
    model, callback = tiny_model(env, algorithm, **settings), ProbeAtTheEnd()
    model.learn(model.n_steps * env.num_envs, callback=callback)
    return model, callback.probe


@pytest.mark.parametrize("algorithm, settings", ALGORITHMS)
@pytest.mark.parametrize("action", ACTION_SPACES)
def test_before_the_first_step_every_ratio_is_1(algorithm: Any, settings: dict[str, Any], action: str) -> None:
    first = probed(scene(action=action), algorithm, **settings)[1].first
    assert first.ratio_mean == pytest.approx(1, abs=1e-5)
    assert first.ratio_deviation < 1e-5
    assert (first.approx_kl, first.approx_kl_k1) == pytest.approx((0, 0), abs=1e-5)
    assert first.clip_fraction == 0


@pytest.mark.parametrize("observation", OBSERVATION_SPACES)
def test_every_observation_space_can_be_probed(observation: str) -> None:
    for algorithm in (PPO, stable_baselines3.PPO):
        gradients = probed(scene(observation=observation), algorithm)[1].gradients
        assert 0 < gradients.joint <= gradients.actor + gradients.critic + 1e-6


@pytest.mark.parametrize("settings", [{}, {"value_loss": "huber"}, {"advantage_normalization": "none"}])
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_joint_norm_is_that_of_the_update(engine: str, settings: dict[str, Any]) -> None:
    """The whole rollout is one minibatch here, so that the update has only this one gradient to clip."""
    model, measured = probed(scene(), engine=engine, ent_coef=0.1, **settings)
    assert measured.gradients.joint == pytest.approx(logged(model, "grad_norm"), rel=1e-4)
    factor = min(1.0, 0.5 / measured.gradients.joint)
    assert measured.gradients.clip_factor == pytest.approx(factor)
    assert measured.gradients.effective_learning_rate == pytest.approx(3e-4 * factor)


def test_actor_and_critic_share_what_the_features_extractor_trains() -> None:
    separate = probed(scene())[1].gradients
    assert (separate.shared_actor, separate.shared_critic) == (0, 0)
    assert separate.joint == pytest.approx(math.hypot(separate.actor, separate.critic))
    shared = probed(scene(observation="image"), policy="CnnPolicy")[1].gradients
    assert 0 < shared.shared_actor < shared.actor
    assert 0 < shared.shared_critic < shared.critic


def test_the_critics_gradient_grows_with_the_rewards_and_the_actors_does_not() -> None:
    plain = probed(scene())[1].gradients
    tenfold = probed(scene(lambda reward, n_steps, ends: 10 * reward))[1].gradients
    assert tenfold.critic == pytest.approx(10 * plain.critic, rel=0.1)
    assert tenfold.actor == pytest.approx(plain.actor, rel=0.1)


@pytest.mark.parametrize("algorithm, settings", [*ALGORITHMS, (stable_baselines3.A2C, {})])
@pytest.mark.parametrize("extractor", [None, "Dropout", "BatchNorm"])
def test_training_is_the_same_with_and_without_it(
    algorithm: Any, settings: dict[str, Any], extractor: str | None
) -> None:
    """Bit for bit: parameters, running statistics, optimizer, and where every global generator stands."""
    extractors = {"Dropout": Dropout, "BatchNorm": BatchNorm}
    traces = []
    for callback in (None, vigilant(ratio_tolerance=math.inf)):
        kwargs = {} if extractor is None else {"features_extractor_class": extractors[extractor]}
        arguments = {"n_steps": 8, "policy_kwargs": kwargs, "seed": 0, "device": "cpu", **settings}
        if algorithm is not stable_baselines3.A2C:
            arguments |= {"batch_size": 8, "n_epochs": 2}
        model = algorithm("MlpPolicy", scene(), **arguments)
        model.learn(4 * 8 * 2, callback=callback)
        states = [value for state in model.policy.optimizer.state.values() for value in state.values()]
        tensors = [*model.policy.parameters(), *model.policy.buffers(), *states, th.get_rng_state()]
        traces.append(([np.asarray(tensor.detach()) for tensor in tensors], random.random(), np.random.random()))
    np.testing.assert_equal(traces[0], traces[1])


class Dropout(th.nn.Flatten):
    """A features extractor that draws random numbers in training mode."""

    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        super().__init__()
        self.features_dim = spaces.utils.flatdim(observation_space)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return th.nn.functional.dropout(super().forward(observations), 0.1, self.training)


class BatchNorm(th.nn.BatchNorm1d):
    """A features extractor that keeps statistics of what it sees in training mode."""

    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        self.features_dim = spaces.utils.flatdim(observation_space)
        super().__init__(self.features_dim)


def test_a_policy_that_acts_otherwise_than_it_learns_is_seen_as_the_update_sees_it() -> None:
    first = probed(scene(), policy_kwargs={"features_extractor_class": Dropout})[1].first
    assert first.ratio_deviation > 1e-3


@pytest.mark.parametrize(
    "settings, target",
    [
        ({}, None),
        ({"target_kl": 0.02}, 0.02),
        ({"desired_kl": 0.01}, 0.01),
        ({"kl_target": 0.005}, None),
        ({"objective": "adaptive_kl", "kl_target": 0.005}, 0.005),
        ({"target_kl": 0.01, "desired_kl": 0.02}, 0.01),
    ],
)
def test_the_strictest_target_of_the_divergence_counts(settings: dict[str, Any], target: float | None) -> None:
    assert divergence_target(tiny_model(scene(), n_epochs=2, **settings)) == target
    assert divergence_target(stable_baselines3.A2C("MlpPolicy", scene(), device="cpu")) is None


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_it_leaves_gradients_and_modes_alone(engine: str) -> None:
    model = tiny_model(scene(), engine=engine)
    model.learn(32)
    parameters = list(model.policy.parameters())
    before = [(parameter.grad.data_ptr(), parameter.grad.clone()) for parameter in parameters]
    for training in (True, False):
        model.policy.set_training_mode(training)
        probe(model, np.random.default_rng(0))
        assert model.policy.training is training
    assert [parameter.grad.data_ptr() for parameter in parameters] == [address for address, _ in before]
    assert all(th.equal(p.grad, gradient) for p, (_, gradient) in zip(parameters, before, strict=True))


def test_statistics_of_a_rollout_worked_by_hand() -> None:
    class Buffer:
        rewards = np.array([[3.0], [4.0]])
        values = np.array([[1.0], [2.0]])
        advantages = np.array([[1.0], [-3.0]])
        returns = np.array([[2.0], [-1.0]])

    statistics = rollout_statistics(Buffer())
    assert statistics.reward_rms == pytest.approx(math.sqrt(12.5))
    assert (statistics.advantage_mean, statistics.advantage_std, statistics.advantage_max) == (-1, 2, 3)
    assert (statistics.return_mean, statistics.return_std) == (0.5, 1.5)
    assert statistics.return_rms == pytest.approx(math.sqrt(2.5))
    assert statistics.explained_variance == pytest.approx(1 - 4 / 2.25)
    assert statistics.is_finite


@pytest.mark.parametrize(
    "space, expected",
    [
        (spaces.Discrete(4), (math.log(4), 0)),
        (spaces.MultiDiscrete([2, 3]), (math.log(6), 0)),
        (spaces.MultiBinary(3), (3 * math.log(2), 0)),
        (spaces.Box(-1, 3, (2,)), (2 * math.log(4), 2)),
    ],
)
def test_the_largest_entropy_is_that_of_the_uniform_distribution(
    space: spaces.Space[Any], expected: tuple[float, int]
) -> None:
    assert max_entropy(space) == pytest.approx(expected)


def test_episodes_are_counted_across_rollouts() -> None:
    """Two environments: one episode of 3 steps and one of 4 that goes on, one of 5 that spans two rollouts."""
    record = EpisodeRecord()
    assert math.isnan(record.latest(rewards_are_raw=True).mean_length)
    starts = np.array([[1, 1], [0, 0], [0, 0], [1, 0]])
    record.add(np.array([[1.0, 1.0], [1.0, 1.0], [6.0, 1.0], [1.0, 1.0]]), starts)
    assert record.latest(rewards_are_raw=True).mean_length == 3
    record.add(np.array([[1.0, 8.0], [1.0, 1.0]]), np.array([[0, 0], [0, 1]]))
    episodes = record.latest(rewards_are_raw=True)
    assert episodes.mean_length == 4  # of 3 and 5
    # Last rewards of 6 and 8, in episodes of 4 steps at 11/4 each.
    assert episodes.last_reward_share == pytest.approx(7 / 11)
    assert math.isnan(record.latest(rewards_are_raw=False).last_reward_share)


def test_environments_that_tell_nothing_of_themselves_skip_nothing() -> None:
    assert emulator_frame_skip(ArrayVecEnv()) == 1
    assert not is_wrapped_to_skip(ArrayVecEnv())
