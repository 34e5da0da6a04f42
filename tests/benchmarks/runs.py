"""Runs of the throughput benchmark with given times, for tests of what is made of them.

Owns their shape; must not know how a run is judged, saved or drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.throughput.records import Comparison, Conditions, Results, Row, RowResult, Segment, Side

STEPS = 1000


def a_row(*peers: str, kind: str = "learning", target: float = 2.0, flops_per_step: float | None = None) -> Row:
    return Row(
        letter="X",
        work="some work",
        kind=kind,
        env_id="CartPole-v1",
        n_envs=2,
        steps=STEPS,
        sides=(Side("ours", "ours"), *(Side(peer, "stock", arguments={"ent_coef": 0.0}) for peer in peers)),
        comparisons=(Comparison(tuple(peers), target),),
        settings={"policy": "MlpPolicy", "learning_rate": "lin_0.1"},
        flops_per_step=flops_per_step,
    )


def timed(*seconds: float) -> list[Segment]:
    return [Segment(STEPS, one) for one in seconds]


def holding(*held_bytes: int, outcome: str = "same") -> list[Segment]:
    return [Segment(STEPS, 1.0, held_bytes=one, peak_bytes=2 * one, outcome=outcome) for one in held_bytes]


def a_run(results: Sequence[RowResult] = ()) -> Results:
    return Results(
        command="python -m benchmarks throughput --only X",
        started="2001-02-03T04:05:06+00:00",
        conditions=Conditions(pairs=3, seed=7, device="cpu", threads=2),
        machine={
            "processor": "A Processor",
            "cores": 2,
            "flags": ["avx2"],
            "python": "3.11",
            "versions": {"torch": "2.0", "jax": None},
            "commit": "abc",
        },
        matmul_flops={"fp32": 2e9, "bf16": 4e9},
        rows=list(results),
    )


def a_finished_run() -> Results:
    speed = RowResult(a_row("stock", "other", flops_per_step=1e6), skipped=["X. some work: without SBX, no SBX."])
    speed.segments = {"ours": timed(1.0, 2.0, 1.0), "stock": timed(3.0, 4.0, 5.0), "other": timed(4.0, 3.0, 6.0)}
    shares = {"environment": 0.25, "policy": 0.25, "update": 0.4, "rest": 0.1}
    speed.looked_into = {"ours": Segment(STEPS, 1.1, shares), "stock": Segment(STEPS, 3.3, shares)}
    memory = RowResult(a_row("stock", kind="memory", target=0.35))
    memory.segments = {"ours": holding(3 * 2**20), "stock": holding(10 * 2**20)}
    broken = RowResult(a_row("stock"), error="stock ended with 1: Traceback ...\nValueError: a bad one")
    broken.segments = {"ours": [], "stock": []}
    return a_run([speed, memory, broken])
