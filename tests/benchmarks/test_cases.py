"""What is promised: rows, targets and settings; and what remains of them on a poorer machine."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
import yaml

from benchmarks.throughput import availability
from benchmarks.throughput.cases import ATARI, CARTPOLE, ROWS, chosen_rows
from sb3_ppo_from_scratch.zoo.configuration import own_configuration

NOT_THE_ALGORITHMS = {"native_atari", "env_wrapper", "frame_stack", "n_timesteps", "n_envs"}


def test_the_targets_are_the_promised_ones() -> None:
    targets = [(row.letter, one.peers, one.target) for row in ROWS for one in row.comparisons]
    assert targets == [
        ("A", ("stock",), 1.5),
        ("B", ("stock", "stock, SubprocVecEnv"), 1.7),
        ("C", ("stock", "stock, SubprocVecEnv"), 2.4),
        ("D", ("stock",), 3.0),
        ("D", ("SBX",), 2.0),
        ("E", ("stock",), 3.0),
        ("E", ("SBX",), 1.0),
        ("E", ("stock",), 2.5),
        ("E", ("SBX",), 1.0),
        ("F", ("stock",), 0.35),
        ("G", ("stock",), 2.2),
        ("H", ("ours, without it",), 0.97),
    ]


@pytest.mark.parametrize("settings, entry, n_envs", [(ATARI, "atari", "A"), (CARTPOLE, "CartPole-v1", "D")])
def test_the_settings_are_those_of_the_zoo(settings: dict[str, Any], entry: str, n_envs: str) -> None:
    configured = yaml.safe_load(own_configuration().read_text(encoding="utf-8"))[entry]
    assert settings == {name: value for name, value in configured.items() if name not in NOT_THE_ALGORITHMS}
    assert configured["n_envs"] == chosen_rows(n_envs)[0].n_envs


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows_are_sound(row: Any) -> None:
    names = [side.name for side in row.sides]
    assert names[0] == "ours"
    assert len(set(names)) == len(names)
    assert {peer for one in row.comparisons for peer in one.peers} == set(names[1:])
    rollout = row.n_envs * row.settings.get("n_steps", 1)
    assert row.steps % rollout == 0, "a segment is a whole number of rollouts"


def test_rows_are_chosen_by_letter() -> None:
    assert [row.letter for row in chosen_rows("e, a")] == ["A", "E", "E"]
    assert chosen_rows(None) == list(ROWS)


def test_an_unknown_row_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"--only A,Z: there is no row 'Z'; choose from A,B,C,D,E,F,G,H"):
        chosen_rows("A,Z")


def test_a_missing_peer_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "find_spec", lambda name: None if name == "sbx" else find_spec("math"))
    (row,) = chosen_rows("D")
    part, lines = availability.runnable_part(row, "cpu", [])
    assert part is not None
    assert [side.name for side in part.sides] == ["ours", "stock"]
    assert [one.peers for one in part.comparisons] == [("stock",)]
    assert lines == [
        "D. CartPole-v1, 8 environments: without SBX, sbx is not installed (pip install 'sb3_ppo_from_scratch[sbx]')."
    ]


def test_without_its_environment_a_row_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "find_spec", lambda name: None)
    part, lines = availability.runnable_part(chosen_rows("A")[0], "cpu", [])
    assert part is None
    assert len(lines) == 1
    assert "ale_py is not installed (pip install 'sb3_ppo_from_scratch[atari]')" in lines[0]


@pytest.mark.parametrize(
    "device, flags, runs",
    [("cpu", ["avx2"], False), ("cpu", ["avx512_bf16"], True), ("cpu", ["amx_bf16"], True), ("cuda", [], True)],
)
def test_bf16_needs_a_processor_that_has_it(
    device: str, flags: list[str], runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "find_spec", lambda name: find_spec("math"))
    part, lines = availability.runnable_part(chosen_rows("C")[0], device, flags)
    assert (part is not None) is runs
    assert runs or "AVX512_BF16" in lines[0]
