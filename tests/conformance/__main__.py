"""The command of `make conformance`: runs the tests, prints the counts, fails on a regression.

Must not contain an expectation about any single test: what the stock PPO passes, ours must pass.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conformance.archive import files_mentioning_ppo, unpacked_tests
from tests.conformance.verdict import not_passed, regressions, summary

REPOSITORY = Path(__file__).resolve().parents[2]
TESTS_RAN = (0, 1)  # pytest's exit codes for "all passed" and "some failed"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--stock", action="store_true", help="run the unreplaced PPO, as a baseline")
    parser.add_argument("pytest_options", nargs="*", help="after `--`: handed to pytest, such as -k gae")
    return parser.parse_args()


def run_tests(folder: Path, tests: list[str], *, replace: bool, options: list[str]) -> dict[str, str]:
    """Run tests of the unpacked archive in a pytest of their own.

    :param folder: holds the archive's `tests/` and `pyproject.toml`
    :param tests: files or single tests, relative to `folder`
    :return: outcome of each test: passed, skipped or failed
    """
    with tempfile.TemporaryDirectory() as scratch:
        outcomes = Path(scratch) / "outcomes.json"
        command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--rootdir", "."]
        command += ["-p", "tests.conformance.plugin", "--outcomes", str(outcomes)]
        command += ["--replace-ppo"] if replace else []
        # One file stays in one process: some of these tests share files in the working directory.
        command += ["-n", "2", "--dist", "loadfile", "--continue-on-collection-errors"]
        command += ["-q", "--disable-warnings", *options, *tests]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
        if code not in TESTS_RAN:
            raise SystemExit(f"pytest could not run the tests (exit code {code}).")
        return json.loads(outcomes.read_text(encoding="utf-8"))


def main() -> int:
    arguments = parse_arguments()
    folder = unpacked_tests(REPOSITORY / ".conformance")
    files = files_mentioning_ppo(folder)
    name = "stable_baselines3.PPO" if arguments.stock else "sb3_ppo_from_scratch.PPO"
    print(f"{len(files)} test files of stable_baselines3 {folder.name} mention PPO; run with {name}:")
    outcomes = run_tests(folder, files, replace=not arguments.stock, options=arguments.pytest_options)
    if arguments.stock:
        print(f"{name}: {summary(outcomes)}.")
        return 0
    lost = lost_tests(folder, outcomes)
    for test in lost:
        print(f"passes with the stock PPO only: {test}")
    print(f"{name}: {summary(outcomes)}; {len(lost)} of the tests that stock passes are lost.")
    return 1 if lost else 0


def lost_tests(folder: Path, ours: dict[str, str]) -> list[str]:
    """Repeat with the stock PPO what did not pass with ours, and name what it does pass."""
    doubtful = not_passed(ours)
    if not doubtful:
        return []
    print(f"\nRepeating the {len(doubtful)} tests that did not pass, with the stock PPO:")
    return regressions(ours, run_tests(folder, doubtful, replace=False, options=[]))


if __name__ == "__main__":
    sys.exit(main())
