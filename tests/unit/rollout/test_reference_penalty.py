"""Claims about the reference policy: what every reward is charged, what sees it, and that nothing of it ever learns."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.buffers import DictRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer

from sb3_ppo_from_scratch.rollout import reference_penalty
from tests.environments import ACTION_SPACES
from tests.faults.models import ENGINES
from tests.unit.engine_models import model_of, parameters
from tests.unit.reference_models import learn, logged_kl, other_policy, with_probabilities

every_engine = pytest.mark.parametrize("engine", ENGINES)
SETUPS: dict[str, dict[str, Any]] = {
    **{action: {"action": action} for action in ACTION_SPACES},
    "discrete_observations": {"observation": "discrete"},
    "multi_binary_observations": {"observation": "multi_binary"},
    "image": {
        "policy": "CnnPolicy",
        "observation": "image",
        "policy_kwargs": {"features_extractor_kwargs": {"features_dim": 16}},
    },
    "dict": {"policy": "MultiInputPolicy", "observation": "dict_of_vectors"},
    "gsde": {"action": "box", "use_sde": True},
    "squashed": {"action": "uneven_box", "use_sde": True, "policy_kwargs": {"squash_output": True}},
}


class Witness:
    """Sees each step as a callback does, and asks the reference about it one step at a time."""

    def __init__(self, reference: Any) -> None:
        self.reference = reference
        self.rewards: list[Any] = []
        self.log_ratios: list[Any] = []

    def __call__(self, seen: dict[str, Any], _: dict[str, Any]) -> bool:
        self.rewards.append(np.array(seen["rewards"]))
        actions = th.as_tensor(seen["actions"].astype(np.float32))
        with th.no_grad():
            _, log_prob, _ = self.reference.evaluate_actions(seen["obs_tensor"], actions)
        self.log_ratios.append((seen["log_probs"] - log_prob).numpy())
        return True


def rolled_out(model: Any, callback: Any = None) -> Any:
    """The buffer after one rollout and no update."""
    model.train = lambda: None
    learn(model, 32, callback=callback)
    del model.train
    return model.rollout_buffer


@every_engine
def test_the_charge_in_worked_numbers(engine: str) -> None:
    """Both policies see nothing: r − 2·(log π(a) − log π_ref(a)) for each of the three actions."""
    reference, settings = with_probabilities(0.2, 0.3, 0.5), {"policy_kwargs": {"net_arch": []}, "engine": engine}
    model = model_of(**settings, reference_policy=reference, reference_kl_coef=2.0)
    model.policy.load_state_dict(with_probabilities(0.25, 0.25, 0.5).state_dict())
    witness = Witness(reference)
    buffer = rolled_out(model, witness)
    actions = buffer.actions[..., 0].astype(int)
    log_ratio = np.log([0.25 / 0.2, 0.25 / 0.3, 1.0])[actions]
    assert set(np.unique(actions)) == {0, 1, 2}
    np.testing.assert_allclose(buffer.rewards, np.stack(witness.rewards) - 2.0 * log_ratio, atol=1e-6)
    assert logged_kl(model) == pytest.approx(log_ratio.mean(), abs=1e-6)


@every_engine
@pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)
def test_what_is_learnt_from_is_charged_and_what_others_see_is_not(setup: dict[str, Any], engine: str) -> None:
    reference = other_policy(**setup)
    model = model_of(**setup, engine=engine, reference_policy=reference, reference_kl_coef=0.5, time_limit=5)
    witness = Witness(model.reference_policy)
    buffer = rolled_out(model, witness)
    log_ratios = np.stack(witness.log_ratios)
    assert np.abs(log_ratios).max() > 1e-3
    np.testing.assert_allclose(buffer.rewards, np.stack(witness.rewards) - 0.5 * log_ratios, rtol=1e-4, atol=1e-5)
    assert logged_kl(model) == pytest.approx(log_ratios.mean(), rel=1e-3, abs=1e-5)
    # The charge is part of the advantages, not an afterthought.
    last = (buffer.episode_starts[1:] == 1) & (buffer.bootstraps[:-1] == 0)
    expected = (buffer.rewards - buffer.values)[:-1][last]
    np.testing.assert_allclose(buffer.advantages[:-1][last], expected, atol=1e-5)
    # Monitor's episodes are those of the environment.
    returns = sum(info["r"] for info in model.ep_info_buffer)
    assert returns == pytest.approx(finished_rewards(witness.rewards, buffer.episode_starts), abs=1e-4)


def finished_rewards(rewards: list[Any], episode_starts: Any) -> float:
    """Sum of the rewards of the episodes that ended within the rollout's first T − 1 steps or at its end."""
    total = 0.0
    for env in range(episode_starts.shape[1]):
        starts = np.flatnonzero(episode_starts[:, env])
        total += sum(float(step[env]) for step in rewards[: starts[-1]])
    return total


