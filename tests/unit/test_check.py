"""Claims about ``python -m sb3_ppo_from_scratch.check``: it tells every cause by its exit code, and praises health."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecNormalize

from sb3_ppo_from_scratch import PPO
from sb3_ppo_from_scratch.check.__main__ import EXIT_CODES, main
from tests.cartpole import cartpole_model
from tests.environments import HiddenStateEnv
from tests.unit.callbacks.scenes import Rewarded, Rule
from tests.unit.callbacks.test_measurement import Dropout
from tests.unit.callbacks.test_warnings import StaleLogProbabilities, only_push_left

RULES: dict[str, Rule] = {
    "Plain": lambda reward, n_steps, ends: reward,
    "Nan": lambda reward, n_steps, ends: float("nan") if n_steps == 9 else reward,
    "Huge": lambda reward, n_steps, ends: 1000 * reward,
    "Large": lambda reward, n_steps, ends: 100 * reward,
    "Late": lambda reward, n_steps, ends: 1.0 * ends,
}
SMALL = ["--n-envs", "2", "--n-steps", "64"]


def _environment(rule: Rule, episode_length: int) -> gym.Env[Any, Any]:
    return Rewarded(HiddenStateEnv(episode_length=episode_length), rule)


@pytest.fixture(autouse=True)
def _environments() -> Iterator[None]:
    for name, rule in RULES.items():
        length = 60 if name == "Late" else 7
        gym.register(
            f"Check{name}-v0",
            entry_point=partial(_environment, rule, length),
        )
    yield
    for name in RULES:
        del gym.registry[f"Check{name}-v0"]


def saved(folder: Path, change: Callable[[Any], None] = lambda model: None, **settings: Any) -> str:
    """A small model for these environments, in a file."""
    env = make_vec_env("CheckPlain-v0", 2)
    arguments = {"policy": "MlpPolicy", "n_steps": 32, "batch_size": 32, "n_epochs": 2, "seed": 0, "device": "cpu"}
    algorithm = settings.pop("algorithm", PPO)
    model = algorithm(env=env, **{**arguments, **settings})
    change(model)
    model.save(folder / "model.zip")
    return str(folder / "model.zip")


def fill_with_nan(model: Any) -> None:
    with th.no_grad():
        model.policy.value_net.bias.fill_(float("nan"))


def fill_with_huge_weights(model: Any) -> None:
    with th.no_grad():
        model.policy.action_net.weight.fill_(3e38)


def test_a_healthy_model_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--env", "CheckPlain-v0", "--model", saved(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "Nothing wrong in sight" in printed
    assert "2 × 32 steps" in printed
    for quantity in (
        "mean ratio",
        "largest |ratio − 1|",
        "KL before it, k1",
        "KL after the update, k3",
        "clip fraction",
        "advantages",
        "returns",
        "explained variance",
        "entropy",
        "actor gradient norm",
        "critic gradient norm",
        "joint clip factor",
        "effective actor rate",
    ):
        assert quantity in printed


def test_a_new_model_and_a_trained_one_are_healthy(tmp_path: Path) -> None:
    assert main(["--env", "CartPole-v1"]) == 0
    model = cartpole_model(PPO, seed=0)
    model.learn(4_096).save(tmp_path / "model.zip")
    assert main(["--env", "CartPole-v1", "--model", str(tmp_path / "model.zip")]) == 0


def test_a_stock_model_is_examined_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, algorithm=stable_baselines3.PPO)
    assert main(["--env", "CheckPlain-v0", "--model", path, "--n-envs", "4", "--n-steps", "16"]) == 0
    assert "4 × 16 steps" in capsys.readouterr().out


class FrozenActor(ActorCriticPolicy):
    """Trains its critic only."""

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        for part in (self.action_net, self.mlp_extractor.policy_net):
            part.requires_grad_(False)


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "not_finite": ("CheckPlain-v0", {"change": fill_with_nan}),
    "log_probabilities": ("CheckPlain-v0", {"policy": StaleLogProbabilities}),
    "dead_policy": ("CheckPlain-v0", {"policy": FrozenActor}),
    "entropy_collapse": ("CheckPlain-v0", {"change": only_push_left}),
    "reward_scale": ("CheckHuge-v0", {}),
    "joint_clipping": ("CheckLarge-v0", {"max_grad_norm": 0.1, "gamma": 0.0}),
    "discount_horizon": ("CheckLate-v0", {"gamma": 0.9, "n_steps": 128}),
}


@pytest.mark.parametrize("cause", CASES)
def test_every_cause_has_its_exit_code(cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env, settings = CASES[cause]
    assert main(["--env", env, "--model", saved(tmp_path, **settings)]) == EXIT_CODES[cause]
    printed = capsys.readouterr().out
    assert f"Likely cause: {cause}" in printed
    assert "Try: " in printed


def test_an_update_that_destroys_the_policy_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, learning_rate=1e39, batch_size=64, n_epochs=1)
    assert main(["--env", "CheckPlain-v0", "--model", path]) == EXIT_CODES["not_finite"]
    assert "A single update leaves the parameters with NaN" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_outputs_that_overflow_are_found(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, fill_with_huge_weights, engine=engine)
    assert main(["--env", "CheckPlain-v0", "--model", path]) == EXIT_CODES["not_finite"]
    assert "The policy's outputs are NaN or infinity" in " ".join(capsys.readouterr().out.split())


def test_dropout_shows_as_mismatched_log_probabilities(tmp_path: Path) -> None:
    path = saved(tmp_path, policy_kwargs={"features_extractor_class": Dropout})
    assert main(["--env", "CheckPlain-v0", "--model", path]) == EXIT_CODES["log_probabilities"]


def test_a_reward_that_is_no_number_is_found_where_it_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--env", "CheckNan-v0", *SMALL]) == EXIT_CODES["not_finite"]
    assert "Step 9 of the environment returns rewards with NaN" in capsys.readouterr().out


def test_frames_that_are_skipped_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--env", "ALE/Pong-v5", "--n-envs", "1", "--n-steps", "8"]) == EXIT_CODES["frame_skip"]
    assert "on shared layers" in capsys.readouterr().out


def test_statistics_with_another_gamma(tmp_path: Path) -> None:
    statistics = str(tmp_path / "vecnormalize.pkl")
    for gamma, code in ((0.99, 0), (0.9, EXIT_CODES["normalization_gamma"])):
        VecNormalize(make_vec_env("CheckPlain-v0", 2), gamma=gamma).save(statistics)
        assert main(["--env", "CheckPlain-v0", "--model", saved(tmp_path), "--normalize", statistics]) == code


def test_every_cause_that_counts_has_a_case() -> None:
    assert set(EXIT_CODES) == {*CASES, "frame_skip", "normalization_gamma"}


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--env", "Nowhere-v0"], "--env Nowhere-v0 cannot be made"),
        (["--env", "nowhere:Nowhere-v0"], "--env nowhere:Nowhere-v0 cannot be made"),
        (["--env", "CheckPlain-v0", "--model", "nowhere.zip"], "--model nowhere.zip cannot be read"),
        (["--env", "CheckPlain-v0", "--model", __file__], "cannot be read"),
        (["--env", "CheckPlain-v0", "--normalize", __file__], "cannot be used"),
        (["--env", "CheckPlain-v0", "--seed", "-1"], "'-1' must be a whole number of at least 0"),
        (["--env", "CheckPlain-v0", "--normalize", "nowhere.pkl"], "--normalize nowhere.pkl is no file"),
        (["--env", "CheckPlain-v0", "--n-envs", "1", "--n-steps", "1"], "n_steps=1 with 1 environment"),
        (["--env", "CheckPlain-v0", "--n-steps", "0"], "'0' must be a whole number of at least 1"),
        (["--env", "CheckPlain-v0", "--n-envs", "two"], "'two' must be a whole number of at least 1"),
        ([], "--env"),
    ],
)
def test_unusable_arguments_are_named(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("sizes", [[], SMALL], ids=["its_own_sizes", "other_sizes"])
@pytest.mark.parametrize("algorithm", [stable_baselines3.DQN, stable_baselines3.A2C])
def test_a_model_of_another_algorithm_is_refused(
    algorithm: Any, sizes: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    algorithm("MlpPolicy", "CartPole-v1", device="cpu").save(tmp_path / "model.zip")
    with pytest.raises(SystemExit) as exit_:
        main(["--env", "CartPole-v1", "--model", str(tmp_path / "model.zip"), *sizes])
    assert exit_.value.code == 2
    assert "was saved by another algorithm" in " ".join(capsys.readouterr().err.split())


def test_a_single_transition_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--env", "CheckPlain-v0", "--model", saved(tmp_path), "--n-steps", "1", "--n-envs", "1"])
    assert exit_.value.code == 2
    assert "--n-steps 1 with 1 environment is one transition" in " ".join(capsys.readouterr().err.split())


def test_the_suffix_of_a_saved_model_may_be_left_out(tmp_path: Path) -> None:
    assert main(["--env", "CheckPlain-v0", "--model", saved(tmp_path).removesuffix(".zip")]) == 0


def test_nothing_is_written_where_the_model_logs(tmp_path: Path) -> None:
    path = saved(tmp_path, tensorboard_log=str(tmp_path / "runs"))
    assert main(["--env", "CheckPlain-v0", "--model", path]) == 0
    assert not (tmp_path / "runs").exists()


def test_a_model_of_another_environment_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--env", "CartPole-v1", "--model", saved(tmp_path)])
    assert exit_.value.code == 2
    assert "does not fit --env" in capsys.readouterr().err


def test_the_help_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    assert all(f"\n  {code} " in printed for code in {0, 2, *EXIT_CODES.values()})
