"""What follows from the times: how many times faster, how sure, and how near to what is possible.

Owns the statistics; must not know how the times came about or how they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from benchmarks.throughput.records import Comparison, Results, RowResult, Segment


@dataclass(frozen=True)
class Verdict:
    """One comparison, judged.

    :param row: its name
    :param peers: what our side was held against
    :param target: that was promised
    :param ratios: ours / theirs in each pair: of speeds, or of bytes
    :param ours: median of our side: environment steps per second, or bytes
    :param theirs: likewise of the best peer of each pair
    :param of_bytes: whether less is better
    """

    row: str
    peers: str
    target: float
    ratios: tuple[float, ...]
    ours: float
    theirs: float
    of_bytes: bool

    @property
    def median(self) -> float:
        """Of the ratios."""
        return median(self.ratios)

    @property
    def is_met(self) -> bool:
        """Whether the median keeps the promise."""
        return self.median <= self.target if self.of_bytes else self.median >= self.target


def verdicts(result: RowResult) -> list[Verdict]:
    """Judge every comparison of a row, over the pairs that are complete.

    :param result: of the row
    :return: none if no pair is complete
    """
    judged = (_verdict(result, comparison) for comparison in result.row.comparisons)
    return [verdict for verdict in judged if verdict is not None]


def _verdict(result: RowResult, comparison: Comparison) -> Verdict | None:
    of_bytes = result.row.kind == "memory"
    best = min if of_bytes else max
    ours_and_peers = [result.segments[name] for name in (result.row.sides[0].name, *comparison.peers)]
    pairs = [
        (_figure(ours), best(_figure(peer) for peer in peers))
        for ours, *peers in zip(*ours_and_peers, strict=False)  # an interrupted row ends in the middle of a pair
    ]
    if not pairs:
        return None
    return Verdict(
        row=result.row.name,
        peers=" / ".join(comparison.peers),
        target=comparison.target,
        ratios=tuple(ours / theirs for ours, theirs in pairs),
        ours=median(ours for ours, _ in pairs),
        theirs=median(theirs for _, theirs in pairs),
        of_bytes=of_bytes,
    )


def steps_per_second(segments: list[Segment]) -> float:
    """Of a side.

    :param segments: at least one
    :return: the median
    """
    return median(segment.steps / segment.seconds for segment in segments)


def part_of_limit(results: Results, result: RowResult, side: str) -> float | None:
    """How much of the machine's matrix multiplication a side turns into environment steps.

    :param results: of the run, for the limit
    :param result: of the row
    :param side: name
    :return: in [0, 1]; None where arithmetic is not what limits, or nothing was measured
    """
    arguments = next(one.arguments for one in result.row.sides if one.name == side)
    limit = results.matmul_flops.get(arguments.get("precision", "fp32"))
    if limit is None or result.row.flops_per_step is None or not result.segments[side]:
        return None
    return steps_per_second(result.segments[side]) * result.row.flops_per_step / limit


def outcomes_agree(result: RowResult) -> bool | None:
    """Whether every side came to the same outcome in every turn.

    :param result: of the row
    :return: None if outcomes were not compared
    """
    outcomes = [tuple(segment.outcome for segment in segments) for segments in result.segments.values()]
    if any(None in one for one in outcomes) or not all(outcomes):
        return None
    return len(set(outcomes)) == 1


def _figure(segment: Segment) -> float:
    return segment.steps / segment.seconds if segment.held_bytes is None else float(segment.held_bytes)
