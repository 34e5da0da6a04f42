"""The pytest plugin of a conformance run: replaces PPO before collection, writes down every outcome.

Must not judge: it neither selects tests nor changes what one of them expects.
"""

import json
from pathlib import Path

import pytest
import stable_baselines3
import stable_baselines3.ppo.ppo


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption("--replace-ppo", action="store_true", help="let stable_baselines3.PPO be ours")
    group.addoption("--outcomes", type=Path, help="write {test: outcome} to this JSON file")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--replace-ppo"):
        replace_ppo()
    # Under pytest-xdist the workers replace, and only the controller sees all outcomes.
    if config.getoption("--outcomes") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(OutcomeRecorder(config.getoption("--outcomes")))


def replace_ppo() -> None:
    """Put our PPO at each of the three places from which Stable-Baselines3's can be imported."""
    from sb3_ppo_from_scratch import PPO

    for module in (stable_baselines3, stable_baselines3.ppo, stable_baselines3.ppo.ppo):
        module.PPO = PPO


class OutcomeRecorder:
    """Collects the outcome of each test over its phases and writes them at the end of the session."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A test passes in its call; a failing or skipping phase around it outweighs that.
        if report.when == "call" or not report.passed:
            self.outcomes[report.nodeid] = report.outcome

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.outcomes[report.nodeid] = "failed"

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(self.outcomes), encoding="utf-8")
