"""Owns how these tests start Python processes; must not know what they run.

The package under test has to be installed, as a user's is: each process starts in a folder of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "SDL_VIDEODRIVER": "dummy",
    "COLUMNS": "200",
}
INHERITED_NEVER = ("PYTHONPATH", "PYTHONWARNINGS", "TORCH_DEVICE_BACKEND_AUTOLOAD")


def start_python(*arguments: object, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in `folder` to its end; standard error is part of the output."""
    environment = {name: value for name, value in os.environ.items() if name not in INHERITED_NEVER}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**environment, **SETTINGS, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )


def python_output(*arguments: object, folder: Path, **settings: str) -> str:
    """Return the output of a process that must succeed."""
    finished = start_python(*arguments, folder=folder, **settings)
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def python_error(*arguments: object, folder: Path, **settings: str) -> str:
    """Return the output of a process that must fail."""
    finished = start_python(*arguments, folder=folder, **settings)
    assert finished.returncode != 0, finished.stdout
    return finished.stdout


def zoo_output(module: str, *arguments: object, folder: Path, **settings: str) -> str:
    """Return the output of a module of rl_zoo3 that must succeed with our algorithm."""
    return python_output("-m", f"rl_zoo3.{module}", "--algo", "myppo", *arguments, folder=folder, **settings)
