"""Gradient norms of actor and critic on LunarLander-v3, raw rewards against normalised ones.

Owns the runs, the command line, the judgement and the picture; must not know how a norm is measured.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from benchmarks.arguments import SEEDS_HELP, at_least, output_folder, seed_list
from benchmarks.experiments.gradient_budget.norms import GradientBudget
from benchmarks.experiments.outcome import Claim, Outcome, write_outcome
from benchmarks.experiments.pictures import COLORS, GREY, LINES, label, panels
from benchmarks.experiments.provenance import facts, made_by
from sb3_ppo_from_scratch import PPO

RAW, NORMALISED = "raw", "normalised"
ENV_ID = "LunarLander-v3"
N_ENVS, N_STEPS = 16, 128
MAX_GRAD_NORM, LEARNING_RATE, GAMMA = 0.5, 3e-4, 0.999
# What the document's table says: norms of actor and critic, factor of the clipping, effective rate of the actor.
_DOCUMENT = {RAW: (0.13, 50.0, 0.01, 3e-6), NORMALISED: (0.10, 1.0, 0.5, 1.5e-4)}
_QUANTITIES = ("actor", "critic", "factor", "effective_rate")
_NAMES = ("actor norm", "critic norm", "clip factor", "effective rate")
_EARLY, _ALL = "first five updates", "all of training"
_EARLY_STEPS = 5 * N_ENVS * N_STEPS
_NEAR = 3.0  # a number within this factor counts as the document's
_SETTING = """\
{env}, {n_envs} environments × {n_steps} steps, 4 epochs of minibatches of 256, Adam 3e-4, γ = {gamma}, λ = 0.95,
separate networks, joint clipping at {bound}, value loss 0.5 × squared error, {seeds} seeds × {steps:,} steps.
Medians over updates and seeds of the medians over each update's minibatches, for the first five updates and for all:
the document does not say when it measured. It calls learning rate × clip factor the actor's effective rate; `actor
step` is how far a parameter of the actor really moves in a minibatch (root mean square), since Adam divides a
factor that all gradients share out again."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line.

    :param parser: of this command
    """
    parser.add_argument(
        "--steps", type=at_least(N_ENVS * N_STEPS), default=100_000, help="environment steps of each run"
    )
    parser.add_argument("--seeds", type=seed_list, default="2", help=SEEDS_HELP)
    parser.add_argument(
        "--out", type=output_folder, default="logs/gradient-budget", help="folder of table, picture and report"
    )


def run(arguments: argparse.Namespace) -> None:
    """Train, judge, draw.

    :param arguments: as declared by ``add_arguments``
    """
    made = made_by([facts()])
    table = pd.concat(
        [measured_run(kind, seed, arguments.steps) for kind in (RAW, NORMALISED) for seed in arguments.seeds]
    )
    setting = _SETTING.format(
        env=ENV_ID,
        n_envs=N_ENVS,
        n_steps=N_STEPS,
        gamma=GAMMA,
        bound=MAX_GRAD_NORM,
        seeds=len(arguments.seeds),
        steps=arguments.steps,
    )
    title = "The gradient budget: raw against normalised rewards"
    write_outcome(arguments.out, Outcome(title, setting, table, shown(table), claims(table), picture(table), made))


def measured_run(rewards: str, seed: int, steps: int) -> pd.DataFrame:
    """Train, following every minibatch.

    :param rewards: ``RAW`` or ``NORMALISED``
    :param seed: of everything random
    :param steps: to train for
    :return: one row for each update: medians over its minibatches
    """
    env = VecNormalize(
        make_vec_env(ENV_ID, N_ENVS, seed=seed), norm_obs=True, norm_reward=rewards == NORMALISED, gamma=GAMMA
    )
    model = PPO(
        "MlpPolicy",
        env,
        learning_rate=LEARNING_RATE,
        n_steps=N_STEPS,
        batch_size=256,
        n_epochs=4,
        gamma=GAMMA,
        ent_coef=0.01,
        max_grad_norm=MAX_GRAD_NORM,
        seed=seed,
        device="cpu",
        engine="reference",  # the one that goes through automatic differentiation, where gradients can be watched
    )
    budget = GradientBudget(model.policy, MAX_GRAD_NORM)
    model.learn(steps, log_interval=None)
    env.close()
    minibatches = budget.table()
    minibatches["effective_rate"] = minibatches["learning_rate"] * minibatches["factor"]
    minibatches["update"] = minibatches.index // (model.n_epochs * N_ENVS * N_STEPS // model.batch_size)
    updates = minibatches.groupby("update", as_index=False).median()
    updates.insert(0, "steps", (updates.pop("update") + 1) * N_ENVS * N_STEPS)
    updates.insert(0, "seed", seed)
    updates.insert(0, "rewards", rewards)
    return updates


def claims(table: pd.DataFrame) -> tuple[Claim, ...]:
    """Hold what the document says against the numbers, early in training and over all of it.

    :param table: of updates
    """
    return tuple(claim for window in (_EARLY, _ALL) for claim in _claims_of(window, _medians(table, window)))


def _medians(table: pd.DataFrame, window: str) -> pd.DataFrame:
    rows = table[table["steps"] <= _EARLY_STEPS] if window == _EARLY else table
    return rows.groupby("rewards")[[*_QUANTITIES, "actor_step", "critic_step"]].median()


def _claims_of(window: str, medians: pd.DataFrame) -> tuple[Claim, ...]:
    raw, normalised = medians.loc[RAW], medians.loc[NORMALISED]
    share = raw["critic"] / raw["actor"], normalised["critic"] / normalised["actor"]
    step = normalised["actor_step"] / raw["actor_step"]
    rate = normalised["effective_rate"] / raw["effective_rate"]
    return (
        _numbers_claim(RAW, window, raw),
        _numbers_claim(NORMALISED, window, normalised),
        Claim(
            "on raw rewards the critic's gradient eats the clipping budget, on normalised ones it does not.",
            f"{window}: critic / actor is {share[0]:,.0f} on raw and {share[1]:.1f} on normalised rewards, the clip "
            f"factor {raw['factor']:.2g} and {normalised['factor']:.2g} (a ratio of 10 in both counts).",
            bool(share[0] >= 10 * share[1] and normalised["factor"] >= 10 * raw["factor"]),
        ),
        Claim(
            "so the actor's effective learning rate collapses and the policy sits still (50 times slower).",
            f"{window}: learning rate × clip factor is {rate:.0f} times as large with normalised rewards, but the "
            f"actor's parameters move {step:.1f} times as far in a minibatch ({normalised['actor_step']:.1e} against "
            f"{raw['actor_step']:.1e}; 10 times as far counts as sitting still).",
            bool(step >= 10),
        ),
    )


def _numbers_claim(rewards: str, window: str, medians: pd.Series[float]) -> Claim:
    pairs = list(zip(_NAMES, _DOCUMENT[rewards], medians[list(_QUANTITIES)], strict=True))
    numbers = ", ".join(f"{name} {found:.2g}" for name, _, found in pairs)
    return Claim(
        f"{rewards} rewards: " + ", ".join(f"{name} {said:g}" for name, said, _ in pairs) + ".",
        f"{window}: {numbers} (all within a factor of {_NEAR:g} counts).",
        all(1 / _NEAR <= found / said <= _NEAR for _, said, found in pairs),
    )


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Medians beside the document's numbers.

    :param table: of updates
    :return: as text
    """
    lines = []
    for window in (_EARLY, _ALL):
        medians = _medians(table, window)
        for rewards, said in _DOCUMENT.items():
            found = medians.loc[rewards]
            named = zip(_NAMES, _QUANTITIES, said, strict=True)
            cells = {name: f"{found[key]:.2g} (document: {number:g})" for name, key, number in named}
            steps = {name.replace("_", " "): f"{found[name]:.1e}" for name in ("actor_step", "critic_step")}
            lines.append({"window": window, "rewards": rewards, **cells, **steps})
    return pd.DataFrame(lines)


def picture(table: pd.DataFrame) -> Figure:
    """Norms and the actor's steps over training.

    :param table: of updates
    :return: not saved yet
    """
    figure, (left, right) = panels(2, f"{ENV_ID}: how actor and critic share the clipped gradient")
    curves = table.groupby(["rewards", "steps"], as_index=False).median(numeric_only=True)
    for rewards, line in zip((RAW, NORMALISED), LINES, strict=False):
        rows = curves[curves["rewards"] == rewards]
        steps = rows["steps"] / 1e3
        for name, color in zip(("actor", "critic"), COLORS, strict=False):
            left.plot(steps, rows[name], color=color, linestyle=line, label=f"{name}, {rewards} rewards")
        relative = rows["learning_rate"]
        right.plot(steps, rows["factor"], color=COLORS[2], linestyle=line, label=f"clip factor, {rewards}")
        moved = rows["actor_step"] / relative
        right.plot(steps, moved, color=COLORS[3], linestyle=line, label=f"actor's step / learning rate, {rewards}")
    left.axhline(MAX_GRAD_NORM, color="black", linewidth=0.8)
    left.annotate(
        "bound on the joint norm",
        (float(np.max(curves["steps"])) / 1e3, MAX_GRAD_NORM),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8,
        ha="right",
    )
    label(left, x="environment steps (thousands)", y="L2 norm before clipping (log scale)", title="gradient norms")
    label(right, x="environment steps (thousands)", y="factor (log scale)", title="what clipping and Adam make of them")
    for axes in (left, right):
        axes.axvspan(0, _EARLY_STEPS / 1e3, color=GREY, alpha=0.15, linewidth=0, label=_EARLY if axes is left else "")
        axes.set_yscale("log")
        axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, frameon=False)
    return figure
