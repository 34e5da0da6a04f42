"""AtariVecEnv against ``make_atari_env`` with ``VecFrameStack`` and ``VecTransposeImage``, step by step.

Owns the comparison of games and of every option; must not know how AtariVecEnv works inside.

Bound on the pixels: 0 grey levels, that is, equal in every bit. SB3 takes the maximum of two RGB frames and greys the
result; so does AtariVecEnv, by tables made with the same OpenCV call, and both resize with the same OpenCV call.
"""

from __future__ import annotations

from typing import Any

import pytest
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecTransposeImage

from sb3_ppo_from_scratch.envs import AtariVecEnv
from tests.envs.stepping import assert_same_run

NAMED_GAMES = ("Breakout", "Pong", "Seaquest", "SpaceInvaders", "Qbert", "MsPacman")
GAMES = (*NAMED_GAMES, "BeamRider", "DemonAttack", "Asteroids", "Boxing", "MontezumaRevenge", "AirRaid")

OPTIONS: dict[str, dict[str, Any]] = {
    "lives are not episodes, rewards whole": {"terminal_on_life_loss": False, "clip_reward": False},
    "no frame skip": {"frame_skip": 1},
    "skip of two": {"frame_skip": 2},
    "odd skip, small screen": {"frame_skip": 3, "screen_size": 63},
    "few no-ops": {"noop_max": 3},
    "sticky actions": {"action_repeat_probability": 0.25},
    "one frame": {"frame_stack": 1},
    "other mode": {"env_kwargs": {"full_action_space": True, "mode": 4, "difficulty": 1}},
}


def sb3_stack(game: str, n_envs: int, frame_stack: int = 4, **options: Any) -> VecEnv:
    env_kwargs = options.pop("env_kwargs", None)
    games = make_atari_env(game, n_envs, seed=3, env_kwargs=env_kwargs, wrapper_kwargs=options)
    return VecTransposeImage(VecFrameStack(games, frame_stack))


def compared(game: str, n_steps: int, n_envs: int = 2, n_processes: int = 1, **options: Any) -> Any:
    ours = AtariVecEnv(game, n_envs, seed=3, n_processes=n_processes, **options)
    theirs = sb3_stack(game, n_envs, **options)
    try:
        return assert_same_run(ours, theirs, n_steps)
    finally:
        ours.close()
        theirs.close()


@pytest.mark.parametrize("game", NAMED_GAMES)
def test_a_named_game_without_no_ops_returns_the_bits_of_sb3(game: str) -> None:
    seen = compared(f"{game}NoFrameskip-v4", 150, noop_max=0)

    assert seen["rewards"] + seen["dones"] > 0, "nothing happened that could have differed"


@pytest.mark.slow
@pytest.mark.parametrize("noop_max", [0, 30])
@pytest.mark.parametrize("game", GAMES)
def test_two_thousand_steps_return_the_bits_of_sb3(game: str, noop_max: int) -> None:
    seen = compared(f"{game}NoFrameskip-v4", 2_000, n_envs=1, noop_max=noop_max)

    assert seen["rewards"] + seen["dones"] > 0, "nothing happened that could have differed"


def test_random_no_ops_are_those_of_sb3_for_the_same_seed_in_every_process() -> None:
    seen = compared("BreakoutNoFrameskip-v4", 260, n_envs=3, n_processes=2)

    assert seen["dones"] > seen["episodes"] > 0, "lost lives and whole games were both to be compared"


@pytest.mark.parametrize("game", ["Breakout", "SpaceInvaders"], ids=["with FIRE", "without FIRE at once"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_an_option_does_what_it_does_in_sb3(options: dict[str, Any], game: str) -> None:
    compared(f"{game}NoFrameskip-v4", 40, **options)


@pytest.mark.parametrize("game", ["Qbert", "MsPacman"])
@pytest.mark.parametrize("max_frames", [201, 20], ids=["cap in play", "cap during no-ops and FIRE"])
def test_a_frame_cap_truncates_where_sb3_truncates(game: str, max_frames: int) -> None:
    seen = compared(f"{game}NoFrameskip-v4", 60, env_kwargs={"max_num_frames_per_episode": max_frames})

    assert seen["truncations"] > 0


def test_the_default_cap_is_108_000_frames() -> None:
    env = AtariVecEnv("PongNoFrameskip-v4", n_processes=1)

    assert env.get_attr("ale")[0].getInt("max_num_frames_per_episode") == 108_000
    env.close()


def test_a_version_5_game_works_once_its_own_frame_skip_is_off() -> None:
    env_kwargs = {"frameskip": 1, "repeat_action_probability": 0.0}

    assert compared("ALE/Pong-v5", 50, env_kwargs=env_kwargs)["episodes"] == 0


def test_a_reset_in_the_middle_of_a_game_starts_what_sb3_starts() -> None:
    ours, theirs = AtariVecEnv("BreakoutNoFrameskip-v4", 2, seed=3), sb3_stack("BreakoutNoFrameskip-v4", 2)
    for _ in range(3):
        assert_same_run(ours, theirs, 20)
    ours.seed(11)
    theirs.seed(11)
    assert_same_run(ours, theirs, 20)
    ours.close()
    theirs.close()
