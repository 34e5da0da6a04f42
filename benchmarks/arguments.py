"""Kinds of values that the command lines have in common, each refused with a remedy before any work starts.

Owns reading and refusing them; must not know any command.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

SEEDS_HELP = "how many, from 0 on; or which, such as 0,3,7"


def at_least(minimum: int) -> Callable[[str], int]:
    """A kind of number.

    :param minimum: the smallest that is taken
    :return: for argparse's ``type``
    """

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text}: give a whole number.") from None
        if value < minimum:
            raise argparse.ArgumentTypeError(f"{text}: give at least {minimum}.")
        return value

    return number


def seed_list(text: str) -> list[int]:
    """The seeds that a user asked for.

    :param text: how many, from 0 on; or numbers separated by commas
    :return: each once
    :raises argparse.ArgumentTypeError: for anything else
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts if part) or not any(parts):
        raise argparse.ArgumentTypeError(f"{text}: give how many, such as 5, or which, such as 0,3,7.")
    if len(parts) > 1:
        return list(dict.fromkeys(int(part) for part in parts if part))
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: give at least 1, or which, such as 0,3,7.")
    return list(range(int(text)))


def output_folder(text: str) -> Path:
    """A place for files, made when they are written.

    :param text: path
    :raises argparse.ArgumentTypeError: if a file is there
    """
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: is a file; give a folder.")
    return path
