"""The learning curves as figures: what is drawn, in which colours, with which words, and that nothing overlaps."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from benchmarks.head_to_head.references import Reference
from benchmarks.report.pictures import STEPS, TIME, Horizontal, learning_curves
from tests.benchmarks.test_report_table import a_realistic_table, a_row, ends, loaded

REFERENCES = {
    "Acrobot-v1": (Reference(-73.5, 1_000_000, "a zoo"), Reference(-80.0, None, "a paper")),
    "SuperMarioBros1-1-v0": (Reference(45_450.0, 15_000_000, "a document"),),
}
ALL_SIDES = dict.fromkeys(("ours", "sb3", "a2c", "trpo", "sbx"), (5, 2, 10, 3, 5, 3, 1))


def legend_texts(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def means(axes: Axes) -> dict[str, tuple[str, str]]:
    """Colour and style of each labelled line."""
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    return {
        label: (to_hex(line.get_color()), str(line.get_linestyle()))
        for label, line in lines.items()
        if not label.startswith("_")
    }


def test_sides_are_told_apart_by_colour_and_line(tmp_path: Path) -> None:
    table = loaded(a_realistic_table({"sb3": (2,), "ours": (3,)}), tmp_path)
    figure = learning_curves(table, REFERENCES, STEPS)
    (axes,) = figure.axes
    assert means(axes) == {
        "ours": ("#0072b2", "-"),
        "stock SB3 PPO": ("#e69f00", "--"),
        "published PPO score": ("#666666", "--"),  # as matplotlib names every pattern of its own
    }
    assert len(axes.collections) == 2, "a band for each side"
    assert len(axes.get_lines()) == 5 + 2 + 1
    assert legend_texts(figure) == [
        *("ours", "stock SB3 PPO", "published PPO score", "mean over seeds", "single seed", "95 % bootstrap interval")
    ]


def test_words_of_a_panel(tmp_path: Path) -> None:
    table = loaded(a_realistic_table({"ours": (5,), "sb3": (2,)}), tmp_path)
    (against_steps,) = learning_curves(table, REFERENCES, STEPS).axes
    assert against_steps.get_title().replace("\N{NO-BREAK SPACE}", " ").splitlines() == [
        "Acrobot-v1",
        "seeds: ours 4+1, sb3 2 (+: unfinished)",
        "published: -73.5 after 1 M steps",
    ]
    assert against_steps.get_xlabel() == "environment steps (millions)"
    assert against_steps.get_ylabel() == "return"
    figure = learning_curves(table, {}, TIME)
    assert figure.axes[0].get_xlabel() == "training time (min)"
    assert figure.get_suptitle() == (
        "Evaluation return against training time, without evaluations, checkpoints and set-up"
    )
    assert "published PPO score" not in legend_texts(figure)


def test_units_of_the_axes(tmp_path: Path) -> None:
    rows = ends("A", {"ours": [1.0]})  # 2,000 steps in 20 s
    for against, last in ((STEPS, 2.0), (TIME, 20 / 60)):
        (axes,) = learning_curves(loaded(rows, tmp_path), {}, against).axes
        assert axes.get_lines()[-1].get_xdata() == pytest.approx([last / 2, last])
    assert STEPS.unit(999_999) == (1e3, "environment steps (thousands)")


def test_a_single_seed_has_no_band(tmp_path: Path) -> None:
    (axes,) = learning_curves(loaded(ends("A", {"ours": [1.0]}), tmp_path), {}, STEPS).axes
    assert len(axes.collections) == 0


def test_a_single_evaluation_is_a_dot(tmp_path: Path) -> None:
    (axes,) = learning_curves(loaded([a_row("A", "ours", 0, 10, 1.0)], tmp_path), {}, STEPS).axes
    assert {line.get_marker() for line in axes.get_lines()} == {"."}


def test_a_published_score_is_not_drawn_on_the_border(tmp_path: Path) -> None:
    (axes,) = learning_curves(
        loaded(ends("A", {"ours": [1.0]}), tmp_path), {"A": (Reference(1.5, None, "x"),)}, STEPS
    ).axes
    assert axes.get_ylim() == pytest.approx((-0.05, 1.5 + 0.05 * 1.1))  # 1.1 of the curve, with its margins


def test_scores_in_another_unit_are_not_drawn(tmp_path: Path) -> None:
    references = {"A": (Reference(1.5, None, "x", comparable=False),)}
    (axes,) = learning_curves(loaded(ends("A", {"ours": [1.0]}), tmp_path), references, STEPS).axes
    assert axes.get_title().splitlines() == ["A", "seeds: ours\N{NO-BREAK SPACE}1"]
    assert "published PPO score" not in means(axes)


def test_a_published_score_far_off_does_not_flatten_the_curves(tmp_path: Path) -> None:
    table = loaded(a_realistic_table({"ours": (0, 0, 0, 0, 0, 0, 1)}), tmp_path)
    (axes,) = learning_curves(table, REFERENCES, STEPS).axes
    assert axes.get_title().splitlines()[1:] == [
        "seeds: ours\N{NO-BREAK SPACE}1",
        "published: 45,450.0 after 15 M steps (off scale)",
    ]
    assert axes.get_ylim()[1] < 4_000


@pytest.mark.parametrize("against", [STEPS, TIME])
@pytest.mark.parametrize("n_tasks", [1, 2, 3, 7])
def test_nothing_overlaps_or_leaves_the_picture(n_tasks: int, against: Horizontal, tmp_path: Path) -> None:
    numbers = {name: of_tasks[:n_tasks] for name, of_tasks in ALL_SIDES.items()}
    figure = learning_curves(loaded(a_realistic_table(numbers, n_evaluations=5), tmp_path), REFERENCES, against)
    assert len(figure.axes) == n_tasks
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes] + [figure.legends[0].get_window_extent()]
    for box in boxes:
        assert box is not None
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1
    assert not any(one.overlaps(other) for one, other in combinations(filter(None, boxes), 2))


def test_more_than_nine_tasks(tmp_path: Path) -> None:
    rows = [row for number in range(10) for row in ends(f"task {number}", {"ours": [1.0]})]
    figure = learning_curves(loaded(rows, tmp_path), {}, STEPS)
    assert [axes.get_title().splitlines()[0] for axes in figure.axes] == [f"task {number}" for number in range(10)]
    assert figure.axes[3].get_position().y0 == figure.axes[0].get_position().y0, "four side by side"
