"""Files that are complete or not there, and locks that end with the process that holds them.

Owns the operating system's part in not losing anything; must not know what the files mean.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file; a crash in the middle leaves what was there before.

    :param path: of the file, in a folder that exists
    :param content: of the whole file
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    with unfinished.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure as PNG; a crash in the middle leaves what was there before.

    :param figure: drawn
    :param path: of the file, in a folder that exists
    """
    png = BytesIO()
    figure.savefig(png, dpi=150, format="png")
    write_atomically(path, png.getvalue())


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a lock that the operating system releases with this process, however it ends.

    :param path: of the lock's file, in a folder that exists
    :param wait: until the lock is free, instead of going on without it
    :return: whether the lock is held
    """
    with path.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def is_locked(path: Path) -> bool:
    """Whether some process holds a lock.

    :param path: of the lock's file, which may not be there
    """
    if not path.exists():
        return False
    with locked(path, wait=False) as held:
        return not held
