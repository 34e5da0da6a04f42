"""Gradient norms of actor and critic: against norms computed apart, and the verdicts from given numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from benchmarks.experiments.gradient_budget.command import NORMALISED, RAW, claims, picture, shown
from benchmarks.experiments.gradient_budget.norms import GradientBudget


def a_policy() -> ActorCriticPolicy:
    th.manual_seed(0)
    box = spaces.Box(-1.0, 1.0, (3,), np.float32)
    return ActorCriticPolicy(box, spaces.Discrete(2), lambda _: 0.01, net_arch=[4])


def norm(gradients: list[th.Tensor]) -> float:
    return float(th.cat([one.flatten() for one in gradients]).norm())


@pytest.mark.parametrize("scale", [100.0, 1e-3])
def test_norms_before_clipping_and_steps_after_it(scale: float) -> None:
    policy = a_policy()
    budget = GradientBudget(policy, max_grad_norm=0.5)
    observations = th.tensor([[0.5, -0.5, 1.0], [0.1, 0.2, 0.3]])
    for _ in range(2):
        values, log_prob, _ = policy.evaluate_actions(observations, th.tensor([0, 1]))
        policy.optimizer.zero_grad()
        (scale * (values - 3.0).square().mean() - scale * log_prob.mean()).backward()  # type: ignore[no-untyped-call]
        named = {name: p.grad.clone() for name, p in policy.named_parameters() if p.grad is not None}
        critic = norm([grad for name, grad in named.items() if "value" in name])
        actor = norm([grad for name, grad in named.items() if "value" not in name])
        before = th.nn.utils.parameters_to_vector(policy.parameters()).detach()
        joint = float(th.nn.utils.clip_grad_norm_(policy.parameters(), 0.5))
        policy.optimizer.step()
        moved = th.nn.utils.parameters_to_vector(policy.parameters()).detach() - before
        row = budget.table().iloc[-1]
        assert row["critic"] == pytest.approx(critic, rel=1e-5)
        assert row["actor"] == pytest.approx(actor, rel=1e-5)
        assert row["factor"] == pytest.approx(min(1.0, 0.5 / joint), rel=1e-5)
        assert row["learning_rate"] == 0.01
        n_actor = sum(p.numel() for name, p in policy.named_parameters() if "value" not in name)
        n_critic = moved.numel() - n_actor
        squares = row["actor_step"] ** 2 * n_actor + row["critic_step"] ** 2 * n_critic
        assert squares == pytest.approx(float(moved.square().sum()), rel=1e-4)
    assert len(budget.table()) == 2


def a_table(raw: tuple[float, ...], normalised: tuple[float, ...]) -> pd.DataFrame:
    columns = ("actor", "critic", "factor", "effective_rate", "actor_step")
    rows = [
        {
            "rewards": rewards,
            "seed": 0,
            "steps": steps,
            "learning_rate": 3e-4,
            "critic_step": 1e-4,
            **dict(zip(columns, numbers, strict=True)),
        }
        for rewards, numbers in ((RAW, raw), (NORMALISED, normalised))
        for steps in (2048, 4096)
    ]
    return pd.DataFrame(rows)


def test_the_documents_numbers_hold() -> None:
    table = a_table((0.13, 50.0, 0.01, 3e-6, 3e-6), (0.10, 1.0, 0.5, 1.5e-4, 1.5e-4))
    judged = claims(table)
    assert [claim.holds for claim in judged] == [True] * 8
    assert "385 on raw and 10.0 on normalised" in judged[2].found
    assert len(shown(table)) == 4
    assert len(picture(table).axes) == 2


def test_a_rate_that_falls_without_smaller_steps_does_not_hold() -> None:
    judged = claims(a_table((0.13, 50.0, 0.01, 3e-6, 1e-4), (0.10, 1.0, 0.5, 1.5e-4, 2e-4)))
    assert [claim.holds for claim in judged] == [True, True, True, False] * 2
    assert "2.0 times as far" in judged[3].found


def test_norms_far_from_the_documents() -> None:
    judged = claims(a_table((1.0, 1.0, 0.5, 1e-4, 1e-4), (1.0, 1.0, 0.5, 1e-4, 1e-4)))
    assert [claim.holds for claim in judged] == [False] * 8


def test_the_first_five_updates_are_judged_apart() -> None:
    said = (0.13, 50.0, 0.01, 3e-6, 3e-6), (0.10, 1.0, 0.5, 1.5e-4, 1.5e-4)
    early, late = a_table(*said), a_table((1.0,) * 5, (1.0,) * 5)
    table = pd.concat([early.assign(steps=5 * 2048), *(late.assign(steps=n * 2048) for n in (6, 7, 8))])
    judged = claims(table)
    assert [claim.holds for claim in judged] == [True] * 4 + [False] * 4
    assert judged[0].found.startswith("first five updates: actor norm 0.13, critic norm 50,")
    assert judged[4].found.startswith("all of training: actor norm 1, critic norm 1,")
