"""Public names of a package whose modules are imported when a name is first used.

Owns the two functions that such a package needs; must not import anything of this package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """What a package assigns to ``__getattr__`` and ``__dir__``.

    Source: PEP 562.

    :param package: its ``__name__``
    :param homes: each public name, and the module that defines it
    :return: both functions
    """

    def get_attribute(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get_attribute, names
