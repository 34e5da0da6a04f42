"""`python -m benchmarks.throughput.side`: one side in a process of its own, idle until asked.

Owns the conversation, one JSON line each way, and the cores it may use; must not know what the other sides do.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any, TextIO

from benchmarks.throughput.machine import available_cores
from benchmarks.throughput.records import Conditions, row_from_json


def main() -> None:
    """Read what to do, say when ready, then answer requests until there are no more."""
    answers = _private_output()
    order = json.loads(sys.stdin.readline())
    conditions = Conditions(**order["conditions"])
    _limit_cores(conditions.threads)
    if order["row"] is None:
        _answer(answers, _limits(conditions))
        return
    _serve(order, conditions, answers)


def _serve(order: dict[str, Any], conditions: Conditions, answers: TextIO) -> None:
    from benchmarks.throughput.jobs import make_job

    row = row_from_json(order["row"])
    side = next(side for side in row.sides if side.name == order["side"])
    job = make_job(row, side, conditions)
    try:
        _answer(answers, {"ready": True})
        for line in sys.stdin:
            _answer(answers, asdict(job.segment(**json.loads(line))))
    finally:
        job.close()


def _limits(conditions: Conditions) -> dict[str, float]:
    from benchmarks.throughput.multiplication import matmul_flops

    return matmul_flops(conditions.device)


def _answer(answers: TextIO, content: dict[str, Any]) -> None:
    print(json.dumps(content), file=answers, flush=True)


def _private_output() -> TextIO:
    """Keep standard output for answers; whatever libraries print goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def _limit_cores(threads: int) -> None:
    """Before torch or JAX look at them: workers and threads of every side get the same cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, available_cores()[:threads])
    import torch as th

    th.set_num_threads(threads)


if __name__ == "__main__":
    main()
