"""The door to everything that trains, measures and compares.

Owns `python -m benchmarks COMMAND ARGS`; must not know what a command does with its arguments.
"""

from __future__ import annotations

import argparse

from benchmarks import train
from benchmarks.experiments.ablation import command as ablation
from benchmarks.experiments.baseline import command as baseline
from benchmarks.experiments.clip_fraction import command as clip_fraction
from benchmarks.experiments.gae import command as gae
from benchmarks.experiments.gradient_budget import command as gradient_budget
from benchmarks.experiments.surrogates import command as surrogates
from benchmarks.head_to_head import command as head_to_head
from benchmarks.report import command as report
from benchmarks.throughput import command as throughput

COMMANDS = {
    "train": train,
    "throughput": throughput,
    "head-to-head": head_to_head,
    "report": report,
    "surrogates": surrogates,
    "ablation": ablation,
    "gradient-budget": gradient_budget,
    "gae": gae,
    "baseline": baseline,
    "clip-fraction": clip_fraction,
}


def main() -> None:
    """Parse the command line and run one command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Train, measure and compare; COMMAND --help tells what one takes.",
    )
    subparsers = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        purpose = (module.__doc__ or "").splitlines()[0]
        module.add_arguments(subparsers.add_parser(name, help=purpose, description=purpose))
    arguments = parser.parse_args()
    COMMANDS[arguments.command].run(arguments)


if __name__ == "__main__":
    main()
