"""One row, measured: every side in its own process, taking turns, never two at once.

Owns the order of turns; must not know what a side does with its turn, nor what follows from the times.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.throughput.records import Conditions, Row, RowResult
from benchmarks.throughput.worker import SideError, Worker


def measure_matmul(conditions: Conditions) -> dict[str, float]:
    """The machine's matrix multiplications per second, under the conditions of every side.

    :param conditions: of the run
    :return: floating-point operations per second, by precision
    """
    with Worker(conditions) as worker:
        return worker.receive()


def measure_row(row: Row, conditions: Conditions, advance: Callable[[str], None]) -> RowResult:
    """Start every side, let each warm up, then let them take turns.

    Warming up is a whole segment: rollouts and updates, so that compilers and caches are done. The order of turns is
    reversed from pair to pair, so that a machine that slows down favours nobody.

    :param row: with sides that can run
    :param conditions: of the run
    :param advance: told before each turn what it is
    :return: as far as it came; ``error`` says what stopped it
    """
    result = RowResult(row, segments={side.name: [] for side in row.sides})
    try:
        with ExitStack() as stack:
            _take_turns(row, conditions, result, stack, advance)
    except SideError as error:
        result.error = str(error)
    return result


def n_turns(row: Row, conditions: Conditions) -> int:
    """How often ``measure_row`` will call ``advance``.

    :param row: to measure
    :param conditions: of the run
    """
    start, warm_up, look = 1, int(row.repeats), int(row.has_parts)
    return len(row.sides) * (start + warm_up + _n_pairs(row, conditions) + look)


def _n_pairs(row: Row, conditions: Conditions) -> int:
    return conditions.pairs if row.repeats else 1


def _take_turns(
    row: Row, conditions: Conditions, result: RowResult, stack: ExitStack, advance: Callable[[str], None]
) -> None:
    workers: dict[str, Worker] = {}
    for side in row.sides:
        advance(f"{row.name}: {side.name} starts")
        workers[side.name] = stack.enter_context(Worker(conditions, row, side))
        workers[side.name].receive()
    if row.repeats:
        for name, worker in workers.items():
            advance(f"{row.name}: {name} warms up")
            worker.work(row.steps)
    for pair in range(_n_pairs(row, conditions)):
        order = list(workers) if pair % 2 == 0 else list(reversed(workers))
        for name in order:
            advance(f"{row.name}: {name}, turn {pair + 1}")
            result.segments[name].append(workers[name].work(row.steps))
    if row.has_parts:
        for name, worker in workers.items():
            advance(f"{row.name}: {name} is looked into")
            result.looked_into[name] = worker.work(row.steps, watched=True)
