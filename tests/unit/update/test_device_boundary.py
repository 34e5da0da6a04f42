"""Claims about an accelerator: one transfer a rollout and one an epoch, and the host waits only at the update's end.

torch's "meta" device plays the accelerator: whoever wants a number of it has to ask, and each time is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from torch.utils._python_dispatch import TorchDispatchMode

from sb3_ppo_from_scratch.core.records import AdvantageStatistics, FrameStacks, LossTerms, Minibatch, UpdateSettings
from sb3_ppo_from_scratch.networks import torch_policy
from sb3_ppo_from_scratch.networks.recognition import recognise
from sb3_ppo_from_scratch.networks.torch_policy import TorchPolicy
from sb3_ppo_from_scratch.rollout.buffer import RolloutBuffer
from sb3_ppo_from_scratch.update.epochs import run_epochs
from sb3_ppo_from_scratch.update.fused import FusedEngine
from tests.environments import ACTION_SPACES
from tests.unit.networks.policies import ATARI, Setup, cnn, multi_input
from tests.unit.update.test_objective import SETTINGS

DEVICE, HOST = th.device("meta"), th.device("cpu")
T, E = 12, 2
UNEVEN_STACK = spaces.Box(0, 255, (4, 38, 38), np.uint8)  # of no whole blocks
SETUPS = {
    **{f"mlp_{action}": Setup(action=action) for action in ACTION_SPACES},
    "gsde": Setup(action="box", kwargs={"use_sde": True}),
    "cnn": cnn(),
    "stacks": cnn(ATARI),
    "multi_input": multi_input(action="box"),
}
every_setup = pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)


class Boundary(TorchDispatchMode):
    """Counts what crosses between the host and the device, in either direction, and answers the host's questions."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.loads: list[tuple[th.dtype, int]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = function.overloadpacket.__name__
        if name == "_local_scalar_dense" and args[0].device == DEVICE:  # item, float, bool, tolist
            self.reads += 1
            return 0.0
        if name in ("_to_copy", "copy_"):
            source, target = (args[0], kwargs.get("device")) if name == "_to_copy" else (args[1], args[0].device)
            is_load, is_read = target == DEVICE != source.device, target == HOST != source.device
            if is_load:
                self.loads.append((source.dtype, source.numel()))
            if is_read:
                self.reads += 1
                return args[0] if name == "copy_" else th.zeros(source.shape, dtype=kwargs.get("dtype", source.dtype))
        return function(*args, **kwargs)


