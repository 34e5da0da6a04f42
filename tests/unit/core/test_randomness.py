"""Claims about the private generators: their sequences, and that nobody's global generator notices them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.core.randomness import PrivateTorchRandom, seeded_generators

CPU = th.device("cpu")


@pytest.fixture(autouse=True)
def _public_state() -> Iterator[None]:
    state = th.get_rng_state()
    yield
    th.set_rng_state(state)


def drawn(randomness: PrivateTorchRandom, n: int = 4) -> list[float]:
    with randomness:
        return th.rand(n).tolist()


def test_the_private_sequence_is_that_of_its_seed_and_goes_on_from_context_to_context() -> None:
    randomness = PrivateTorchRandom(3, CPU)
    private = drawn(randomness) + drawn(randomness)
    th.manual_seed(3)
    assert private == th.rand(4).tolist() + th.rand(4).tolist()


def test_what_is_drawn_outside_does_not_move_the_private_sequence() -> None:
    one, other = PrivateTorchRandom(3, CPU), PrivateTorchRandom(3, CPU)
    drawn(one), drawn(other)
    th.rand(100)
    th.manual_seed(99)
    assert drawn(one) == drawn(other)


def test_the_public_sequence_goes_on_as_if_nothing_had_been_drawn_in_between() -> None:
    th.manual_seed(11)
    expected = th.rand(6).tolist()
    th.manual_seed(11)
    randomness = PrivateTorchRandom(3, CPU)
    public = th.rand(2).tolist()
    drawn(randomness)
    public += th.rand(2).tolist()
    drawn(randomness, 1000)
    assert public + th.rand(2).tolist() == expected


def test_an_error_inside_gives_the_public_state_back_and_keeps_the_private_place() -> None:
    randomness, other = PrivateTorchRandom(3, CPU), PrivateTorchRandom(3, CPU)
    before = th.get_rng_state()

    def interrupted() -> None:
        with randomness:
            th.rand(4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert th.equal(th.get_rng_state(), before)
    drawn(other)
    assert drawn(randomness) == drawn(other)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_goes_on_where_the_original_stands(duplicate: Callable[..., PrivateTorchRandom]) -> None:
    randomness = PrivateTorchRandom(3, CPU)
    drawn(randomness)
    assert drawn(duplicate(randomness)) == drawn(randomness)


def test_generators_of_one_seed_are_alike_and_of_another_seed_are_not() -> None:
    one, same, other = (seeded_generators(seed, CPU) for seed in (3, 3, 4))
    expected = one.numpy.random(5).tolist(), drawn(one.torch)
    assert (same.numpy.random(5).tolist(), drawn(same.torch)) == expected
    assert other.numpy.random(5).tolist() != expected[0]
    assert drawn(other.torch) != expected[1]


def test_making_and_using_generators_leaves_every_global_one_alone() -> None:
    before = np.random.get_state()[1].copy(), th.get_rng_state()
    generators = seeded_generators(3, CPU)
    generators.numpy.random(5)
    drawn(generators.torch)
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])
    assert th.equal(th.get_rng_state(), before[1])


class NoisyReward(gym.Env[np.ndarray, np.ndarray]):
    """Pays noise, drawn from its own generator just as actions are, whatever the action."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Box(-10.0, 10.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        return np.zeros(1, np.float32), float(self.np_random.standard_normal(dtype=np.float32)), False, False, {}


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_actions_know_nothing_of_the_noise_of_an_environment_with_the_same_seed(engine: str) -> None:
    model = PPO("MlpPolicy", NoisyReward(), n_steps=512, n_epochs=1, seed=3, engine=engine)
    model.learn(512)
    actions, rewards = model.rollout_buffer.actions.ravel(), model.rollout_buffer.rewards.ravel()
    assert rewards.std() > 0.9
    assert abs(np.corrcoef(actions, rewards)[0, 1]) < 4 / np.sqrt(512)


def test_the_weights_and_a_policy_do_not_draw_the_same_numbers() -> None:
    th.manual_seed(3)
    assert drawn(seeded_generators(3, CPU).torch) != th.rand(4).tolist()
