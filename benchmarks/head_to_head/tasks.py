"""The tasks on which algorithms are compared: how long they are trained, and how they are evaluated.

Owns the budgets and the sets of tasks; must not know any algorithm or its hyperparameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_PAPER_STEPS = 10_000_000  # 40 million frames, as in the PPO paper's Atari experiments

# arXiv:1707.06347, table 6.
_ATARI_49 = (
    *("Alien", "Amidar", "Assault", "Asterix", "Asteroids", "Atlantis", "BankHeist", "BattleZone", "BeamRider"),
    *("Bowling", "Boxing", "Breakout", "Centipede", "ChopperCommand", "CrazyClimber", "DemonAttack", "DoubleDunk"),
    *("Enduro", "FishingDerby", "Freeway", "Frostbite", "Gopher", "Gravitar", "IceHockey", "Jamesbond", "Kangaroo"),
    *("Krull", "KungFuMaster", "MontezumaRevenge", "MsPacman", "NameThisGame", "Pitfall", "Pong", "PrivateEye"),
    *("Qbert", "Riverraid", "RoadRunner", "Robotank", "Seaquest", "SpaceInvaders", "StarGunner", "Tennis"),
    *("TimePilot", "Tutankham", "UpNDown", "Venture", "VideoPinball", "WizardOfWor", "Zaxxon"),
)


@dataclass(frozen=True)
class Task:
    """One environment and what is asked of an algorithm there.

    :param name: in the table, and id of the registered environment
    :param steps: environment steps to train for, over all environments
    :param interval: environment steps between two evaluations
    :param episodes: of an evaluation on the way
    :param final_episodes: of the evaluation at the end
    :param n_eval_envs: environments that share the episodes of an evaluation, at most
    :param deterministic: whether the most probable action is evaluated instead of a sample; rl_zoo3 samples on Atari
    :param needs: modules beyond this package's own requirements
    :param registration: module whose ``register()`` makes the environment known; None where importing rl_zoo3 does
    """

    name: str
    steps: int
    interval: int
    episodes: int = 10
    final_episodes: int = 100
    n_eval_envs: int = 10
    deterministic: bool = True
    needs: tuple[str, ...] = ()
    registration: str | None = None

    def evaluation_interval(self, steps: int) -> int:
        """Environment steps between two evaluations of a run, which has at least five intervals.

        :param steps: that the run is trained for
        :return: at least 1
        """
        return min(self.interval, max(steps // 5, 1))


def _control(name: str, steps: int, *, final_episodes: int = 100, needs: tuple[str, ...] = ()) -> Task:
    return Task(name, steps, interval=steps // 20, final_episodes=final_episodes, needs=needs)


def _atari(game: str, steps: int = _PAPER_STEPS) -> Task:
    return Task(
        f"{game}NoFrameskip-v4",
        steps,
        interval=100_000,
        episodes=4,
        final_episodes=20,
        n_eval_envs=4,
        deterministic=False,
        needs=("ale_py", "cv2"),
    )


_CLASSIC = (
    # Its score is 500 in every episode, or it has not been learned.
    _control("CartPole-v1", 100_000, final_episodes=20),
    _control("LunarLander-v3", 1_000_000, needs=("Box2D",)),
    _control("Pendulum-v1", 100_000),
    _control("Acrobot-v1", 1_000_000),
)
_MUJOCO = tuple(
    _control(name, 1_000_000, final_episodes=20, needs=("mujoco",)) for name in ("HalfCheetah-v5", "Hopper-v5")
)
_ATARI = (_atari("Pong", 1_500_000), _atari("Breakout", 1_000_000), _atari("Qbert", 1_000_000))
_MARIO = (
    Task(
        "SuperMarioBros1-1-v0",
        500_000,
        interval=25_000,
        episodes=4,
        final_episodes=20,
        n_eval_envs=4,
        # The level is the same every time: the most probable actions would play one game again and again.
        deterministic=False,
        needs=("gymnasium_mariobros", "cv2"),
        registration="benchmarks.mario",
    ),
)

TASK_SETS: dict[str, tuple[Task, ...]] = {
    "classic": _CLASSIC,
    "mujoco": _MUJOCO,
    "atari": _ATARI,
    "mario": _MARIO,
    "committed": _CLASSIC + _MUJOCO + _ATARI + _MARIO,
    "atari49": tuple(_atari(game) for game in _ATARI_49),
}
# Where two sets disagree on the steps, the committed ones count for a task that is named by itself.
TASKS: dict[str, Task] = {task.name: task for task in TASK_SETS["atari49"] + TASK_SETS["committed"]}


def chosen_tasks(names: str, steps: int | None) -> list[Task]:
    """The tasks that a user asked for.

    :param names: of tasks and sets of tasks, separated by commas
    :param steps: to train for instead of the tasks' own; None for these
    :return: each task once, in the order given
    :raises ValueError: for an unknown name, or a task asked for with different steps
    """
    chosen: dict[str, Task] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        if name not in TASK_SETS and name not in TASKS:
            raise ValueError(
                f"--tasks {names}: there is no task {name!r}; choose from the sets {', '.join(TASK_SETS)}, or from the "
                f"tasks {', '.join(task.name for task in TASK_SETS['committed'])} and the other games of atari49."
            )
        for task in TASK_SETS.get(name) or (TASKS[name],):
            asked = task if steps is None else replace(task, steps=steps)
            if chosen.setdefault(task.name, asked) != asked:
                raise ValueError(
                    f"--tasks {names}: {task.name} is asked for with {chosen[task.name].steps:,} and with "
                    f"{asked.steps:,} steps; give --steps."
                )
    if not chosen:
        raise ValueError(f"--tasks {names!r}: name at least one task.")
    return list(chosen.values())
