"""Owns the hook in `import torch`: what it costs, when it completes, and that it never breaks an import."""

import importlib.util
import sys
from pathlib import Path

import pytest

from sb3_ppo_from_scratch.zoo import autoload
from tests.zoo.processes import python_error, python_output

REGISTERED = """
import rl_zoo3.exp_manager
from rl_zoo3.hyperparams_opt import HYPERPARAMS_CONVERTER, HYPERPARAMS_SAMPLER
from sb3_ppo_from_scratch import PPO
print(rl_zoo3.ALGOS["myppo"] is PPO, "myppo" in HYPERPARAMS_SAMPLER, "myppo" in HYPERPARAMS_CONVERTER)
print(rl_zoo3.exp_manager.ExperimentManager.__init__.__name__, type(rl_zoo3).__name__)
"""
ALL_REGISTERED = "True True True\n__init__ module\n"
MANAGER_WITHOUT_FILE = """
import argparse
from rl_zoo3.exp_manager import ExperimentManager
print(ExperimentManager(argparse.Namespace(), "myppo", "CartPole-v1", "logs").config)
"""
BROKEN = "import sys; sys.modules['sb3_ppo_from_scratch.zoo.registration'] = None\n"


def test_torch_alone_loads_nothing_else(tmp_path: Path) -> None:
    script = """
import sys, torch
print(sorted(name for name in sys.modules if name.startswith("sb3_ppo_from_scratch")))
print([name for name in ("stable_baselines3", "rl_zoo3", "optuna", "gymnasium", "yaml") if name in sys.modules])
"""
    loaded, others = python_output("-c", script, folder=tmp_path).splitlines()
    package = "sb3_ppo_from_scratch"
    assert loaded == str([package, f"{package}.lazy_names", f"{package}.zoo", f"{package}.zoo.autoload"])
    assert others == "[]"


@pytest.mark.parametrize(
    "first",
    [
        "import torch, rl_zoo3",
        "import rl_zoo3",
        "import rl_zoo3.utils",
        "import rl_zoo3.train",
        "import rl_zoo3.enjoy",
        "import stable_baselines3",
        "import sb3_ppo_from_scratch.algorithm",
        "import sb3_ppo_from_scratch.zoo.registration",
        "import rl_zoo3; from sb3_ppo_from_scratch.zoo.registration import register; register(); register()",
    ],
)
def test_registered_whatever_is_imported_first(first: str, tmp_path: Path) -> None:
    assert python_output("-W", "error::RuntimeWarning", "-c", first + REGISTERED, folder=tmp_path) == ALL_REGISTERED


@pytest.mark.parametrize("first", ["", "import torch; "])
def test_algorithms_are_complete_as_soon_as_rl_zoo3_is_imported(first: str, tmp_path: Path) -> None:
    script = first + "from rl_zoo3 import ALGOS; print(ALGOS['myppo'].__module__)"
    assert python_output("-c", script, folder=tmp_path) == "sb3_ppo_from_scratch.algorithm\n"


def test_rl_zoo3_keeps_its_own_loader(tmp_path: Path) -> None:
    script = """
import torch, rl_zoo3
from importlib import resources
print(type(rl_zoo3.__loader__).__name__, rl_zoo3.__loader__ is rl_zoo3.__spec__.loader)
print((resources.files("rl_zoo3") / "hyperparams" / "ppo.yml").is_file())
"""
    assert python_output("-c", script, folder=tmp_path) == "SourceFileLoader True\nTrue\n"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_algorithm_of_the_users_wins(moment: str, tmp_path: Path) -> None:
    own = "import rl_zoo3, stable_baselines3\nrl_zoo3.ALGOS['myppo'] = stable_baselines3.A2C\n"
    rest = "import rl_zoo3.train\nfrom sb3_ppo_from_scratch.zoo.registration import register\nregister()\n"
    script = (own + rest if moment == "before" else rest + own) + (
        "print(rl_zoo3.train.ALGOS['myppo'].__name__)\n" + MANAGER_WITHOUT_FILE
    )
    algorithm, configuration = python_output("-c", script, folder=tmp_path).splitlines()
    assert algorithm == "A2C"
    # As rl_zoo3 left alone: it looks in its own folder, and the user says --conf-file.
    assert Path(configuration).parent.parent.name == "rl_zoo3"


