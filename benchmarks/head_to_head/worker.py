"""`python -m benchmarks.head_to_head.worker FOLDER ORDER`: one run in a process of its own.

Owns that only one process works on a run; must not know how a run goes.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.files import locked
from benchmarks.head_to_head.runs import Run, objection, run_lock, tabled_runs, write_order
from benchmarks.processes import BUSY

_STARTED = time.monotonic()  # before anything large is imported


def main() -> None:
    """Do one run, unless another process is at it."""
    out, run = Path(sys.argv[1]), Run(**json.loads(sys.argv[2]))
    folder = run.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(run_lock(folder), wait=False) as held:
        if not held:
            raise SystemExit(BUSY)
        # Asked again, now that nobody else can change the answer.
        if (reason := objection(out, run, tabled_runs(out))) is not None:
            raise SystemExit(reason)
        write_order(folder, run)
        from benchmarks.head_to_head.training import train

        train(run, folder, _STARTED)


if __name__ == "__main__":
    main()
