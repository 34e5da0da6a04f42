"""The command line of the examination, and its exit codes.

Owns arguments, exit codes and with them which causes count; must not know how anything is measured, judged or printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from stable_baselines3.common.utils import set_random_seed

from sb3_ppo_from_scratch.check.examination import examination
from sb3_ppo_from_scratch.check.subject import N_ENVS, UnusableError, environment, saved_n_envs, subject
from sb3_ppo_from_scratch.core.health import Thresholds

# What a single rollout can prove; the other causes need a history, or are no fault in a model at its beginning.
_MEANINGS = {
    3: ("NaN or infinity in parameters, observations, rewards or gradients", ("not_finite",)),
    4: ("log-probabilities that are stale or belong to something else", ("log_probabilities",)),
    5: ("a dead policy: it no longer explores, or nothing can change it", ("dead_policy", "entropy_collapse")),
    6: ("the scale of the rewards", ("reward_scale",)),
    7: ("the critic eats the budget of joint gradient clipping", ("joint_clipping",)),
    8: ("frames are skipped twice", ("frame_skip",)),
    9: ("VecNormalize and the algorithm discount differently", ("normalization_gamma",)),
    10: ("episodes are much longer than the discount horizon", ("discount_horizon",)),
}
EXIT_CODES = {cause: code for code, (_, causes) in _MEANINGS.items() for cause in causes}
# 1 is Python's own for a crash, 2 argparse's for arguments that cannot be used.
_EPILOG = "\n".join(
    [
        "exit codes, by the likeliest cause:",
        "  0  nothing wrong in sight",
        "  1  a crash",
        "  2  arguments that cannot be used",
        *(f"  {code:<2} {meaning}" for code, (meaning, _) in _MEANINGS.items()),
    ]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Examine a model on an environment and print what is seen.

    :param arguments: of the command line; None for the process's own
    :return: the exit code, see ``--help``
    :raises SystemExit: for arguments that cannot be used
    """
    parser = _parser()
    parsed = parser.parse_args(arguments)
    try:
        from rich.console import Console

        from sb3_ppo_from_scratch.check.report import show
    except ModuleNotFoundError:
        parser.error("the table needs rich; pip install rich")
    set_random_seed(parsed.seed)
    try:
        n_envs = parsed.n_envs or (N_ENVS if parsed.model is None else saved_n_envs(parsed.model))
        env = environment(parsed.env, n_envs, parsed.seed, parsed.normalize)
        model = subject(parsed.model, env, parsed.n_steps, parsed.seed)
    except UnusableError as error:
        parser.error(str(error))
    result = examination(model, Thresholds(), EXIT_CODES)
    env.close()
    name = "a new model" if parsed.model is None else parsed.model.name
    show(result, f"{name} on {parsed.env}: {model.n_envs} × {model.n_steps} steps, one update", Console())
    return EXIT_CODES[result.findings[0].cause] if result.findings else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sb3_ppo_from_scratch.check",
        description="Examine one rollout and one update of a model, before hours are spent on training it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--env", required=True, help="id of a registered environment, or module:id")
    parser.add_argument("--model", type=Path, help="zip saved by PPO, ours or stock SB3's (default: a new model)")
    parser.add_argument("--normalize", type=Path, metavar="PKL", help="statistics saved by VecNormalize")
    parser.add_argument("--n-envs", type=_count, help=f"environments (default: the model's own, or {N_ENVS})")
    parser.add_argument("--n-steps", type=_count, help="steps per environment (default: the model's own, or 128)")
    parser.add_argument("--seed", type=_seed, default=0, help="of environments, actions and a new model (default: 0)")
    return parser


def _count(text: str) -> int:
    return _whole(text, at_least=1)


def _seed(text: str) -> int:
    return _whole(text, at_least=0)


def _whole(text: str, at_least: int) -> int:
    if not text.isdecimal() or int(text) < at_least:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least {at_least}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
