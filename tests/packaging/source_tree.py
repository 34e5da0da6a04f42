"""Which files of this checkout belong into a wheel.

Must not know setup.cfg: the tests compare what it builds with what is here.
"""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = "sb3_ppo_from_scratch"


def python_files() -> list[Path]:
    """The package's modules, sorted."""
    return sorted((REPOSITORY / PACKAGE).rglob("*.py"))


def packaged_files() -> set[str]:
    """Every file that users should get, under the name that it should have in the wheel."""
    return {
        path.relative_to(REPOSITORY).as_posix()
        for path in (REPOSITORY / PACKAGE).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
