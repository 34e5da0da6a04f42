"""Train algorithms side by side on the same tasks, seeds and evaluations, into one tidy table.

Owns the command line and what is shown meanwhile; must not know how a run is done.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.arguments import SEEDS_HELP, at_least, output_folder, seed_list
from benchmarks.head_to_head.algorithms import ALGORITHMS, chosen_algorithms, obstacle
from benchmarks.head_to_head.runs import Run, objection, tabled_runs
from benchmarks.head_to_head.schedule import Schedule
from benchmarks.head_to_head.table import RESULTS
from benchmarks.head_to_head.tasks import TASK_SETS, chosen_tasks
from benchmarks.processes import interrupt_when_terminated
from benchmarks.throughput.machine import available_cores

_SPEED_PERIOD = 600.0  # seconds over which the time left is estimated


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line.

    :param parser: of this command
    """
    sets = ", ".join(TASK_SETS)
    parser.add_argument("--tasks", default="classic", help=f"tasks and sets of tasks ({sets}), separated by commas")
    parser.add_argument("--algos", default="ours,sb3", help=f"separated by commas, of {','.join(ALGORITHMS)}")
    parser.add_argument("--seeds", type=seed_list, default="3", help=SEEDS_HELP)
    parser.add_argument("--steps", type=at_least(1), help="environment steps of every run; default: the task's own")
    parser.add_argument("--jobs", type=at_least(1), default=1, help="runs at a time")
    parser.add_argument(
        "--threads", type=at_least(1), help="of each run; default: what cores there are, shared by the jobs"
    )
    parser.add_argument("--device", default="cpu", help="where every side computes: cpu, cuda, ...")
    parser.add_argument("--out", type=output_folder, default="logs/head-to-head", help="folder of table and runs")


def run(arguments: argparse.Namespace) -> None:
    """Do what is not finished yet; the table grows with every evaluation.

    :param arguments: as declared by ``add_arguments``
    :raises SystemExit: for arguments that cannot be used, before any work; at the end, if a run has failed
    """
    out = arguments.out.resolve()
    console = Console(stderr=True)
    try:
        runs, lines = planned_runs(arguments, out)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    out.mkdir(parents=True, exist_ok=True)
    interrupt_when_terminated()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    times = (TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn())
    # Seldom redrawn: the runs need the cores.
    with Progress(
        *columns, *times, console=console, speed_estimate_period=_SPEED_PERIOD, refresh_per_second=2
    ) as progress:
        schedule = Schedule(
            runs, out, lambda line: progress.console.print(line, highlight=False, markup=False, soft_wrap=True)
        )
        bar = progress.add_task("", total=sum(one.steps for one in runs), completed=schedule.steps())

        def show_steps() -> None:
            ended = len(schedule.finished) + len(schedule.failed)
            progress.update(bar, completed=schedule.steps(), description=f"{ended} of {len(runs)} runs")

        try:
            schedule.work(arguments.jobs, show_steps)
        except KeyboardInterrupt:
            raise SystemExit(f"Interrupted; the same command goes on where {out} ends.") from None
    print(f"Table: {arguments.out / RESULTS}")
    if schedule.failed:
        raise SystemExit(f"Failed: {'; '.join(one.name for one in schedule.failed)}")


def planned_runs(arguments: argparse.Namespace, out: Path) -> tuple[list[Run], list[str]]:
    """Every combination of task, seed and algorithm that can be run here, in this order.

    Algorithms change fastest: what runs side by side is what is compared, and shares the machine alike.

    :param arguments: as declared by ``add_arguments``
    :param out: folder of all runs
    :return: the runs, and a line for everything that is left out
    :raises ValueError: for an argument that cannot be used, or if nothing is left
    """
    tasks = chosen_tasks(arguments.tasks, arguments.steps)
    algorithms = chosen_algorithms(arguments.algos)
    threads = arguments.threads or max(len(available_cores()) // arguments.jobs, 1)
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    obstacles = {(task, one): obstacle(task, one) for task in tasks for one in algorithms}
    lines = [f"{task.name}: without {one.name}, {why}." for (task, one), why in obstacles.items() if why is not None]
    runs = [
        Run(task.name, one.name, seed, task.steps, threads, arguments.jobs, arguments.device, command)
        for task in tasks
        for seed in arguments.seeds
        for one in algorithms
        if obstacles[task, one] is None
    ]
    if not runs:
        raise ValueError("\n".join([*lines, "Nothing is left to run."]))
    tabled = tabled_runs(out)
    if objections := [why for one in runs if (why := objection(out, one, tabled)) is not None]:
        raise ValueError("\n".join(objections))
    return runs, lines
