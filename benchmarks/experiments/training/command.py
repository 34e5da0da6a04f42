"""The command line that experiments with training runs share.

Owns the arguments and the order of runs; must not know what an experiment makes of the results.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import gymnasium as gym
import pandas as pd

from benchmarks.arguments import SEEDS_HELP, at_least, output_folder, seed_list
from benchmarks.experiments.outcome import Outcome, write_outcome
from benchmarks.experiments.training.runs import Run, complete_results, read_result
from benchmarks.experiments.training.schedule import do_runs
from benchmarks.processes import interrupt_when_terminated


def add_training_arguments(
    parser: argparse.ArgumentParser, experiment: str, *, seeds: str, steps: Mapping[str, int], settings: Sequence[str]
) -> None:
    """Declare the command line.

    :param parser: of the command
    :param experiment: its name
    :param seeds: default of --seeds
    :param steps: default tasks, and for how many environment steps each is trained
    :param settings: all there are
    """
    parser.add_argument("--tasks", default=",".join(steps), help="ids of registered environments, separated by commas")
    parser.add_argument("--settings", default=",".join(settings), help="separated by commas; default: all")
    parser.add_argument("--seeds", type=seed_list, default=seeds, help=SEEDS_HELP)
    own = ", ".join(f"{n:,} on {task}" for task, n in steps.items())
    parser.add_argument("--steps", type=at_least(1), help=f"environment steps of every run; default: {own}")
    parser.set_defaults(task_steps=steps)
    parser.add_argument("--jobs", type=at_least(1), default=1, help="runs at a time, each with one thread")
    parser.add_argument("--out", type=output_folder, default=f"logs/{experiment}", help="folder of results and report")
    parser.add_argument("--report-only", action="store_true", help="train nothing; report on what is finished")


def planned_runs(arguments: argparse.Namespace, experiment: str, settings: Sequence[str]) -> list[Run]:
    """Every combination of seed, task and setting; settings change fastest, so that what is compared comes together.

    :param arguments: as declared by ``add_training_arguments``
    :param experiment: its package
    :param settings: all there are
    :return: the runs asked for
    :raises ValueError: for an argument that cannot be used, or a run that was finished with other steps
    """
    tasks, wanted = (_parts(getattr(arguments, name), name) for name in ("tasks", "settings"))
    for task in tasks:
        if task not in gym.registry:
            raise ValueError(
                f"--tasks {arguments.tasks}: no environment {task!r} is registered, or its module is missing."
            )
    for name in wanted:
        if name not in settings:
            raise ValueError(
                f"--settings {arguments.settings}: there is no {name!r}; choose from {', '.join(settings)}."
            )
    steps = {task: arguments.steps or arguments.task_steps.get(task) for task in tasks}
    if missing := [task for task, n in steps.items() if n is None]:
        raise ValueError(f"--tasks {arguments.tasks}: there is no number of steps for {missing[0]}; give --steps.")
    runs = [
        Run(experiment, task, name, seed, steps[task]) for seed in arguments.seeds for task in tasks for name in wanted
    ]
    for run in runs:
        read_result(arguments.out, run)
    return runs


def perform(
    arguments: argparse.Namespace,
    experiment: str,
    settings: Sequence[str],
    judge: Callable[[pd.DataFrame], Outcome],
    comparable: Callable[[Path, Sequence[Run]], pd.DataFrame] = complete_results,
) -> None:
    """Do the runs that are not finished yet, then write what they say.

    :param arguments: as declared by ``add_training_arguments``
    :param experiment: its package
    :param settings: all there are
    :param judge: makes an outcome of the table of results
    :param comparable: which results of a folder to judge, of all runs that are asked for
    :raises SystemExit: for arguments that cannot be used, before any work; at the end, if a run did not finish
    """
    try:
        runs = planned_runs(arguments, experiment, settings)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    missing = [] if arguments.report_only else _train(runs, arguments)
    results = comparable(arguments.out, runs)
    if results.empty:
        print(f"No report: too few runs in {arguments.out} are finished.")
    else:
        write_outcome(arguments.out, judge(results))
    if missing:
        raise SystemExit(f"Did not finish: {'; '.join(run.name for run in missing)}")


def _train(runs: list[Run], arguments: argparse.Namespace) -> list[Run]:
    interrupt_when_terminated()
    try:
        return do_runs(runs, arguments.out.resolve(), arguments.jobs)
    except KeyboardInterrupt:
        raise SystemExit(f"Interrupted; the same command goes on with what is left in {arguments.out}.") from None


def _parts(text: str, name: str) -> list[str]:
    parts = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not parts:
        raise ValueError(f"--{name} {text!r}: name at least one.")
    return parts
