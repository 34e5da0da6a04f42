"""Train with each implementation detail of PPO switched off on LunarLander-v3 and Hopper-v5.

Owns the defaults of the command line; must not know how a run is made or judged.
"""

from __future__ import annotations

import argparse

from benchmarks.experiments.ablation.judgement import LANDER, outcome
from benchmarks.experiments.ablation.settings import RECIPES
from benchmarks.experiments.training.command import add_training_arguments, perform
from benchmarks.experiments.training.runs import finished_results

_STEPS = {LANDER: 600_000, "Hopper-v5": 300_000}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line.

    :param parser: of this command
    """
    add_training_arguments(parser, "ablation", seeds="2", steps=_STEPS, settings=tuple(RECIPES))


def run(arguments: argparse.Namespace) -> None:
    """Train, judge, draw.

    :param arguments: as declared by ``add_arguments``
    :raises SystemExit: for arguments that cannot be used; at the end, if a run did not finish
    """
    perform(arguments, "ablation", tuple(RECIPES), outcome, finished_results)
