"""The sides of the comparison as a reader meets them: their names, colours and lines.

Owns what is the same in every picture and table; must not know any result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.learning_curve import BLUE, GREEN, ORANGE

OURS, STOCK = "ours", "sb3"


@dataclass(frozen=True)
class Algorithm:
    """How one side is shown.

    :param label: for legends and tables
    :param color: of Okabe and Ito's palette
    :param line: matplotlib's line style, so that the sides differ in print without colours as well
    :param is_ppo: so that published scores of PPO may stand in its line
    """

    label: str
    color: str
    line: Any
    is_ppo: bool = True


# By the name in the table, in the order in which they are listed.
ALGORITHMS = {
    OURS: Algorithm("ours", BLUE, "solid"),
    STOCK: Algorithm("stock SB3 PPO", ORANGE, "dashed"),
    "a2c": Algorithm("SB3 A2C", GREEN, "dashdot", is_ppo=False),
    "trpo": Algorithm("sb3-contrib TRPO", "#CC79A7", "dotted", is_ppo=False),
    "sbx": Algorithm("SBX PPO (JAX)", "#000000", (0, (5, 1, 1, 1, 1, 1))),
}
