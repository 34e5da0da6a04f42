"""Claims about the callback's warnings: each cause is seen in a real run, once, with numbers and a remedy."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_ppo_from_scratch.callbacks import DiagnosticsCallback, DiagnosticWarning
from sb3_ppo_from_scratch.core.judgements import CAUSES
from tests.unit.callbacks.scenes import scene, vigilant, watched


class StaleLogProbabilities(ActorCriticPolicy):
    """Reports an action as half as likely as it is."""

    def forward(self, obs: Any, deterministic: bool = False) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        actions, values, log_prob = super().forward(obs, deterministic)
        return actions, values, log_prob - np.log(2.0)


def only_push_left(model: Any) -> None:
    with th.no_grad():
        model.policy.action_net.bias[0] = 50.0


def freeze_the_actor(model: Any) -> None:
    for part in (model.policy.action_net, model.policy.mlp_extractor.policy_net):
        part.requires_grad_(False)


def double_pong() -> DummyVecEnv:
    import ale_py

    gym.register_envs(ale_py)
    return DummyVecEnv([lambda: Monitor(AtariWrapper(gym.make("ALE/Pong-v5")))])


def noise(reward: float, n_steps: int, ends: bool) -> float:
    return float(np.random.default_rng(n_steps).normal())


PROVOCATIONS: dict[str, dict[str, Any]] = {
    "not_finite": {"env": lambda: scene(lambda reward, n_steps, ends: float("nan")), "n_rollouts": 1},
    "log_probabilities": {"policy": StaleLogProbabilities, "n_rollouts": 1},
    "frame_skip": {"env": double_pong, "n_rollouts": 1, "n_steps": 4, "batch_size": 2},
    "normalization_gamma": {"env": lambda: VecNormalize(scene(), gamma=0.9), "n_rollouts": 1},
    "entropy_collapse": {"change": only_push_left},
    "dead_policy": {"change": freeze_the_actor, "ent_coef": 0.0},
    "reward_scale": {"env": lambda: scene(lambda reward, n_steps, ends: 1000 * reward)},
    "scale_drift": {"env": lambda: scene(lambda reward, n_steps, ends: reward * 1.2**n_steps), "n_rollouts": 6},
    "joint_clipping": {"env": lambda: scene(lambda reward, n_steps, ends: 20 * reward), "vf_coef": 5.0},
    "shared_trunk": {
        "env": lambda: scene(observation="image"),
        "policy": "CnnPolicy",
        "vf_coef": 100.0,
        "policy_kwargs": {"features_extractor_kwargs": {"features_dim": 16}},
    },
    "discount_horizon": {"env": lambda: scene(lambda reward, n_steps, ends: 10.0 * ends), "gamma": 0.4},
    "kl": {"learning_rate": 0.1, "n_epochs": 10},
    "clip_fraction_high": {"learning_rate": 0.1, "n_epochs": 10},
    "clip_fraction_low": {"learning_rate": 1e-7},
    "explained_variance": {
        "env": lambda: scene(noise),
        "n_rollouts": 22,
        "callback": lambda: vigilant(patience=2, late_steps=0),
    },
}


def test_every_cause_has_a_provocation() -> None:
    assert list(PROVOCATIONS) == list(CAUSES)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("cause", CAUSES)
def test_a_run_that_suffers_from_it_is_warned_about_it_once(cause: str) -> None:
    provocation = {"n_rollouts": 4, **PROVOCATIONS[cause]}
    env = provocation.pop("env", scene)()
    callback = provocation.pop("callback", lambda: None)()
    _, texts = watched(env, callback=callback, **provocation)
    about_it = [text for text in texts if text.startswith(f"{cause}: ")]
    assert len(about_it) == 1
    assert len(texts) == len({text.split(":")[0] for text in texts})


def test_what_is_noisy_has_to_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rollouts of a dead policy convince a callback whose patience is 3, not one whose patience is 4."""
    for patience, expected in ((3, 1), (4, 0)):
        callback = vigilant(patience=patience)
        _, texts = watched(scene(), 3, callback, only_push_left)
        assert sum(text.startswith("entropy_collapse") for text in texts) == expected


def test_a_callback_that_serves_two_runs_does_not_repeat_itself_and_forgets_another_model() -> None:
    callback = vigilant(patience=2)
    model, texts = watched(scene(), 3, callback, only_push_left)
    assert len(texts) > 0
    model.learn(96, callback=callback, reset_num_timesteps=False)  # a warning would be an error
    assert watched(scene(), 1, callback)[1] == []
    assert len(watched(scene(), 3, callback, only_push_left)[1]) == len(texts)


def test_short_runs_that_go_on_add_up() -> None:
    """One rollout each: only what is remembered from one call of ``learn`` to the next can last."""
    callback = vigilant(patience=3)
    model, texts = watched(scene(), 1, callback, only_push_left)
    assert texts == []
    model.learn(32, callback=callback, reset_num_timesteps=False)
    with pytest.warns(DiagnosticWarning) as seen:
        model.learn(32, callback=callback, reset_num_timesteps=False)
    assert any("entropy_collapse" in str(one.message) for one in seen)


def test_updates_of_short_rollouts_may_end_as_tiny_as_others() -> None:
    """The learning rate falls to a tenth within six rollouts, of which every second one is looked at."""
    callback = vigilant(patience=1, min_steps=64, late=0.0)
    settings = {"learning_rate": lambda left: 3e-2 if left > 0.5 else 1e-6, "n_epochs": 8}
    _, texts = watched(scene(), 6, callback, **settings)
    assert [text for text in texts if text.startswith("clip_fraction_low")] == []


def test_of_short_rollouts_not_every_one_is_looked_at() -> None:
    """Rollouts of 32 steps: the second, fourth and sixth make 64."""
    for patience, expected in ((3, 1), (4, 0)):
        callback = vigilant(patience=patience, min_steps=64)
        _, texts = watched(scene(), 6, callback, only_push_left)
        assert sum(text.startswith("entropy_collapse") for text in texts) == expected


def test_a_threshold_of_ones_own_decides() -> None:
    # Any change at all is beyond a KL of 0, where the default has nothing to say.
    _, texts = watched(scene(), 3, vigilant(patience=1, max_kl=0.0))
    assert [text for text in texts if text.startswith("kl: ")] != []
    assert [text for text in watched(scene(), 3)[1] if text.startswith("kl: ")] == []


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"patience": 0}, ValueError, "patience=0"),
        ({"patience": 2.5}, TypeError, r"patience=2\.5"),
        ({"min_steps": 0}, ValueError, "min_steps=0"),
        ({"max_cost": "x"}, TypeError, "max_cost='x'"),
        ({"max_cost": 0.0}, ValueError, r"max_cost=0\.0"),
        ({"max_kl": -1.0}, ValueError, r"max_kl=-1\.0"),
        ({"max_lk": 1.0}, TypeError, "max_lk; choose among .*max_kl"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        DiagnosticsCallback(**arguments)


def test_an_algorithm_without_rollouts_is_refused() -> None:
    from stable_baselines3 import DQN

    model = DQN("MlpPolicy", "CartPole-v1", buffer_size=10, device="cpu")
    with pytest.raises(TypeError, match="not DQN"):
        model.learn(1, callback=DiagnosticsCallback())
