"""`python -m benchmarks head-to-head`, told from outside: processes that share a folder, die and go on."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Any

import pytest

from benchmarks.files import is_locked
from benchmarks.head_to_head.runs import Run, run_lock
from benchmarks.head_to_head.table import COLUMNS, RESULTS, ROWS

ROOT = Path(__file__).parents[2]
STEPS = 600
ROLLOUT = 8 * 32  # of CartPole-v1 in myppo.yml
PATIENCE = 60.0  # seconds
STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(scope="module", autouse=True)
def _nothing_goes_on() -> Iterator[None]:
    """A test that fails leaves no process behind."""
    yield
    for process in STARTED:
        process.terminate()
        process.communicate()
    STARTED.clear()


def started(module: str, *arguments: object) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    STARTED.append(process)
    return process


def invocation(out: Path, *, algos: str = "ours,sb3", seeds: str = "2", steps: int = STEPS) -> subprocess.Popen[str]:
    options = {"--tasks": "CartPole-v1", "--algos": algos, "--seeds": seeds, "--steps": steps, "--out": out}
    words = [word for option in options.items() for word in option]
    return started("benchmarks", "head-to-head", *words, "--jobs", 1, "--threads", 1)


def a_run(*, steps: int, algorithm: str = "ours") -> Run:
    return Run("CartPole-v1", algorithm, seed=0, steps=steps, threads=1, jobs=1, device="cpu", command="a command")


def worker(out: Path, run: Run) -> subprocess.Popen[str]:
    return started("benchmarks.head_to_head.worker", out, dumps(asdict(run)))


def table(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def wait_until(condition: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(scope="module", name="finished")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder on which two invocations worked at once, and what they said."""
    out = tmp_path_factory.mktemp("finished")
    said = []
    for process in [invocation(out), invocation(out)]:
        _, words = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, words
        said.append(words)
    return out, said


def test_two_invocations_share_the_runs(finished: tuple[Path, list[str]]) -> None:
    _, said = finished
    lines = sorted(line for words in said for line in words.splitlines() if ": finished, score " in line)
    assert [line.split(": ")[0] for line in lines] == [
        f"CartPole-v1, {algo}, seed {seed}" for algo in ("ours", "sb3") for seed in (0, 1)
    ]


def test_the_table_has_every_row_of_every_run_once(finished: tuple[Path, list[str]]) -> None:
    out, _ = finished
    rows = table(out / RESULTS)
    runs = [("ours", "0"), ("ours", "1"), ("sb3", "0"), ("sb3", "1")]
    # An interval is a fifth of the run, 120 steps, so that there is an evaluation before each rollout and at the end.
    steps = ["0", str(ROLLOUT), str(2 * ROLLOUT), str(3 * ROLLOUT)]
    assert [(row["algorithm"], row["seed"], row["steps"]) for row in rows] == [
        (*run, at) for run in runs for at in steps
    ]
    for algorithm, seed in runs:
        single = table(out / "runs" / "CartPole-v1" / algorithm / seed / ROWS)
        assert single == [row for row in rows if (row["algorithm"], row["seed"]) == (algorithm, seed)]


def test_the_columns_of_a_row(finished: tuple[Path, list[str]]) -> None:
    out, _ = finished
    rows = table(out / RESULTS)
    for row in rows:
        assert tuple(row) == COLUMNS
        final = row["steps"] == str(3 * ROLLOUT)
        assert row["final"] == str(final)
        assert row["episodes"] == ("20" if final else "10")
        assert 8 <= float(row["score"]) <= 500  # no episode of CartPole is shorter
        assert 0 <= float(row["score_std"]) <= 250
        assert (row["training_score"] == "") == (row["steps"] == "0")
        assert 0 <= float(row["training_seconds"]) < float(row["wall_seconds"]) < PATIENCE
        assert (row["env_id"], row["environment"], row["n_envs"], row["policy"]) == (
            *("CartPole-v1", "DummyVecEnv"),
            *("8", "MlpPolicy"),
        )
        assert (row["threads"], row["jobs"], row["resumed"]) == ("1", "1", "0")
        assert row["command"].startswith("python -m benchmarks head-to-head --tasks CartPole-v1 --algos ours,sb3")
        assert row["date"].endswith("+00:00")
        assert all(row[name] for name in ("machine", "python", "torch", "numpy", "gymnasium", "stable_baselines3"))
    # What has not been trained is the same on both sides, and so is how it is evaluated.
    untrained = [row["score"] for row in rows if row["steps"] == "0"]
    assert untrained[:2] == untrained[2:]


def test_a_finished_run_is_not_run_again(finished: tuple[Path, list[str]]) -> None:
    out, _ = finished
    files = sorted((out / "runs").rglob("*.csv")) + sorted((out / "runs").rglob("log.txt"))
    before = [path.stat().st_mtime_ns for path in files]
    assert len(before) == 8
    process = invocation(out)
    _, words = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "finished" not in words
    assert [path.stat().st_mtime_ns for path in files] == before


def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    run = a_run(steps=20_000)
    rows = run.folder(tmp_path) / ROWS
    first = worker(tmp_path, run)
    wait_until(lambda: len(table(rows)) >= 2, first)
    first.kill()
    first.communicate()
    before = table(rows)
    assert before[-1]["final"] == "False"

    second = worker(tmp_path, run)
    _, words = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, words
    after = table(rows)
    assert after[: len(before)] == before
    assert [row["resumed"] for row in after] == ["0"] * len(before) + ["1"] * (len(after) - len(before))
    # Rollouts are whole, evaluations come at the first one after each multiple of a fifth of the run.
    assert [int(row["steps"]) for row in after] == [0, 4096, 8192, 12032, 16128, 20224]
    assert [row["final"] for row in after] == ["False"] * 5 + ["True"]
    for name in ("training_seconds", "wall_seconds"):
        seconds = [float(row[name]) for row in after]
        assert seconds == sorted(seconds)
    # The second process has started, too.
    assert float(after[-1]["wall_seconds"]) - float(before[-1]["wall_seconds"]) > 0.5


def test_a_run_that_crashes_leaves_the_others_alone(tmp_path: Path) -> None:
    broken = a_run(steps=STEPS, algorithm="sb3").folder(tmp_path) / "checkpoint-000000000256"
    broken.mkdir(parents=True)
    (broken / "state.json").write_text('{"training_seconds": 0.0, "rows": []}', encoding="utf-8")
    (broken / "model.zip").write_text("not a zip file", encoding="utf-8")
    process = invocation(tmp_path, algos="sb3,ours", seeds="0,")
    _, words = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "CartPole-v1, sb3, seed 0: ended with status 1.\n" in words
    assert "wasn't a zip-file" in words  # the last words of the crashed process
    assert words.endswith("Failed: CartPole-v1, sb3, seed 0\n")
    assert [(row["algorithm"], row["final"]) for row in table(tmp_path / RESULTS)][-1] == ("ours", "True")


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """What was started in the background ignores SIGINT, and so would the processes that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_ends_the_runs(tmp_path: Path, number: signal.Signals) -> None:
    run = a_run(steps=10_000_000)
    process = invocation(tmp_path, algos="ours", seeds="1", steps=run.steps)
    wait_until(lambda: table(run.folder(tmp_path) / ROWS), process)
    assert is_locked(run_lock(run.folder(tmp_path)))
    process.send_signal(number)
    _, words = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "Interrupted" in words
    assert not is_locked(run_lock(run.folder(tmp_path)))
    # What there was is in the table.
    assert [row["steps"] for row in table(tmp_path / RESULTS)] == ["0"]
