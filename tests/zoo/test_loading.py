"""Owns what is done with a trained agent: `rl_zoo3.enjoy`, its video and its plots."""

import json
import pickle
from pathlib import Path

from tests.zoo.conftest import Run
from tests.zoo.processes import python_output, zoo_output

# A Matplotlib backend whose `show` writes down what a window would have shown.
SHOWING_BACKEND = """
import json
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas, FigureManagerBase
from matplotlib._pylab_helpers import Gcf

class FigureManager(FigureManagerBase):
    @classmethod
    def pyplot_show(cls, **kwargs):
        (manager,) = Gcf.get_all_fig_managers()
        figure = manager.canvas.figure
        (axes,) = figure.axes
        figure.savefig("plot.png")
        with open("lines.json", "w") as file:
            json.dump([[line.get_label(), len(line.get_xdata())] for line in axes.get_lines()], file)

FigureCanvas.manager_class = FigureManager
"""


def test_enjoy_plays_the_last_agent(trained: Run, tmp_path: Path) -> None:
    arguments = ["--env", "CartPole-v1", "-f", trained.logs, "--no-render", "-n", 600]
    output = zoo_output("enjoy", *arguments, folder=tmp_path)
    assert f"Loading {trained.agent}" in output
    assert "Mean reward: " in output


def test_enjoy_plays_the_best_agent(trained: Run, tmp_path: Path) -> None:
    arguments = ["--env", "CartPole-v1", "-f", trained.logs, "--no-render", "-n", 600, "--load-best"]
    output = zoo_output("enjoy", *arguments, folder=tmp_path)
    assert f"Loading {trained.folder / 'best_model.zip'}" in output
    assert "Mean reward: " in output


def test_record_video_writes_a_film(trained: Run, tmp_path: Path) -> None:
    zoo_output("record_video", "--env", "CartPole-v1", "-f", trained.logs, "-o", "films", "-n", 20, folder=tmp_path)
    (film,) = (tmp_path / "films").glob("*.mp4")
    assert film.read_bytes()[4:8] == b"ftyp"


def test_plot_train_draws_the_learning_curve(trained: Run, tmp_path: Path) -> None:
    (tmp_path / "showing.py").write_text(SHOWING_BACKEND)
    arguments = ["-a", "myppo", "-e", "CartPole-v1", "-f", trained.logs, "-w", 2]
    python_output("-m", "rl_zoo3.plots.plot_train", *arguments, folder=tmp_path, MPLBACKEND="module://showing")
    ((label, points),) = json.loads((tmp_path / "lines.json").read_text())
    episodes = sum(
        len(path.read_text().splitlines()) - 2 for path in trained.folder.glob("*.monitor.csv")
    )  # two header lines
    assert label == "CartPole-v1_1"
    assert points == episodes - 1  # a window of two
    assert (tmp_path / "plot.png").stat().st_size > 0


def test_all_plots_gathers_the_evaluations(trained: Run, tmp_path: Path) -> None:
    arguments = ["-a", "myppo", "-e", "CartPole-v1", "-f", trained.logs, "--no-display", "-o", "gathered"]
    output = python_output("-m", "rl_zoo3.plots.all_plots", *arguments, folder=tmp_path)
    assert "MYPPO" in output
    gathered = pickle.loads((tmp_path / "gathered.pkl").read_bytes())
    result = gathered["CartPole-v1"][f"MYPPO-{trained.logs}"]
    assert list(result["timesteps"]) == [256, 512]
    assert result["mean"].shape == (2,)
