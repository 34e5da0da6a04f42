"""The one place from which every side reads its hyperparameters, in rl_zoo3's format.

Owns which file and which entry count; must not know what an entry's settings mean.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from sb3_ppo_from_scratch.zoo.configuration import own_configuration

_OWN = Path(__file__).with_name("hyperparams.yml")


def entry_of(env_id: str, entries: str) -> dict[str, Any]:
    """The settings for one environment; for Atari games without an entry of their own those of ``atari``.

    :param env_id: of a registered environment
    :param entries: "myppo" for the settings that every PPO shares, or the name of one of rl_zoo3's files
    :return: as written in the file, to change at will
    :raises KeyError: if there are none, saying so
    """
    known: dict[str, dict[str, Any]] = {}
    for path in _paths(entries):
        known |= yaml.safe_load(_text(path))
    candidates = [env_id, *_older_versions(env_id), *(["atari"] if "NoFrameskip" in env_id else [])]
    for name in candidates:
        if name in known:
            return known[name]
    raise KeyError(f"no hyperparameters for {env_id} in {' or '.join(path.name for path in _paths(entries))}")


def _paths(entries: str) -> list[Path]:
    if entries == "myppo":
        return [own_configuration(), _OWN]
    return [Path(str(files("rl_zoo3") / "hyperparams" / f"{entries}.yml"))]


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _older_versions(env_id: str) -> list[str]:
    """Where only an older version of an environment has an entry, its settings are kept, as in myppo.yml."""
    match = re.fullmatch(r"(.+-v)(\d+)", env_id)
    if match is None:
        return []
    return [f"{match[1]}{version}" for version in range(int(match[2]) - 1, -1, -1)]
