"""The examination as a table and, where something is wrong, its likely cause.

Owns wording and layout; must not judge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from sb3_ppo_from_scratch.check.examination import Examination
from sb3_ppo_from_scratch.core.health import GradientNorms, RolloutStatistics

Row = tuple[str, str, str]


def show(result: Examination, title: str, console: Console) -> None:
    """Print the table, and below it what was found.

    :param result: of an examination
    :param title: of the table
    :param console: to print on
    """
    table = Table(title=title)
    table.add_column("quantity")
    table.add_column("value", justify="right")
    table.add_column("what to expect")
    for section in _sections(result):
        for row in section:
            table.add_row(*row)
        table.add_section()
    console.print(table)
    for i, finding in enumerate(result.findings):
        console.print(f"[bold red]{'Likely cause' if i == 0 else 'Also'}: {finding.cause}[/]")
        console.print(f"  {finding.observation}\n  Try: {finding.remedy}", markup=False)
    if not result.findings:
        console.print("[bold green]Nothing wrong in sight.[/]")


def _sections(result: Examination) -> Iterator[list[Row]]:
    if result.statistics is not None:
        yield _rollout(result.statistics)
    if result.episodes is not None:
        length = result.episodes.mean_length
        yield [("episode length", "none ended" if math.isnan(length) else f"{length:.1f}", "some horizons 1/(1 − γ)")]
    if result.probe is not None:
        first = result.probe.first
        yield [
            ("mean ratio before the update", f"{first.ratio_mean:.6f}", "1: the policy that acted"),
            ("largest |ratio − 1|", f"{first.ratio_deviation:.1e}", "rounding"),
            ("KL before it, k3", f"{first.approx_kl:.1e}", "0"),
            ("KL before it, k1", f"{first.approx_kl_k1:.1e}", "0"),
            ("clip fraction before it", f"{first.clip_fraction:.1%}", "0"),
            ("entropy", f"{first.entropy:.3f} of {first.max_entropy:.3f}", "nats, of a uniform policy's"),
            ("room explored", f"{first.entropy_share:.1%}", "high when new, falls slowly"),
        ]
        yield _gradients(result.probe.gradients)
    if result.outcome is not None:
        yield [
            ("KL after the update, k3", f"{result.outcome.approx_kl:.4f}", "about 0.01"),
            ("KL after it, k1", f"{result.outcome.approx_kl_k1:.4f}", "like k3, but noisier"),
            ("clip fraction after it", f"{result.outcome.clip_fraction:.1%}", "above 0, below 30%"),
        ]


def _rollout(statistics: RolloutStatistics) -> list[Row]:
    spread = f"{statistics.return_mean:.3g} ± {statistics.return_std:.3g}"
    return [
        ("reward, root mean square", f"{statistics.reward_rms:.3g}", "order 1"),
        ("advantages", f"{statistics.advantage_mean:.3g} ± {statistics.advantage_std:.3g}", "order 1"),
        ("largest |advantage|", f"{statistics.advantage_max:.3g}", "some deviations"),
        ("returns", spread, "order 1"),
        ("explained variance", f"{statistics.explained_variance:.2f}", "0 when new, then above 0.3"),
    ]


def _gradients(gradients: GradientNorms) -> list[Row]:
    rows = [
        ("actor gradient norm", f"{gradients.actor:.3g}", "order 0.1"),
        ("critic gradient norm", f"{gradients.critic:.3g}", "order 1"),
        ("joint clip factor", f"{gradients.clip_factor:.3g}", "above 0.01"),
        ("effective actor rate", f"{gradients.effective_learning_rate:.2g}", "learning rate × factor"),
    ]
    if gradients.shared_critic > 0:
        norms = f"{gradients.shared_actor:.2g}, {gradients.shared_critic:.2g}"
        rows.append(("on shared layers", norms, "actor, critic: comparable"))
    return rows
