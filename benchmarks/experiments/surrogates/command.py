"""Train with each surrogate objective of the PPO paper on MuJoCo tasks, and hold the scores against its Table 1.

Owns the defaults of the command line; must not know how a run is made or judged.
"""

from __future__ import annotations

import argparse

from benchmarks.experiments.surrogates.judgement import outcome
from benchmarks.experiments.surrogates.settings import RECIPES
from benchmarks.experiments.training.command import add_training_arguments, perform

_STEPS = dict.fromkeys(("HalfCheetah-v5", "Hopper-v5", "InvertedDoublePendulum-v5"), 300_000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line.

    :param parser: of this command
    """
    add_training_arguments(parser, "surrogates", seeds="2", steps=_STEPS, settings=tuple(RECIPES))


def run(arguments: argparse.Namespace) -> None:
    """Train, judge, draw.

    :param arguments: as declared by ``add_arguments``
    :raises SystemExit: for arguments that cannot be used; at the end, if a run did not finish
    """
    perform(arguments, "surrogates", tuple(RECIPES), outcome)
