"""Fetches the source archive of the installed Stable-Baselines3 and unpacks its tests.

Must not know what is run with them, nor where the archive comes from: pip's own configuration decides.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib import metadata
from pathlib import Path, PurePosixPath

DISTRIBUTION = "stable_baselines3"
MENTIONS_PPO = re.compile(r"\bPPO\b")


def unpacked_tests(cache: Path) -> Path:
    """The folder that holds `tests/` and `pyproject.toml` of the installed version, fetched once.

    :param cache: folder that is kept between runs
    """
    version = metadata.version(DISTRIBUTION)
    target = cache / version
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        # Unpacked beside the target and renamed, so that an interrupted run leaves no half-filled cache.
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            archive = download_archive(version, Path(scratch) / "download")
            extract_tests(archive, Path(scratch) / "unpacked")
            shutil.move(Path(scratch) / "unpacked", target)
    return target


def download_archive(version: str, folder: Path) -> Path:
    """Let pip fetch the source archive of one version.

    :return: the archive, the only file in `folder`
    """
    requirement = f"{DISTRIBUTION}=={version}"
    options = ["--no-deps", "--no-binary", DISTRIBUTION, "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *options, requirement], check=True)
    (archive,) = folder.iterdir()
    return archive


def extract_tests(archive: Path, folder: Path) -> None:
    """Unpack the tests and their pytest settings, without the archive's copy of the package.

    That copy would shadow the installed one.
    """
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            inside = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            if inside.parts[:1] == ("tests",) or inside.name == "pyproject.toml":
                member.name = str(inside)
                tar.extract(member, folder, filter="data")


def files_mentioning_ppo(folder: Path) -> list[str]:
    """Test files in which PPO occurs as a word, as paths relative to `folder`."""
    return [
        str(path.relative_to(folder))
        for path in sorted((folder / "tests").glob("test_*.py"))
        if MENTIONS_PPO.search(path.read_text(encoding="utf-8"))
    ]