def test_a_search_space_of_the_users_wins(tmp_path: Path) -> None:
    script = """
from rl_zoo3.hyperparams_opt import HYPERPARAMS_CONVERTER, HYPERPARAMS_SAMPLER
HYPERPARAMS_SAMPLER["myppo"] = HYPERPARAMS_SAMPLER["ppo"]
HYPERPARAMS_CONVERTER["myppo"] = HYPERPARAMS_CONVERTER["ppo"]
from sb3_ppo_from_scratch.zoo.registration import register
register()
print(HYPERPARAMS_SAMPLER["myppo"].__module__, HYPERPARAMS_CONVERTER["myppo"].__module__)
"""
    assert python_output("-c", script, folder=tmp_path) == "rl_zoo3.hyperparams_opt rl_zoo3.hyperparams_opt\n"


def test_a_subclass_of_the_users_has_our_settings(tmp_path: Path) -> None:
    script = """
import rl_zoo3
from sb3_ppo_from_scratch import PPO
class Mine(PPO): pass
rl_zoo3.ALGOS["myppo"] = Mine
"""
    output = python_output("-c", script + MANAGER_WITHOUT_FILE, folder=tmp_path)
    assert Path(output.strip()).parts[-2:] == ("hyperparams", "myppo.yml")
    assert "rl_zoo3" not in Path(output.strip()).parts


def test_a_failing_registration_is_one_warning(tmp_path: Path) -> None:
    script = BROKEN + "import rl_zoo3.train; print('myppo' in rl_zoo3.ALGOS, 'ppo' in rl_zoo3.ALGOS)"
    output = python_output("-c", script, folder=tmp_path)
    assert output.splitlines()[-1] == "False True"
    assert output.count("could not register itself in rl_zoo3") == 1
    assert "RuntimeWarning" in output


def test_a_failing_registration_breaks_no_import_where_warnings_are_errors(tmp_path: Path) -> None:
    script = BROKEN + (
        "import torch, warnings; warnings.simplefilter('error', RuntimeWarning)\n"
        "import rl_zoo3.train; print('ppo' in rl_zoo3.ALGOS)"
    )
    output = python_output("-c", script, folder=tmp_path)
    assert output.splitlines()[-1] == "True"
    assert output.count("could not register itself in rl_zoo3") == 1


def test_a_failing_hook_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", None)
    with pytest.warns(RuntimeWarning, match="TypeError") as warned:
        autoload.autoload()
    assert len(warned) == 1


def test_the_hook_is_installed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [finder for finder in sys.meta_path if not isinstance(finder, autoload.ZooFinder)]
    monkeypatch.setattr(sys, "meta_path", list(others))
    autoload.autoload()
    autoload.autoload()
    assert isinstance(sys.meta_path[0], autoload.ZooFinder)
    assert sys.meta_path[1:] == others


def test_a_missing_rl_zoo3_stays_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoload, "PACKAGE", "no_such_zoo")
    monkeypatch.setattr(sys, "meta_path", [autoload.ZooFinder(), *sys.meta_path])
    assert importlib.util.find_spec("no_such_zoo") is None


def test_an_error_inside_rl_zoo3_is_still_its_own(tmp_path: Path) -> None:
    broken = tmp_path / "rl_zoo3"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ZeroDivisionError('of rl_zoo3')")
    output = python_error("-c", "import torch, rl_zoo3", folder=tmp_path)
    assert output.splitlines()[-1] == "ZeroDivisionError: of rl_zoo3"
    assert "could not register" not in output
