"""Claims about where a reference policy may come from, and that copies and saved files keep it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.reference_policy import frozen
from tests.environments import vector_environment
from tests.faults.models import logged
from tests.unit.duplicates import by_zip, every_duplicate
from tests.unit.engine_models import model_of
from tests.unit.reference_models import learn, other_policy, with_probabilities


@every_duplicate
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


class Masked(ActorCriticPolicy):
    """Judges actions by more than observations."""

    def evaluate_actions(self, obs: Any, actions: th.Tensor, action_masks: Any = None) -> Any:
        return super().evaluate_actions(obs, actions)


def test_a_policy_that_needs_more_than_observations_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"reference_policy is a Masked, which judges actions by more"):
        model_of(reference_policy=model_of(policy=Masked).policy)


def test_a_model_in_place_of_its_policy_is_told_so() -> None:
    with pytest.raises(TypeError, match=r"not PPO; of a model, pass model\.policy"):
        model_of(reference_policy=model_of())


def test_a_frozen_copy_moves_to_the_device_where_it_is_asked_and_leaves_its_source_where_it_is() -> None:
    policy = other_policy()
    assert frozen(policy, "meta").device == th.device("meta")
    assert policy.device == th.device("cpu")
    assert all(parameter.requires_grad for parameter in policy.parameters())
