"""The rows of the table: which work, on which sides, with which settings, against which target.

Owns the promises and the settings, in one place for every side; must not know how a side runs them.
"""

from __future__ import annotations

from math import prod
from typing import Any

from benchmarks.throughput.records import Comparison, Row, Side

# The entries `atari` and `CartPole-v1` of myppo.yml, which are rl_zoo3's own.
ATARI: dict[str, Any] = {
    "policy": "CnnPolicy",
    "n_steps": 128,
    "batch_size": 256,
    "n_epochs": 4,
    "learning_rate": "lin_2.5e-4",
    "clip_range": "lin_0.1",
    "ent_coef": 0.01,
    "vf_coef": 0.5,
}
CARTPOLE: dict[str, Any] = {
    "policy": "MlpPolicy",
    "n_steps": 32,
    "batch_size": 256,
    "n_epochs": 20,
    "gamma": 0.98,
    "gae_lambda": 0.8,
    "learning_rate": "lin_0.001",
    "clip_range": "lin_0.2",
    "ent_coef": 0.0,
}
# Stable-Baselines3's defaults.
ONE_ENVIRONMENT: dict[str, Any] = {"policy": "MlpPolicy", "n_steps": 2048, "batch_size": 64, "n_epochs": 10}

STOCK = Side("stock", "stock")
STOCK_SUBPROC = Side("stock, SubprocVecEnv", "stock", vec_env="subproc")
SBX = Side("SBX", "sbx", needs=("sbx",))
ATARI_MODULES = ("ale_py", "cv2")

# Filters or units, inputs of each, positions at which they apply.
_NATURE_CNN = ((32, 8 * 8 * 4, 20 * 20), (64, 4 * 4 * 32, 9 * 9), (64, 3 * 3 * 64, 7 * 7), (512, 64 * 7 * 7, 1))


def nature_cnn_flops(n_epochs: int) -> float:
    """Floating-point operations that PPO needs per environment step with SB3's NatureCNN on 4×84×84.

    One forward pass while collecting, one forward and one backward pass per epoch. The backward pass costs two
    forward passes, less the gradient with respect to the screen, which nobody wants. The heads are left out.

    :param n_epochs: passes over each rollout
    :return: a multiply-add counts as two
    """
    forward = sum(prod(layer) for layer in _NATURE_CNN)
    backward = 2 * forward - prod(_NATURE_CNN[0])
    return 2.0 * (forward + n_epochs * (forward + backward))


def _pong(letter: str, work: str, sides: tuple[Side, ...], target: float) -> Row:
    return Row(
        letter=letter,
        work=work,
        kind="learning",
        env_id="PongNoFrameskip-v4",
        n_envs=8,
        steps=2 * 8 * 128,
        sides=sides,
        comparisons=(Comparison(tuple(side.name for side in sides[1:]), target),),
        settings=ATARI,
        needs=ATARI_MODULES,
        flops_per_step=nature_cnn_flops(ATARI["n_epochs"]),
    )


def _one_environment(env_id: str, target: float, needs: tuple[str, ...] = ()) -> Row:
    return Row(
        letter="E",
        work=f"{env_id}, 1 environment",
        kind="learning",
        env_id=env_id,
        n_envs=1,
        steps=4 * 2048,
        sides=(Side("ours", "ours"), STOCK, SBX),
        comparisons=(Comparison(("stock",), target), Comparison(("SBX",), 1.0)),
        settings=ONE_ENVIRONMENT,
        needs=needs,
    )


ROWS: tuple[Row, ...] = (
    _pong("A", "Pong, same DummyVecEnv, fp32", (Side("ours", "ours"), STOCK), 1.5),
    _pong("B", "Pong, AtariVecEnv, fp32", (Side("ours", "ours", vec_env="native"), STOCK, STOCK_SUBPROC), 1.7),
    _pong(
        "C",
        "Pong, AtariVecEnv, bf16",
        (Side("ours", "ours", vec_env="native", arguments={"precision": "bf16"}), STOCK, STOCK_SUBPROC),
        2.4,
    ),
    Row(
        letter="D",
        work="CartPole-v1, 8 environments",
        kind="learning",
        env_id="CartPole-v1",
        n_envs=8,
        steps=100 * 8 * 32,
        sides=(Side("ours", "ours"), STOCK, SBX),
        comparisons=(Comparison(("stock",), 3.0), Comparison(("SBX",), 2.0)),
        settings=CARTPOLE,
    ),
    _one_environment("Pendulum-v1", 3.0),
    _one_environment("HalfCheetah-v5", 2.5, needs=("mujoco",)),
    Row(
        letter="F",
        work="rollout memory, 64 × 512 stacks of 4×84×84",
        kind="memory",
        # Its lives are short: a Pong game lasts longer than the rollout, and no stack would ever begin anew.
        env_id="BreakoutNoFrameskip-v4",
        n_envs=64,
        steps=64 * 512,
        sides=(Side("ours", "ours", vec_env="native"), Side("stock", "stock", vec_env="native")),
        comparisons=(Comparison(("stock",), 0.35),),
        settings={"policy": "CnnPolicy", "n_steps": 512, "batch_size": 256, "n_epochs": 1},
        needs=ATARI_MODULES,
        repeats=False,
    ),
    Row(
        letter="G",
        work="stepping 32 × Pong, random actions",
        kind="stepping",
        env_id="PongNoFrameskip-v4",
        n_envs=32,
        steps=32 * 400,
        sides=(Side("ours", "ours", vec_env="native"), STOCK),
        comparisons=(Comparison(("stock",), 2.2),),
        needs=ATARI_MODULES,
    ),
    Row(
        letter="H",
        work="CartPole-v1 under DiagnosticsCallback",
        kind="learning",
        env_id="CartPole-v1",
        n_envs=8,
        steps=400 * 8 * 32,
        sides=(Side("ours", "ours", is_diagnosed=True), Side("ours, without it", "ours")),
        comparisons=(Comparison(("ours, without it",), 0.97),),
        settings=CARTPOLE,
    ),
)


def chosen_rows(letters: str | None) -> list[Row]:
    """The rows that a user asked for.

    :param letters: separated by commas; None for all
    :return: in the order of the table
    :raises ValueError: if there is no such row, naming those that there are
    """
    known = sorted({row.letter for row in ROWS})
    if letters is None:
        return list(ROWS)
    wanted = [letter.strip().upper() for letter in letters.split(",")]
    for letter in wanted:
        if letter not in known:
            raise ValueError(f"--only {letters}: there is no row {letter!r}; choose from {','.join(known)}.")
    return [row for row in ROWS if row.letter in wanted]
