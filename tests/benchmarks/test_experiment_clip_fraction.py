"""Clip fractions by epoch: the gridworld as an environment, a short run, and the verdicts from given numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from gymnasium.utils.env_checker import check_env

from benchmarks.experiments.clip_fraction.command import claims, growth, picture, shown
from benchmarks.experiments.clip_fraction.epochs import (
    EPOCHS,
    GRIDWORLD,
    first_minibatch_clip_fraction,
    measured_run,
)
from benchmarks.experiments.clip_fraction.gridworld_env import GridworldEnv
from benchmarks.experiments.markov import gridworld


def test_the_gridworld_is_an_environment() -> None:
    env = GridworldEnv(gridworld(slip=0.0))
    check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=0)
    assert observation.tolist() == [1.0] + [0.0] * 15
    # Right along the wall, then down to the goal.
    for action in (1, 1, 1, 2, 2):
        _, reward, terminated, truncated, _ = env.step(np.int64(action))
        assert reward == pytest.approx(-0.01)
        assert not terminated
        assert not truncated
    observation, reward, terminated, _, _ = env.step(np.int64(2))
    assert reward == pytest.approx(0.99)
    assert terminated
    assert observation[15] == 1.0


def test_nothing_is_clipped_before_the_first_step() -> None:
    assert first_minibatch_clip_fraction(0) == 0.0


def test_a_run_has_a_row_for_each_epoch_of_each_rollout() -> None:
    table = measured_run(GRIDWORLD, 4, 0, 2)
    assert table[["rollout", "epoch"]].to_numpy().tolist() == [[r, e] for r in (1, 2) for e in (1, 2, 3, 4)]
    assert table["clip_fraction"].between(0, 1).all()
    assert table["clip_fraction"].iloc[0] < table["clip_fraction"].iloc[3]


def a_table(clip_fraction: Callable[[int], float], approx_kl: Callable[[int], float]) -> pd.DataFrame:
    rows = [
        {
            "task": task,
            "n_epochs": n_epochs,
            "seed": 0,
            "rollout": rollout,
            "epoch": epoch,
            "clip_fraction": clip_fraction(epoch),
            "approx_kl": approx_kl(epoch),
        }
        for task in (GRIDWORLD, "CartPole-v1")
        for n_epochs in EPOCHS
        for rollout in (1, 2)
        for epoch in range(1, n_epochs + 1)
    ]
    return pd.DataFrame(rows)


def test_what_the_document_expects_holds() -> None:
    table = a_table(lambda epoch: 0.04 * epoch, lambda epoch: 0.005 * epoch)
    judged = claims(table, 0.0)
    assert [claim.holds for claim in judged] == [True] * 4
    assert judged[2].found.startswith("0.50 on average over epochs 9 to 16")
    assert "of 2 rollouts 2 came to clip" in judged[3].found
    assert len(shown(table)) == 2 * len(EPOCHS)
    assert len(picture(table).axes) == 2


def test_what_it_does_not_expect() -> None:
    late = claims(a_table(lambda epoch: 0.04 * epoch, lambda epoch: 0.003 * epoch), 0.1)
    assert [claim.holds for claim in late] == [False, True, True, False]
    flat = claims(a_table(lambda epoch: 0.1, lambda epoch: 0.1), 0.0)
    assert [claim.holds for claim in flat] == [True, False, False, None]


def rollouts(*fractions: list[float]) -> pd.DataFrame:
    rows = [
        {"task": GRIDWORLD, "seed": seed, "rollout": 1, "epoch": epoch, "clip_fraction": fraction}
        for seed, of_epochs in enumerate(fractions)
        for epoch, fraction in enumerate(of_epochs, start=1)
    ]
    return pd.DataFrame(rows)


def test_growth_is_judged_against_the_noise_of_rollouts() -> None:
    """Rank correlations 1, 0.5 and 1; the second step's mean is 0.1 ± 0.1."""
    words, grows = growth(rollouts([0.0, 0.1, 0.3], [0.0, 0.3, 0.2], [0.0, 0.2, 0.4]))
    assert words == (
        "gridworld, 3 epochs: 0.000 → 0.300, most in epoch 3, mean rank correlation with the epoch 0.83 ± 0.17, "
        "1 of 2 steps up and 0 down by more than twice their error"
    )
    assert grows is True


def test_growth_with_a_step_that_surely_falls_is_none() -> None:
    words, grows = growth(rollouts([0.0, 0.2, 0.5, 0.4], [0.0, 0.2, 0.5, 0.41], [0.0, 0.3, 0.6, 0.5]))
    assert "2 of 3 steps up and 1 down" in words
    assert grows is False


def test_without_clipping_nothing_grows_and_one_rollout_tells_nothing() -> None:
    assert growth(rollouts([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]))[1] is False
    assert growth(rollouts([0.0, 0.1, 0.2]))[1] is None