def on_the_device(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> TorchPolicy:
    policy = setup.build().to(DEVICE)
    # A move to a real accelerator keeps the parameters that the optimizer knows.
    policy.optimizer = policy.optimizer_class(policy.parameters(), lr=1e-3)
    monkeypatch.setattr(th, "autocast", lambda *_, **__: nullcontext())  # which "meta" does not know, even disabled
    family = recognise(policy).family
    assert family is not None
    return TorchPolicy(policy, family)


def filled(setup: Setup) -> RolloutBuffer:
    """A full rollout; stacks of images overlap from step to step, as VecFrameStack's do."""
    action_space = ACTION_SPACES[setup.action]
    buffer = RolloutBuffer(T, setup.observation_space, action_space, device="cpu", n_envs=E)
    observations = setup.observations(E)
    for _ in range(T):
        if not isinstance(observations, dict) and observations.dtype == np.uint8:
            observations = np.roll(observations, -1, axis=1)
        zeros = np.zeros(E, np.float32)
        actions = np.stack([np.ravel(action_space.sample()) for _ in range(E)])
        buffer.add(observations, actions, zeros, zeros, th.zeros(E), th.zeros(E))
    buffer.compute_returns_and_advantage(th.zeros(E), np.zeros(E))
    return buffer


def crossings(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, engine_class: type[FusedEngine] = FusedEngine, **settings: Any
) -> Boundary:
    """What one update moves between the host and the device."""
    engine = engine_class(on_the_device(setup, monkeypatch), np.random.default_rng(0))
    buffer = filled(setup)
    with Boundary() as boundary:
        report = run_epochs(engine, buffer, replace(SETTINGS, **{"n_epochs": 1, "batch_size": T * E, **settings}))
    assert report.stopping_kl is None
    return boundary


@every_setup
def test_how_often_the_host_reads_depends_on_neither_epochs_nor_minibatches(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = crossings(setup, monkeypatch)
    assert crossings(setup, monkeypatch, n_epochs=3, batch_size=6).reads == once.reads
    n_parameters = len(list(setup.build().parameters()))
    # The log, the norms of the gradient, and every parameter's count of steps.
    assert once.reads <= len(LossTerms._fields) + 1 + n_parameters


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "kl_penalty", "kl_coef": 3.0},
        {"objective": "unclipped", "advantage_statistics": AdvantageStatistics(0.1, 2.0)},
        {"value_loss": "huber", "value_clip": "openai", "clip_range_vf": 0.1},
        {"value_loss": "half_mse", "clip_range_vf": 0.1},
    ],
    ids=str,
)
def test_no_option_makes_the_host_read_or_load_more(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    setup = SETUPS["mlp_box"]
    default, chosen = (crossings(setup, monkeypatch, n_epochs=3, batch_size=6, **changes) for changes in ({}, options))
    assert (chosen.reads, chosen.loads) == (default.reads, default.loads)


@every_setup
def test_a_target_kl_is_compared_once_a_minibatch(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    without = crossings(setup, monkeypatch, n_epochs=2, batch_size=6)
    with_target = crossings(setup, monkeypatch, n_epochs=2, batch_size=6, target_kl=0.1)
    assert with_target.reads - without.reads == 2 * T * E // 6
    assert with_target.loads == without.loads


@every_setup
def test_an_epoch_loads_its_order_and_a_minibatch_nothing(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    once = Counter(crossings(setup, monkeypatch).loads)
    assert Counter(crossings(setup, monkeypatch, batch_size=6).loads) == once
    more = Counter(crossings(setup, monkeypatch, n_epochs=4, batch_size=6).loads)
    assert more - once == {(th.int64, T * E): 3}


@pytest.mark.parametrize("name", ["cnn", "stacks", "multi_input"])
def test_pictures_travel_once_and_as_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = crossings(SETUPS[name], monkeypatch, n_epochs=2, batch_size=6).loads
    n_frames = 1 + E * (4 + T - 1) if name == "stacks" else T * E  # each frame of the stacks once, and an empty one
    size = 84 if name == "stacks" else 36
    assert sum(dtype == th.uint8 for dtype, _ in loads) == 1
    assert max(loads, key=lambda load: load[1]) == (th.uint8, n_frames * size * size)


@pytest.mark.parametrize("largest", [0, 2**28], ids=["frames", "whole_stacks"])
@pytest.mark.parametrize("space", [ATARI, UNEVEN_STACK], ids=["rearranged", "as_they_are"])
def test_a_rollout_of_stacks_stays_bytes_on_the_device_however_it_is_kept(
    space: spaces.Box, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_policy, "_WHOLE_STACKS", largest)
    setup = cnn(space)
    network, packed = on_the_device(setup, monkeypatch), filled(setup).packed()
    assert packed is not None
    assert isinstance(packed.observations, FrameStacks)
    with Boundary() as boundary:
        rollout = network.loaded(packed)
        n_loads = len(boundary.loads)
        minibatch = network.drawn(rollout, th.zeros(6, dtype=th.int64, device=DEVICE))
    kept = rollout.observations
    pictures = kept.frames if isinstance(kept, FrameStacks) else kept
    assert isinstance(kept, th.Tensor) == (space is ATARI and largest > 0)
    assert (pictures.dtype, pictures.device) == (th.uint8, DEVICE)
    assert {column.device for column in minibatch} == {DEVICE}
    assert (len(boundary.loads), boundary.reads) == (n_loads, 0)


READS: dict[str, Callable[[th.Tensor], object]] = {
    "float": float,
    "bool": bool,
    "item": th.Tensor.item,
    "tolist": th.Tensor.tolist,
    "cpu": th.Tensor.cpu,
    "to": lambda tensor: tensor.to("cpu"),
    "copy": lambda tensor: th.zeros(()).copy_(tensor),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_an_engine_that_looks_at_a_loss_is_found_out(
    read: Callable[[th.Tensor], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the counting counts: once a minibatch, by every way of asking."""

    class CuriousEngine(FusedEngine):
        def evaluate(self, minibatch: Minibatch, settings: UpdateSettings) -> LossTerms:
            terms = super().evaluate(minibatch, settings)
            read(terms.loss)
            return terms

    setup = SETUPS["mlp_discrete"]
    expected = crossings(setup, monkeypatch, batch_size=6).reads + T * E // 6
    assert crossings(setup, monkeypatch, CuriousEngine, batch_size=6).reads == expected
