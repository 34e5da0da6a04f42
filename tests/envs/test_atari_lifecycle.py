"""AtariVecEnv never hangs: closing, forgetting to close, forking, and failures inside a thread.

Owns threads' ends; must not know what the games show.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from typing import Any

import pytest

from sb3_ppo_from_scratch.envs import AtariVecEnv
from sb3_ppo_from_scratch.envs.crew import Crew

PONG = "PongNoFrameskip-v4"


@pytest.fixture
def env() -> Any:
    env = AtariVecEnv(PONG, 3, seed=0, n_threads=2)
    yield env
    env.close()


def test_closing_twice_is_harmless_and_nothing_works_afterwards(env: AtariVecEnv) -> None:
    env.reset()
    env.close()
    env.close()
    for use in (env.reset, lambda: env.step([0, 0, 0]), env.step_wait):
        with pytest.raises(RuntimeError, match="closed"):
            use()


def test_closing_in_the_middle_of_a_step_lets_the_step_end(env: AtariVecEnv) -> None:
    env.reset()
    before = [ale.getFrameNumber() for ale in env.get_attr("ale")]
    env.step_async([0, 0, 0])
    env.close()

    assert [ale.getFrameNumber() for ale in env.get_attr("ale")] == [frame + 4 for frame in before]


def test_calls_out_of_order_raise_and_name_the_right_one(env: AtariVecEnv) -> None:
    with pytest.raises(RuntimeError, match=r"Call reset\(\) first"):
        env.step_async([0, 0, 0])
    env.reset()
    with pytest.raises(RuntimeError, match=r"call step_async\(\) first"):
        env.step_wait()
    env.step_async([0, 0, 0])
    with pytest.raises(RuntimeError, match=r"call step_wait\(\) before"):
        env.step_async([0, 0, 0])
    assert env.step_wait()[0].shape == (3, 4, 84, 84)


def test_reset_discards_a_step_under_way(env: AtariVecEnv) -> None:
    env.reset()
    env.step_async([0, 0, 0])
    env.reset()
    with pytest.raises(RuntimeError, match="No step is under way"):
        env.step_wait()


def test_a_failure_in_a_thread_is_raised_and_reset_recovers(env: AtariVecEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(action: int) -> None:
        raise OSError("the cartridge fell out")

    env.reset()
    with monkeypatch.context() as broken:
        broken.setattr(env.games[1], "play", fail)
        with pytest.raises(OSError, match="the cartridge fell out"):
            env.step([0, 0, 0])
    with pytest.raises(RuntimeError, match=r"Call reset\(\) first"):
        env.step([0, 0, 0])
    env.reset()
    assert len(env.step([0, 0, 0])[3]) == 3


@pytest.mark.parametrize("ending", ["", "env.step_async([2] * 4)", "raise SystemExit(0)"])
def test_a_process_that_does_not_close_its_games_still_ends(ending: str) -> None:
    script = (
        "from sb3_ppo_from_scratch.envs import AtariVecEnv\n"
        f"env = AtariVecEnv({PONG!r}, 4, seed=0, n_threads=3)\n"
        "env.reset()\n"
        "env.step([0] * 4)\n"
        "print('stepped', flush=True)\n" + ending
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)

    assert (result.returncode, result.stdout) == (0, "stepped\n"), result.stderr


def _step_in_fork(env: AtariVecEnv, results: Any) -> None:
    results.put(env.step([0, 0, 0])[0].shape)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_process_steps_its_copy_of_the_games(env: AtariVecEnv) -> None:
    context = multiprocessing.get_context("fork")
    env.reset()
    env.step([0, 0, 0])
    results = context.Queue()
    child = context.Process(target=_step_in_fork, args=(env, results))
    child.start()
    assert results.get(timeout=300) == (3, 4, 84, 84)
    child.join(timeout=300)

    assert child.exitcode == 0
    assert env.step([0, 0, 0])[0].shape == (3, 4, 84, 84)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_crew_takes_every_turn_once(n_threads: int) -> None:
    crew, taken = Crew(n_threads), []
    for n_turns in (1, 3, 20):
        crew.begin(taken.append, n_turns)
        assert crew.at_work
        crew.finish()
        assert sorted(taken) == list(range(n_turns))
        assert not crew.at_work
        taken.clear()
    crew.close()


def test_a_crew_waits_for_its_helpers_before_it_raises() -> None:
    crew, taken = Crew(3), []

    def turn(i: int) -> None:
        taken.append(i)
        if i == 0:
            raise ArithmeticError("turn 0")

    crew.begin(turn, 50)
    with pytest.raises(ArithmeticError, match="turn 0"):
        crew.finish()
    n_taken = len(taken)
    crew.begin(lambda i: None, 1)
    crew.finish()

    assert len(taken) == n_taken
    crew.close()
