"""The algorithms that are compared, and what a machine lacks to run one on a task.

Owns where each comes from; must not know hyperparameters, nor how a run goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from benchmarks.head_to_head.hyperparameters import entry_of
from benchmarks.head_to_head.tasks import Task

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

# The extra of this package that brings a module.
_EXTRAS = {
    "ale_py": "atari",
    "cv2": "atari",
    "Box2D": "box2d",
    "gymnasium_mariobros": "mario",
    "mujoco": "mujoco",
    "sb3_contrib": "zoo",
    "sbx": "sbx",
}


@dataclass(frozen=True)
class Algorithm:
    """One side of the comparison.

    :param name: in the table
    :param module: that has the class
    :param class_name: in that module
    :param entries: which hyperparameters it takes: "myppo", the same for every PPO, or the name of rl_zoo3's file
    :param needs: modules beyond this package's own requirements
    """

    name: str
    module: str
    class_name: str = "PPO"
    entries: str = "myppo"
    needs: tuple[str, ...] = ()

    def load_class(self) -> type[OnPolicyAlgorithm]:
        """Import the class.

        :return: a Stable-Baselines3 algorithm
        """
        found: type[OnPolicyAlgorithm] = getattr(import_module(self.module), self.class_name)
        return found


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("ours", "sb3_ppo_from_scratch"),
        Algorithm("sb3", "stable_baselines3"),
        Algorithm("a2c", "stable_baselines3", "A2C", "a2c"),
        Algorithm("trpo", "sb3_contrib", "TRPO", "trpo", needs=("sb3_contrib",)),
        Algorithm("sbx", "sbx", needs=("sbx",)),
    )
}


def chosen_algorithms(names: str) -> list[Algorithm]:
    """The algorithms that a user asked for.

    :param names: separated by commas
    :return: each once, in the order given
    :raises ValueError: for an unknown name, or none
    """
    wanted = list(filter(None, (part.strip() for part in names.split(","))))
    for name in wanted or [""]:
        if name not in ALGORITHMS:
            raise ValueError(f"--algos {names}: there is no algorithm {name!r}; choose from {', '.join(ALGORITHMS)}.")
    return [ALGORITHMS[name] for name in dict.fromkeys(wanted)]


def obstacle(task: Task, algorithm: Algorithm) -> str | None:
    """Why an algorithm cannot be run on a task here.

    :param task: to train on
    :param algorithm: to train
    :return: a reason with its remedy; None if it can
    """
    for module in (*algorithm.needs, *task.needs):
        if find_spec(module) is None:
            return f"{module} is not installed (pip install 'sb3_ppo_from_scratch[{_EXTRAS[module]}]')"
    try:
        entry_of(task.name, algorithm.entries)
    except KeyError as error:
        return str(error.args[0])
    return None
