"""Scores of PPO that others have published, for the tasks of this comparison.

Owns numbers that were read in their sources; must not know any result of this project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ZOO = "rl_zoo3, benchmark.md: https://github.com/DLR-RM/rl-baselines3-zoo/blob/master/benchmark.md"
_PAPER = "Schulman et al. 2017, table 6: https://arxiv.org/abs/1707.06347"
_CLEANRL = "CleanRL, ppo_atari.py: https://docs.cleanrl.dev/rl-algorithms/ppo/"
_CLEANRL_CONTROL = "CleanRL, ppo.py: https://docs.cleanrl.dev/rl-algorithms/ppo/"
_CLEANRL_ENVPOOL = (
    "CleanRL, ppo_atari_envpool_xla_jax.py, EnvPool's {game}-v5: https://github.com/vwxyzjn/cleanrl/blob/master/docs/"
    "rl-algorithms/ppo/ppo_atari_envpool_xla_jax/atari_returns.md"
)
_TUTORIAL = "a tutorial, PPO from Scratch, 3 seeds"
_MARIO_TUTORIAL = (
    "a tutorial, PPO past DQN's ceiling: {algorithm} on Mario 1-1, with rewards of its own "
    "(no return exceeds 3,121 here)"
)
_ATARI_STEPS = 10_000_000


@dataclass(frozen=True)
class Reference:
    """One published score.

    :param score: mean return
    :param steps: environment steps it was trained for; None where the source does not say
    :param source: who published it, and where
    :param comparable: whether scores of this comparison are in the same unit, so that one may stand beside the other
    """

    score: float
    steps: int | None
    source: str
    comparable: bool = True


# Games as in the paper's table 6: its PPO, then CleanRL's on EnvPool, which plays the same games by other ids.
_ATARI: dict[str, tuple[float, float]] = {
    "Alien": (1850.3, 1744.76),
    "Amidar": (674.6, 617.137),
    "Assault": (4971.9, 5734.04),
    "Asterix": (4532.5, 3341.9),
    "Asteroids": (2097.5, 1669.3),
    "Atlantis": (2311815.0, 3.92929e6),
    "BankHeist": (1280.6, 1192.68),
    "BattleZone": (17366.7, 24937.9),
    "BeamRider": (1590.0, 2447.84),
    "Bowling": (40.1, 44.0681),
    "Boxing": (94.6, 92.0554),
    "Breakout": (274.8, 431.795),
    "Centipede": (4386.4, 2910.69),
    "ChopperCommand": (3516.3, 5555.84),
    "CrazyClimber": (110202.0, 116114.0),
    "DemonAttack": (11378.4, 22824.8),
    "DoubleDunk": (-14.9, -8.56781),
    "Enduro": (758.3, 1262.79),
    "FishingDerby": (17.8, 21.6222),
    "Freeway": (32.5, 33.1075),
    "Frostbite": (314.2, 904.346),
    "Gopher": (2932.9, 11369.6),
    "Gravitar": (737.2, 1141.95),
    "IceHockey": (-4.2, -4.91917),
    "Jamesbond": (560.7, 504.105),
    "Kangaroo": (9928.7, 7281.59),
    "Krull": (7942.3, 9384.7),
    "KungFuMaster": (23310.3, 26594.5),
    "MontezumaRevenge": (42.0, 0.240385),
    "MsPacman": (2096.5, 2461.62),
    "NameThisGame": (6254.9, 5442.67),
    "Pitfall": (-32.9, -0.0801282),
    "Pong": (20.7, 20.309),
    "PrivateEye": (69.5, 99.5283),
    "Qbert": (14293.3, 16430.7),
    "Riverraid": (8393.6, 8297.21),
    "RoadRunner": (25076.0, 19342.2),
    "Robotank": (5.5, 15.45),
    "Seaquest": (1204.5, 1230.02),
    "SpaceInvaders": (942.5, 1162.16),
    "StarGunner": (32689.0, 53535.9),
    "Tennis": (-14.8, -15.0446),
    "TimePilot": (4342.0, 6224.87),
    "Tutankham": (254.4, 238.419),
    "UpNDown": (95445.0, 430177.0),
    "Venture": (0.0, 0.0),
    "VideoPinball": (37389.0, 42975.3),
    "WizardOfWor": (4185.3, 6247.83),
    "Zaxxon": (5008.7, 6015.8),
}
# PPO of rl_zoo3, with the settings of this comparison.
_ATARI_ZOO = {
    "Asteroids": 2156.174,
    "BeamRider": 3397.0,
    "Breakout": 398.033,
    "Enduro": 996.364,
    "Pong": 20.989,
    "Qbert": 15627.108,
    "RoadRunner": 40680.645,
    "Seaquest": 1783.636,
    "SpaceInvaders": 960.331,
}
_ATARI_CLEANRL = {"BeamRider": 1915.93, "Breakout": 414.66, "Pong": 20.36}


def _atari_references(game: str) -> tuple[Reference, ...]:
    paper, envpool = _ATARI[game]
    scores = (
        (_ATARI_ZOO.get(game), _ZOO),
        (paper, _PAPER),
        (_ATARI_CLEANRL.get(game), _CLEANRL),
        (envpool, _CLEANRL_ENVPOOL.format(game=game)),
    )
    return tuple(Reference(score, _ATARI_STEPS, source) for score, source in scores if score is not None)


# The first of each task is that of rl_zoo3, whose settings are those of this comparison, where it has one.
REFERENCES: dict[str, tuple[Reference, ...]] = {
    "CartPole-v1": (
        Reference(500.0, 100_000, _ZOO),
        Reference(500.0, None, _TUTORIAL),
        Reference(490.04, 500_000, _CLEANRL_CONTROL),
    ),
    "LunarLander-v3": (Reference(242.119, 1_000_000, f"{_ZOO} (LunarLander-v2)"), Reference(238.8, None, _TUTORIAL)),
    "Pendulum-v1": (Reference(-172.225, 100_000, _ZOO),),
    "Acrobot-v1": (Reference(-73.506, 1_000_000, _ZOO), Reference(-86.36, 500_000, _CLEANRL_CONTROL)),
    "HalfCheetah-v5": (Reference(5819.099, 1_000_000, f"{_ZOO} (HalfCheetah-v3)"),),
    "Hopper-v5": (Reference(2410.435, 1_000_000, f"{_ZOO} (Hopper-v3)"),),
    "SuperMarioBros1-1-v0": (
        Reference(4545.0, 15_000_000, _MARIO_TUTORIAL.format(algorithm="PPO"), comparable=False),
        Reference(2774.0, None, _MARIO_TUTORIAL.format(algorithm="DQN, where it stays,"), comparable=False),
    ),
    **{f"{game}NoFrameskip-v4": _atari_references(game) for game in _ATARI},
}


def comparable(references: Mapping[str, Sequence[Reference]], task: str) -> list[Reference]:
    """Published scores beside which a result may stand.

    :param references: by task
    :param task: name
    :return: none where all of a task are in another unit
    """
    return [one for one in references.get(task, ()) if one.comparable]
