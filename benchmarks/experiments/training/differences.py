"""How far apart the means of a few seeds must lie to be told apart: Fisher's least significant difference.

Owns the spread between seeds and the bound; must not know what is compared, nor on which scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import pandas as pd
from scipy import stats

_CONFIDENCE = 0.975  # two-sided 5 %


@dataclass(frozen=True)
class Bound:
    """The difference below which nothing is told apart.

    :param least: None if there is no spread between seeds to judge by
    :param decimals: with which it is written
    """

    least: float | None
    decimals: int

    def judge(self, *margins: float) -> bool | None:
        """Whether all differences are what a claim says they are.

        :param margins: each positive if it is as the claim says
        :return: None if nothing is to the contrary, but one is not told apart
        """
        if self.least is None:
            return None
        if any(margin <= -self.least for margin in margins):
            return False
        return True if all(margin >= self.least for margin in margins) else None

    def note(self, holds: bool | None) -> str:
        """What to add to the numbers of a claim.

        :param holds: from ``judge``
        :return: a sentence with a space before it, or nothing
        """
        if holds is not None:
            return ""
        return f" Not told apart: {self.words()}."

    def words(self) -> str:
        """The bound in words."""
        if self.least is None:
            return "there is no spread between seeds to judge by"
        return f"means must differ by {self.least:.{self.decimals}f}"


def bound(
    runs: pd.DataFrame, column: str, n_seeds: Sequence[int], others: Sequence[int] | None = None, *, decimals: int
) -> Bound:
    """For two settings' means over tasks of means over seeds: t₀.₉₇₅ s √(Σ 1/n + Σ 1/n') / tasks.

    s is the standard deviation between seeds, pooled over all combinations of task and setting, with Σ (seeds − 1)
    degrees of freedom.

    :param runs: from which the spread is taken, with columns ``task``, ``setting`` and the scores
    :param column: of the scores
    :param n_seeds: n, of each task that the means are over
    :param others: n', the other setting's; None for as many
    :param decimals: with which the bound is written
    """
    cells = runs.groupby(["task", "setting"])[column].agg(["count", "var"])
    cells = cells[cells["count"] > 1]
    freedom = int((cells["count"] - 1).sum())
    if not freedom or not n_seeds:
        return Bound(None, decimals)
    deviation = sqrt(float(((cells["count"] - 1) * cells["var"]).sum()) / freedom)
    variance = sum(1 / n for n in (*n_seeds, *(n_seeds if others is None else others)))
    of_means = sqrt(variance) / len(n_seeds)
    return Bound(float(stats.t.ppf(_CONFIDENCE, freedom)) * deviation * of_means, decimals)