@pytest.mark.parametrize("buffer_class", [None, StockRolloutBuffer, DictRolloutBuffer], ids=["ours", "stock", "dict"])
def test_a_buffer_of_sb3s_interface_is_charged_alike(buffer_class: Any) -> None:
    setup = SETUPS["dict"] if buffer_class is DictRolloutBuffer else SETUPS["box"]
    user_class = None if buffer_class is None else type("UserBuffer", (buffer_class,), {})
    model = model_of(
        **setup, rollout_buffer_class=user_class, reference_policy=other_policy(**setup), reference_kl_coef=0.5
    )
    witness = Witness(model.reference_policy)
    buffer = rolled_out(model, witness)
    expected = np.stack(witness.rewards) - 0.5 * np.stack(witness.log_ratios)
    np.testing.assert_allclose(buffer.rewards, expected, rtol=1e-4, atol=1e-5)


def test_how_many_are_asked_about_at_once_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**SETUPS["box"], "reference_policy": other_policy(**SETUPS["box"]), "reference_kl_coef": 0.5}
    rewards = []
    for n_rows in (1, 5, 512):
        monkeypatch.setattr(reference_penalty, "_ROWS", n_rows)
        rewards.append(rolled_out(model_of(**settings)).rewards.copy())
    np.testing.assert_allclose(rewards[0], rewards[2], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rewards[1], rewards[2], rtol=1e-5, atol=1e-6)


@every_engine
def test_without_a_coefficient_the_divergence_is_logged_and_nothing_else_changes(engine: str, tmp_path: Path) -> None:
    """No random number is drawn either, not even by reading the reference from a file."""
    model_of(seed=9).save(tmp_path / "reference.zip")
    watching = learn(model_of(engine=engine, n_epochs=2, reference_policy=tmp_path / "reference.zip"), 64)
    alone = learn(model_of(engine=engine, n_epochs=2), 64)
    assert th.equal(parameters(watching), parameters(alone))
    assert "rollout/reference_kl" in watching.logger.name_to_value
    assert "rollout/reference_kl" not in alone.logger.name_to_value


@every_engine
def test_a_policy_that_is_its_own_reference_is_charged_nothing_at_first(engine: str) -> None:
    model = model_of(engine=engine, n_epochs=4, learning_rate=1e-2)
    model.reference_policy, model.reference_kl_coef = model.policy, 1.0
    learn(model, 32)
    assert logged_kl(model) == pytest.approx(0.0, abs=1e-6)
    # The policy has learnt since, the reference has not.
    learn(model, 32, reset_num_timesteps=False)
    assert abs(logged_kl(model)) > 1e-5


@every_engine
def test_the_reference_never_learns_and_never_leaks(engine: str) -> None:
    given = other_policy()
    before = copy.deepcopy(given.state_dict())
    model = model_of(engine=engine, n_epochs=3, learning_rate=1e-2, reference_policy=given, reference_kl_coef=0.1)
    reference = model.reference_policy
    assert reference is not given
    assert given.optimizer is not None
    learn(model, 96)
    assert model.reference_policy is reference
    for policy in (given, reference):
        assert all(th.equal(tensor, before[name]) for name, tensor in policy.state_dict().items())
    assert not any(parameter.requires_grad or parameter.grad is not None for parameter in reference.parameters())
    assert not reference.training
    assert all(parameter.requires_grad for parameter in given.parameters())
    with th.no_grad():
        given.action_net.bias += 1.0
    assert th.equal(reference.action_net.bias, before["action_net.bias"])


@every_engine
def test_a_strong_charge_brings_the_policy_to_its_reference(engine: str) -> None:
    divergences = []
    reference = with_probabilities(0.7, 0.2, 0.1)
    for coef in (0.0, 20.0):
        model = model_of(
            engine=engine, n_epochs=4, learning_rate=2e-2, reference_policy=reference, reference_kl_coef=coef,
            policy_kwargs={"net_arch": []},
        )  # fmt: skip
        learn(model, 960)
        divergences.append(logged_kl(model))
    assert divergences[1] < divergences[0] / 4
