"""Counts outcomes and compares those of two implementations.

Must not know how the outcomes were obtained.
"""

from collections import Counter
from collections.abc import Mapping

Outcomes = Mapping[str, str]


def summary(outcomes: Outcomes) -> str:
    """The counts, in the words of pytest's closing line."""
    counts = Counter(outcomes.values())
    return ", ".join(f"{counts[word]} {word}" for word in ("passed", "skipped", "failed"))


def not_passed(outcomes: Outcomes) -> list[str]:
    """Tests with any other outcome than `passed`, sorted."""
    return sorted(test for test, outcome in outcomes.items() if outcome != "passed")


def regressions(ours: Outcomes, stock: Outcomes) -> list[str]:
    """Tests that pass with the stock implementation and do not with ours, sorted.

    :param ours: outcome of every test
    :param stock: outcomes of at least the tests that did not pass with ours
    """
    passed_by_stock = (test for test, outcome in stock.items() if outcome == "passed")
    return sorted(test for test in passed_by_stock if ours.get(test) != "passed")
