"""Owns what rl_zoo3 is told: the algorithm, its search space and its default configuration.
Must not import rl_zoo3 while it is imported itself: the autoload hook calls it in the middle of that.

Every function may be called any number of times, and leaves alone what somebody else registered.
"""

import functools
import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sb3_ppo_from_scratch.algorithm import PPO
from sb3_ppo_from_scratch.zoo.configuration import default_configuration
from sb3_ppo_from_scratch.zoo.native_atari import add_native_atari

if TYPE_CHECKING:
    from rl_zoo3.exp_manager import ExperimentManager
    from stable_baselines3.common.base_class import BaseAlgorithm

ALGORITHM = "myppo"


def register() -> None:
    """Import what rl_zoo3 keeps its tables in, and complete them; raises whatever goes wrong there."""
    for name in ("rl_zoo3.utils", "rl_zoo3.hyperparams_opt", "rl_zoo3.exp_manager"):
        register_in(importlib.import_module(name))


def register_in(module: ModuleType) -> None:
    """Complete the tables of one module of rl_zoo3.

    :param module: rl_zoo3.utils, rl_zoo3.hyperparams_opt or rl_zoo3.exp_manager, imported completely
    :raises ValueError: for any other module
    """
    if module.__name__ == "rl_zoo3.utils":
        add_algorithm(module.ALGOS)
    elif module.__name__ == "rl_zoo3.hyperparams_opt":
        add_search_space(module.HYPERPARAMS_SAMPLER, module.HYPERPARAMS_CONVERTER)
    elif module.__name__ == "rl_zoo3.exp_manager":
        add_default_configuration(module.ExperimentManager)
        add_native_atari(module.ExperimentManager, ALGORITHM)
    else:
        raise ValueError(f"{module.__name__} has no table to register in")


def add_algorithm(algorithms: "dict[str, type[BaseAlgorithm]]") -> None:
    """Offer PPO under our name, unless the name is taken."""
    algorithms.setdefault(ALGORITHM, PPO)


def add_search_space(samplers: dict[str, Any], converters: dict[str, Any]) -> None:
    """Offer the search space under our name, as a pair: a converter only undoes its own sampler."""
    if ALGORITHM in samplers or ALGORITHM in converters:
        return
    # Optuna, imported there, is of no use to a process that only loads an agent.
    from sb3_ppo_from_scratch.zoo import search_space

    samplers[ALGORITHM] = search_space.sample_ppo_params
    converters[ALGORITHM] = search_space.convert_ppo_params


def add_default_configuration(manager: "type[ExperimentManager]") -> None:
    """Let rl_zoo3 find a configuration of ours where it would otherwise look for a file it does not have."""
    construct = manager.__init__
    if hasattr(construct, "knows_myppo"):
        return

    @functools.wraps(construct)
    def construct_with_default(self: "ExperimentManager", *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        given = inspect.signature(construct).bind(self, *args, **kwargs).arguments.get("config")
        if not given and self.algo == ALGORITHM:
            use_default_configuration(self)

    construct_with_default.knows_myppo = True  # type: ignore[attr-defined]
    manager.__init__ = construct_with_default  # type: ignore[method-assign]


def use_default_configuration(manager: "ExperimentManager") -> None:
    """Choose the configuration of an experiment whose user named none.

    Nothing changes if the user put a file of that name where rl_zoo3 looks, or registered another
    algorithm under our name: our settings are tuned for PPO and its subclasses only.
    """
    from rl_zoo3.utils import ALGOS

    looked_for = Path(manager.config)
    if looked_for.exists() or not issubclass(ALGOS[ALGORITHM], PPO):
        return
    env_id = manager.env_name.gym_id
    chosen = default_configuration(env_id, manager.is_atari(env_id), looked_for.with_name("ppo.yml"))
    manager.config = str(chosen)
