"""Claims about the reference policy: what every reward is charged, what sees it, and that nothing of it ever learns."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.buffers import DictRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer as StockRolloutBuffer

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.reference_policy import frozen
from sb3_ppo_from_scratch.rollout import reference_penalty
from tests.environments import ACTION_SPACES, vector_environment
from tests.faults.models import ENGINES, logged
from tests.unit.engine_models import model_of, parameters

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


def other_policy(**setup: Any) -> Any:
    """A policy of the same kind that has learnt something else."""
    return model_of(**{**setup, "seed": 9, "learning_rate": 0.05, "n_epochs": 3}).learn(32).policy


def with_probabilities(*probabilities: float) -> Any:
    """A policy that chooses among three with these probabilities, whatever it sees."""
    policy = model_of(policy_kwargs={"net_arch": []}).policy
    with th.no_grad():
        policy.action_net.weight.zero_()
        policy.action_net.bias.copy_(th.tensor(probabilities).log())
    return policy


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


def learn(model: Any, total_timesteps: int, **arguments: Any) -> Any:
    """Without writing the log, which would empty it."""
    return model.learn(total_timesteps, log_interval=None, **arguments)


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


def logged_kl(model: Any) -> float:
    return float(model.logger.name_to_value["rollout/reference_kl"])


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


def by_zip(model: Any, folder: Path, **settings: Any) -> Any:
    model.save(folder / "model.zip")
    return PPO.load(folder / "model.zip", env=vector_environment(2), device="cpu", **settings)


@pytest.mark.parametrize(
    "duplicate",
    [by_zip, lambda model, _: copy.deepcopy(model), lambda model, _: pickle.loads(pickle.dumps(model))],
    ids=["zip", "deepcopy", "pickle"],
)
def test_a_duplicate_has_the_reference_by_value(duplicate: Callable[[Any, Path], Any], tmp_path: Path) -> None:
    file = tmp_path / "reference.zip"
    model_of(seed=9).save(file)
    model = learn(model_of(reference_policy=str(file), reference_kl_coef=0.5), 32)
    file.unlink()
    copied = duplicate(model, tmp_path)
    for ours, theirs in zip(copied.reference_policy.parameters(), model.reference_policy.parameters(), strict=True):
        assert th.equal(ours, theirs)
        assert not ours.requires_grad
    assert copied.reference_kl_coef == 0.5
    learn(copied, 32)
    assert "rollout/reference_kl" in copied.logger.name_to_value


def test_an_override_at_load_replaces_what_it_names(tmp_path: Path) -> None:
    given = other_policy()
    model = learn(model_of(reference_policy=given, reference_kl_coef=0.5), 32)
    assert by_zip(model, tmp_path, reference_kl_coef=0.25).reference_policy is not None
    replaced = by_zip(model, tmp_path, reference_policy=with_probabilities(0.2, 0.3, 0.5))
    assert replaced.reference_policy.action_net.bias.exp().tolist() == pytest.approx([0.2, 0.3, 0.5])
    dropped = learn(by_zip(model, tmp_path, reference_policy=None, reference_kl_coef=0.0), 32)
    assert "rollout/reference_kl" not in dropped.logger.name_to_value
    with pytest.raises(ValueError, match=r"reference_kl_coef=0\.5 needs a reference_policy"):
        by_zip(model, tmp_path, reference_policy=None)


def test_stock_carries_the_reference_along(tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    model = learn(model_of(reference_policy=other_policy(), reference_kl_coef=0.5), 32)
    model.save(path)
    stable_baselines3.PPO.load(path, vector_environment(2), device="cpu").learn(32).save(path)
    loaded = PPO.load(path, env=vector_environment(2), device="cpu")
    assert th.equal(loaded.reference_policy.action_net.bias, model.reference_policy.action_net.bias)
    assert loaded.reference_kl_coef == 0.5


@pytest.mark.parametrize("algorithm", [PPO, stable_baselines3.PPO, stable_baselines3.A2C])
def test_any_on_policy_algorithm_may_have_saved_it(algorithm: Any, tmp_path: Path) -> None:
    saved = algorithm("MlpPolicy", vector_environment(2, action="box"), n_steps=32, seed=4, device="cpu")
    saved.save(tmp_path / "saved.zip")
    for path in (tmp_path / "saved", str(tmp_path / "saved.zip")):
        model = model_of(action="box", reference_policy=path)
        assert th.equal(parameters_of(model.reference_policy), parameters_of(saved.policy))


def parameters_of(policy: Any) -> th.Tensor:
    return th.nn.utils.parameters_to_vector(policy.parameters()).detach()


def test_one_that_is_assigned_while_training_counts_from_the_next_rollout() -> None:
    model, charged = model_of(), []

    def assign(seen: dict[str, Any], _: dict[str, Any]) -> bool:
        if model.num_timesteps == 16:
            model.reference_policy, model.reference_kl_coef = with_probabilities(0.2, 0.3, 0.5), 1.0
        charged.append("rollout/reference_kl" in model.logger.name_to_value)
        return True

    learn(model, 32, callback=assign)
    assert not any(charged)
    assert "rollout/reference_kl" not in model.logger.name_to_value
    learn(model, 32)
    assert "rollout/reference_kl" in model.logger.name_to_value
    assert logged(model, "n_updates") == 2


def broken_file(folder: Path) -> Path:
    (folder / "broken.zip").write_bytes(b"not a zip")
    return folder / "broken.zip"


def off_policy_file(folder: Path) -> Path:
    stable_baselines3.DQN("MlpPolicy", vector_environment(), buffer_size=10).save(folder / "dqn.zip")
    return folder / "dqn.zip"


@pytest.mark.parametrize(
    "source, message",
    [
        pytest.param(
            lambda _: other_policy(action="box"), "has the action space Box.*but the environment", id="action"
        ),
        pytest.param(lambda _: other_policy(observation="discrete"), "has the observation space Discrete", id="seen"),
        pytest.param(lambda folder: folder / "no.zip", r"reference_policy='.*no\.zip' cannot be read", id="missing"),
        pytest.param(broken_file, r"reference_policy='.*broken\.zip' cannot be read", id="broken"),
        pytest.param(off_policy_file, "holds no ActorCriticPolicy but .*DQNPolicy", id="off_policy"),
    ],
)
def test_what_cannot_be_a_reference_is_refused_before_anything_starts(
    source: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    given = source(tmp_path)
    with pytest.raises(ValueError, match=message):
        model_of(reference_policy=given, reference_kl_coef=0.1)
    model = model_of()
    model.reference_policy = given
    with pytest.raises(ValueError, match=message):
        learn(model, 32)
    assert model.num_timesteps == 0


def test_a_model_in_place_of_its_policy_is_told_so() -> None:
    with pytest.raises(TypeError, match=r"not PPO; of a model, pass model\.policy"):
        model_of(reference_policy=model_of())


def test_a_frozen_copy_moves_to_the_device_where_it_is_asked_and_leaves_its_source_where_it_is() -> None:
    policy = other_policy()
    assert frozen(policy, "meta").device == th.device("meta")
    assert policy.device == th.device("cpu")
    assert all(parameter.requires_grad for parameter in policy.parameters())
