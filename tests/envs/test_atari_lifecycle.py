"""AtariVecEnv never hangs: closing, forgetting to close, forking, and processes that die.

Owns processes' ends; must not know what the games show.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from sb3_ppo_from_scratch.envs import AtariVecEnv
from sb3_ppo_from_scratch.envs.remote import Remote

PONG = "PongNoFrameskip-v4"


@pytest.fixture
def env() -> Any:
    env = AtariVecEnv(PONG, 3, seed=0, n_processes=2)
    yield env
    env.close()


def other_processes(env: AtariVecEnv) -> list[subprocess.Popen[bytes]]:
    return [remote._process for remote in env._team._elsewhere]


def test_closing_twice_is_harmless_and_nothing_works_afterwards(env: AtariVecEnv) -> None:
    env.reset()
    env.close()
    env.close()
    for use in (env.reset, lambda: env.step([0, 0, 0]), env.step_wait):
        with pytest.raises(RuntimeError, match="closed"):
            use()
    assert [process.poll() for process in other_processes(env)] == [0]


def test_closing_in_the_middle_of_a_step_ends_the_processes(env: AtariVecEnv) -> None:
    env.reset()
    env.step_async([0, 0, 0])
    env.close()

    assert [process.poll() for process in other_processes(env)] == [0]


def test_an_environment_that_is_collected_ends_its_processes() -> None:
    env = AtariVecEnv(PONG, 2, seed=0, n_processes=2)
    processes = other_processes(env)
    del env
    gc.collect()

    assert [process.poll() for process in processes] == [0]


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
    assert env.step([0, 0, 0])[0].shape == (3, 4, 84, 84)


def test_a_failure_is_raised_and_reset_recovers(env: AtariVecEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(action: int) -> None:
        raise OSError("the cartridge fell out")

    env.reset()
    with monkeypatch.context() as broken:
        broken.setattr(env._team.first_game, "play", fail)
        with pytest.raises(OSError, match="the cartridge fell out"):
            env.step([0, 0, 0])
    with pytest.raises(RuntimeError, match=r"Call reset\(\) first"):
        env.step([0, 0, 0])
    env.reset()
    assert len(env.step([0, 0, 0])[3]) == 3


def test_a_failure_in_another_process_is_raised_here_and_reset_recovers(env: AtariVecEnv) -> None:
    env.reset()
    settings = env.get_attr("settings", indices=2)[0]
    env.set_attr("settings", None, indices=2)
    with pytest.raises(AttributeError, match="frame_skip"):
        env.step([0, 0, 0])
    env.set_attr("settings", settings, indices=2)
    env.reset()
    assert len(env.step([0, 0, 0])[3]) == 3


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize("moment", ["between steps", "in a step"])
def test_a_process_that_dies_raises_instead_of_hanging(env: AtariVecEnv, moment: str) -> None:
    env.reset()
    if moment == "in a step":
        for process in other_processes(env):
            process.send_signal(signal.SIGSTOP)  # lest it has answered before it dies
        env.step_async([0, 0, 0])
    for process in other_processes(env):
        process.kill()
        process.wait()
    with pytest.raises(RuntimeError, match=r"is gone.*make a new environment"):
        env.step_wait() if moment == "in a step" else env.step([0, 0, 0])
    with pytest.raises(RuntimeError, match="is gone"):
        env.reset()


@pytest.mark.parametrize("ending", ["", "env.step_async([2] * 4)", "raise SystemExit(0)"])
def test_a_process_that_does_not_close_its_games_still_ends(ending: str) -> None:
    # Output goes to a pipe that stays open until every process that inherited it has ended.
    script = (
        "from sb3_ppo_from_scratch.envs import AtariVecEnv\n"
        f"env = AtariVecEnv({PONG!r}, 4, seed=0, n_processes=3)\n"
        "env.reset()\n"
        "env.step([0] * 4)\n"
        "print('stepped', flush=True)\n" + ending
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)

    assert (result.returncode, result.stdout) == (0, "stepped\n"), result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_the_games_end_with_a_process_that_is_killed() -> None:
    script = (
        "import time\n"
        "from sb3_ppo_from_scratch.envs import AtariVecEnv\n"
        f"env = AtariVecEnv({PONG!r}, 2, seed=0, n_processes=2)\n"
        "env.reset()\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
        # Ends only when the games' process, which inherited it, has ended too.
        _, errors = process.communicate(timeout=300)

    assert "Traceback" not in errors


def _use_in_fork(env: AtariVecEnv, results: Any) -> None:
    try:
        env.step([0, 0, 0])
    except RuntimeError as error:
        results.put(str(error))
    env.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_process_is_refused_and_does_no_harm(env: AtariVecEnv) -> None:
    context = multiprocessing.get_context("fork")
    env.reset()
    env.step([0, 0, 0])
    results = context.Queue()
    child = context.Process(target=_use_in_fork, args=(env, results))
    child.start()
    assert "make one in each process" in results.get(timeout=300)
    child.join(timeout=300)

    assert child.exitcode == 0
    assert env.step([0, 0, 0])[0].shape == (3, 4, 84, 84)


class Lodger:
    """Lives in another process and prints, fails or returns what cannot be sent."""

    def __init__(self, name: str) -> None:
        print("noise on standard output")
        if not name:
            raise ValueError("a lodger needs a name")
        self.name = name

    def greet(self, whom: str = "you", *, times: int = 1) -> str:
        print("noise on standard output")
        return f"{self.name} greets {whom}" * times

    def hand_over(self) -> Any:
        return lambda: None

    def leave(self) -> None:
        os._exit(3)


def test_a_remote_object_answers_whatever_it_prints() -> None:
    remote = Remote(Lodger, "Ann")
    assert remote.finish() is None
    assert remote.call("greet", "Bob", times=2) == "Ann greets Bob" * 2
    remote.begin("greet", "nobody")
    assert remote.call("greet") == "Ann greets you"
    remote.close()
    remote.close()


def test_what_fails_or_cannot_be_sent_is_raised_and_the_remote_goes_on() -> None:
    remote = Remote(Lodger, "Ann")
    with pytest.raises(AttributeError, match="sing") as caught:
        remote.call("sing")
    assert "Traceback" in str(caught.value.__cause__)
    with pytest.raises(TypeError, match="hand_over returned cannot leave its process"):
        remote.call("hand_over")
    with pytest.raises(Exception, match="pickle"):
        remote.call("greet", lambda: None)
    assert remote.call("greet") == "Ann greets you"
    with pytest.raises(RuntimeError, match=r"exit code 3"):
        remote.call("leave")


def test_a_remote_that_cannot_be_made_tells_why() -> None:
    remote = Remote(Lodger, "")
    with pytest.raises(ValueError, match="a lodger needs a name"):
        remote.finish()
    remote.close()
