"""Names that are imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import sb3_ppo_from_scratch
from sb3_ppo_from_scratch import callbacks, envs


@pytest.fixture
def orchard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package of one lazy name."""
    package = tmp_path / "orchard"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from sb3_ppo_from_scratch.lazy_names import on_first_use\n"
        "ripe = True\n"
        "__getattr__, __dir__ = on_first_use(__name__, {'pear': 'orchard.tree'})\n"
    )
    (package / "tree.py").write_text("pear = 'a pear'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("orchard")
    for name in ("orchard", "orchard.tree"):
        sys.modules.pop(name, None)


def test_a_module_is_imported_when_its_name_is_used(orchard: ModuleType) -> None:
    assert "orchard.tree" not in sys.modules
    assert orchard.pear == "a pear"
    assert "orchard.tree" in sys.modules


def test_lazy_names_are_listed_with_the_others(orchard: ModuleType) -> None:
    assert {"pear", "ripe"} <= set(dir(orchard))


def test_an_unknown_name_is_an_attribute_error(orchard: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'orchard' has no attribute 'plum'"):
        _ = orchard.plum
    assert not hasattr(orchard, "plum")


@pytest.mark.parametrize("package", [sb3_ppo_from_scratch, callbacks, envs], ids=lambda package: package.__name__)
def test_every_public_name_of_the_packages_can_be_used(package: ModuleType) -> None:
    assert set(package.__all__) <= set(dir(package))
    assert all(getattr(package, name).__name__ == name for name in package.__all__)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = package.missing
