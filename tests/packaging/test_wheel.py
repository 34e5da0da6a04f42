"""Builds a wheel and compares it with the source tree: nothing forgotten, nothing too much."""

import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

from sb3_ppo_from_scratch import __version__
from tests.packaging.source_tree import PACKAGE, REPOSITORY, packaged_files

NOT_SOURCES = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "logs", "runs")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Built in a copy: setuptools leaves its build folder in the source tree, and takes stale files from it.
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(REPOSITORY, folder / "source", ignore=NOT_SOURCES)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(folder / "source")], check=True)
    (built,) = folder.glob("*.whl")
    return built


def read_from_wheel(wheel: Path, suffix: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(suffix))
        return archive.read(name).decode("utf-8")


def printed_by(code: str, folder: Path) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def test_wheel_holds_exactly_the_files_of_the_source_tree(wheel):
    with zipfile.ZipFile(wheel) as archive:
        installed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert installed == packaged_files()
    assert {f"{PACKAGE}/hyperparams/myppo.yml", f"{PACKAGE}/py.typed"} <= installed


def test_wheel_is_named_after_the_version(wheel):
    assert wheel.name.startswith(f"{PACKAGE}-{__version__}-py3-none-any")


def test_wheel_announces_the_autoload_to_torch(wheel):
    entry_points = ConfigParser()
    entry_points.read_string(read_from_wheel(wheel, ".dist-info/entry_points.txt"))
    assert dict(entry_points["torch.backends"]) == {PACKAGE: f"{PACKAGE}.zoo.autoload:autoload"}


def test_hyperparameters_are_found_as_package_data(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = f"from importlib.resources import files; print(files('{PACKAGE}.hyperparams') / 'myppo.yml')"
    path = Path(printed_by(code, tmp_path))
    assert path.is_file()
    assert tmp_path in path.parents


def test_importing_the_package_imports_nothing_heavy():
    heavy = ("gymnasium", "numpy", "optuna", "rl_zoo3", "stable_baselines3", "torch")
    code = f"import sys, {PACKAGE}; print(*set({heavy}) & set(sys.modules))"
    assert printed_by(code, REPOSITORY) == ""
