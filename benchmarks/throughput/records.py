"""What is compared and what was measured, as plain data that goes through JSON unchanged.

Owns the records and their two translations; must not know how anything is run, judged or drawn.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Side:
    """One of the programs that do the same work.

    :param name: unique within its row
    :param algorithm: "ours", "stock" or "sbx"
    :param vec_env: "dummy", "subproc" or "native"
    :param arguments: of the algorithm's constructor, beside the settings that all sides share
    :param is_diagnosed: whether ``DiagnosticsCallback`` looks on
    :param needs: modules that may be missing
    """

    name: str
    algorithm: str
    vec_env: str = "dummy"
    arguments: dict[str, Any] = field(default_factory=dict)
    is_diagnosed: bool = False
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """What our side is held against.

    :param peers: names of sides; the best of them counts, anew in each pair
    :param target: the ratio ours / theirs that was promised: at least this for speed, at most this for memory
    """

    peers: tuple[str, ...]
    target: float


@dataclass(frozen=True)
class Row:
    """One row of the table: the same work for every side.

    :param letter: as in ``--only``
    :param work: for the reader
    :param kind: "learning", "stepping" or "memory"
    :param env_id: of a registered environment
    :param n_envs: E
    :param steps: environment steps, over all E, of one segment
    :param sides: ours first
    :param comparisons: of our side with others
    :param settings: of every side's algorithm; ``lin_x`` falls linearly from x to 0
    :param needs: modules that may be missing
    :param repeats: whether a second measurement could differ from the first
    :param flops_per_step: arithmetic of one environment step, rollout and update; None where it is not what limits
    """

    letter: str
    work: str
    kind: str
    env_id: str
    n_envs: int
    steps: int
    sides: tuple[Side, ...]
    comparisons: tuple[Comparison, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    repeats: bool = True
    flops_per_step: float | None = None

    @property
    def name(self) -> str:
        """The letter and the work, for headings."""
        return f"{self.letter}. {self.work}"

    @property
    def has_parts(self) -> bool:
        """Whether its time goes to environment, policy and update."""
        return self.kind == "learning"


@dataclass(frozen=True)
class Conditions:
    """What holds for the whole run.

    :param pairs: turns that every side gets, ≥ 1
    :param seed: of every side
    :param device: where every side computes
    :param threads: torch threads of a side, and the cores it may use
    """

    pairs: int = 5
    seed: int = 0
    device: str = "cpu"
    threads: int = 2


@dataclass(frozen=True)
class Segment:
    """One uninterrupted piece of work.

    :param steps: environment steps that it took, over all environments
    :param seconds: how long
    :param shares: of those seconds, if they were looked into: environment, policy, update, rest
    :param held_bytes: what the rollout buffer holds, if that was the question
    :param peak_bytes: by how much the process grew until an update was done, likewise
    :param outcome: what must be the same for every side, if anything
    """

    steps: int
    seconds: float
    shares: dict[str, float] | None = None
    held_bytes: int | None = None
    peak_bytes: int | None = None
    outcome: str | None = None


@dataclass
class RowResult:
    """What became of one row.

    :param row: with the sides that could run
    :param segments: of each side, in the order of the pairs
    :param looked_into: a further segment of each side, slowed by being watched
    :param skipped: sides or comparisons that could not run, and why
    :param error: why the row is incomplete; None if it is not
    """

    row: Row
    segments: dict[str, list[Segment]] = field(default_factory=dict)
    looked_into: dict[str, Segment] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    error: str | None = None


@dataclass
class Results:
    """One run of the benchmark.

    :param command: that repeats it
    :param started: date and time, ISO 8601
    :param conditions: of the run
    :param machine: processor, cores, flags, versions, commit
    :param matmul_flops: floating-point operations per second of the best matrix multiplication, by precision
    :param rows: in the order in which they were measured
    """

    command: str
    started: str
    conditions: Conditions
    machine: dict[str, Any]
    matmul_flops: dict[str, float] = field(default_factory=dict)
    rows: list[RowResult] = field(default_factory=list)


def to_json(results: Results) -> dict[str, Any]:
    """A run in JSON's types.

    :param results: of the run
    :return: nested dicts and lists
    """
    return asdict(results)


def from_json(data: dict[str, Any]) -> Results:
    """The inverse of ``to_json``, also after lists took the place of tuples.

    :param data: what ``to_json`` returned
    :return: the run
    """
    rows = [
        RowResult(
            **{
                **row,
                "row": row_from_json(row["row"]),
                "segments": {side: [Segment(**one) for one in all_] for side, all_ in row["segments"].items()},
                "looked_into": {side: Segment(**one) for side, one in row["looked_into"].items()},
            }
        )
        for row in data["rows"]
    ]
    return Results(**{**data, "conditions": Conditions(**data["conditions"]), "rows": rows})


def row_from_json(data: dict[str, Any]) -> Row:
    """The inverse of ``dataclasses.asdict`` for one row, also after lists took the place of tuples.

    :param data: of the row
    :return: the row
    """
    sides = tuple(Side(**{**side, "needs": tuple(side["needs"])}) for side in data["sides"])
    comparisons = tuple(Comparison(tuple(one["peers"]), one["target"]) for one in data["comparisons"])
    return Row(**{**data, "sides": sides, "comparisons": comparisons, "needs": tuple(data["needs"])})
