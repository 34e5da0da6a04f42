"""The near end of a side's process.

Owns its start, its end and what it left to say when it failed; must not know what is asked of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.throughput.records import Conditions, Row, Segment, Side

_ROOT = Path(__file__).parents[2]
_MOST_COMPLAINT = 2000  # characters of a failed side's last words
_PATIENCE = 30.0  # seconds to close its environments


class SideError(RuntimeError):
    """A side ended before it answered; the message has its last words."""


class Worker:
    """One process, idle except while somebody waits for its answer.

    :param conditions: of the run
    :param row: what it works on; None to measure matrix multiplications instead
    :param side: which side it is
    """

    def __init__(self, conditions: Conditions, row: Row | None = None, side: Side | None = None) -> None:
        self._name = "matrix multiplication" if side is None else side.name
        # Its own folder, for what libraries leave behind.
        self._folder = tempfile.TemporaryDirectory(prefix="throughput-")
        self._complaints = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.throughput.side"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            cwd=self._folder.name,
            env=_environment(conditions.threads),
        )
        self._send(
            {
                "conditions": asdict(conditions),
                "row": None if row is None else asdict(row),
                "side": None if side is None else side.name,
            }
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def receive(self) -> dict[str, Any]:
        """Wait for the next answer.

        :return: the answer
        :raises SideError: if there will be none
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SideError(f"{self._name} ended with {self._process.wait()}: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def work(self, steps: int, *, watched: bool = False) -> Segment:
        """Let it work, and wait until it has.

        :param steps: environment steps over all environments
        :param watched: whether to look where the time goes
        :return: what it measured
        :raises SideError: if it failed
        """
        self._send({"steps": steps, "watched": watched})
        return Segment(**self.receive())

    def close(self) -> None:
        """End the process."""
        try:
            self._process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._complaints.close()
        self._folder.cleanup()

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise SideError(f"{self._name} ended with {self._process.wait()}: {self._last_words()}") from None

    def _last_words(self) -> str:
        self._complaints.seek(0)
        return self._complaints.read()[-_MOST_COMPLAINT:].strip()


def _environment(threads: int) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(threads)}
