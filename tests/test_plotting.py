"""What the figures show, read back from the drawn objects."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.discrete.methods import METHODS
from privacyfunnel.errors import DataFileError, InvalidInputError, MissingDependencyError
from privacyfunnel.joint import Joint
from privacyfunnel.plotting import COLOURS, METHOD_LOOKS, looks, plain, plot_frontier, save_figure
from privacyfunnel.tradeoff import Frontier, TradeoffPoint

JOINT = Joint(np.array([[0.3, 0.05], [0.05, 0.3], [0.1, 0.2]]))


def frontier(n_methods: int = 2, n_points: int = 6, lines=()) -> Frontier:
    rng = np.random.default_rng(n_methods)
    u = rng.uniform(0.1, JOINT.entropy_x, (n_methods, n_points))
    v = JOINT.mutual_information * (u / JOINT.entropy_x) ** rng.uniform(1, 2, (n_methods, n_points))
    points = [
        TradeoffPoint(u[i, k], v[i, k], f"method-{i}") for i in range(n_methods) for k in range(n_points)
    ]
    return Frontier.for_joint(JOINT, points, lines)


def legend(figure) -> list[str]:
    drawn = figure.axes[0].get_legend()
    return [] if drawn is None else [text.get_text() for text in drawn.get_texts()]


def line_through(figure, corners) -> bool:
    """Whether some drawn line is exactly the polygon of these corners."""
    wanted = np.array([(p.utility, p.leakage) for p in corners])
    return any(np.array_equal(line.get_xydata(), wanted) for line in figure.axes[0].get_lines())


@pytest.mark.parametrize("n_methods", [1, 2, 8, 11])
def test_each_method_has_its_envelope_and_name(n_methods):
    front = frontier(n_methods)
    figure = plot_frontier(front)
    for method in front.methods:
        assert line_through(figure, front.select(method).envelope())
    assert legend(figure) == [*front.methods, "X or nothing, at random"]
    lines = figure.axes[0].get_legend().get_lines()[:n_methods]
    looks = {(line.get_color(), line.get_linestyle()) for line in lines}
    assert len(looks) == n_methods


def test_curves_that_coincide_are_all_seen():
    """Dashes that take turns, and rings around the marks of the first."""
    front = frontier(1)
    figure = plot_frontier({"one": front, "two": front, "three": front, "other": frontier(2)})
    same = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) > 2]
    lines = [line for line in same if line.get_linestyle() != "None"]
    dashed = [line for line in lines if line.is_dashed()]
    assert len(dashed) >= 2
    marks = [
        line
        for line in figure.axes[0].get_lines()
        if line.get_linestyle() == "None" and line.get_marker() in "os^"
    ]
    sizes = [line.get_markersize() for line in marks if len(line.get_xdata())]
    assert len(set(sizes)) == len(sizes)


def test_colours_are_distinct_in_lightness_or_hue():
    assert len(set(COLOURS)) == len(COLOURS) == 8


def test_a_mapping_draws_one_curve_each_under_its_name():
    fronts = {"train": frontier(2), "test": frontier(3)}
    figure = plot_frontier(fronts)
    assert legend(figure)[:2] == ["train", "test"]
    for front in fronts.values():
        assert line_through(figure, front.envelope())


@pytest.mark.parametrize("size", [(5.2, 4.5), (3.5, 3.5)])
def test_the_legend_lies_over_nothing(size):
    figure = plot_frontier(frontier(8, 300), size=size)
    figure.draw_without_rendering()
    (ax,) = figure.axes
    names = ax.get_legend().get_window_extent()
    assert names.y1 <= ax.xaxis.get_tightbbox().y0
    assert names.y0 >= 0


def test_a_label_is_one_printed_line():
    assert plain("a\n$b$\x00") == r"a \$b\$" + "\ufffd"


def test_limits_and_units_are_marked():
    axes = plot_frontier(frontier(), title="A title").axes[0]
    texts = " ".join(text.get_text() for text in axes.texts)
    assert f"{JOINT.entropy_x:.4g}" in texts
    assert f"{JOINT.mutual_information:.4g}" in texts
    assert "bit" in axes.get_xlabel()
    assert "bit" in axes.get_ylabel()
    assert axes.get_title(loc="left") == "A title"
    assert axes.get_xlim()[0] == axes.get_ylim()[0] == 0


def test_other_measures_have_their_own_words():
    asked = {"utility": pf.Distance([0.0, 1.0, 3.0]), "leakage": "success"}
    front = pf.frontier(JOINT, n_points=3, rng=0, n_jobs=1, **asked)
    axes = plot_frontier(front).axes[0]
    assert axes.get_xlabel() == "squared distance taken away"
    assert axes.get_ylabel() == "share of people guessed right"
    assert not any("I(" in text.get_text() or "H(" in text.get_text() for text in axes.texts)
    (chance,) = [line for line in axes.get_lines() if line.get_label() == "X or nothing, at random"]
    assert chance.get_ydata()[0] == front.least_leakage == JOINT.p_y.max()
    assert 0 < axes.get_ylim()[0] < front.least_leakage
    with pytest.raises(InvalidInputError, match="are measured differently; draw one figure for each"):
        plot_frontier([front, frontier()])
    three = Joint(np.array([[0.2, 0.05, 0.1], [0.05, 0.2, 0.1], [0.1, 0.1, 0.1]]))
    among = pf.frontier(three, utility=asked["utility"], n_points=2, rng=0, n_jobs=1)
    assert "proved impossible with these answers" in legend(plot_frontier(among))


def test_impossible_region_only_with_a_certified_bound():
    assert "proved impossible" not in legend(plot_frontier(frontier()))
    lines = [(0.05, 0.0), (0.4, -0.3)]
    figure = plot_frontier(frontier(lines=lines))
    assert "proved impossible" in legend(figure)
    axes = figure.axes[0]
    area = next(c for c in axes.collections if c.get_label() == "proved impossible")
    outline = area.get_paths()[0].vertices
    edge = np.array([max(0.0, *(value + beta * u for beta, value in lines)) for u in outline[:, 0]])
    assert np.all((np.abs(outline[:, 1] - edge) < 1e-12) | (outline[:, 1] == 0))
    assert outline[:, 1].max() == pytest.approx(edge.max())


def test_points_can_be_left_out():
    crowded = frontier(1, 40)
    assert sum(len(c.get_offsets()) for c in plot_frontier(crowded).axes[0].collections) > 0
    assert not plot_frontier(crowded, points=False).axes[0].collections


@pytest.mark.parametrize(
    "front",
    [
        Frontier.for_joint(JOINT),
        Frontier.for_joint(Joint([[0.4, 0.6]])),
        Frontier.for_joint(Joint(np.full((2, 2), 0.25))),
        Frontier([TradeoffPoint(0.5, 0.2, "learned")]),
        Frontier(()),
        Frontier.for_joint(JOINT, [TradeoffPoint(0.01 * i, 1e-4 * i**1.7, "many") for i in range(1, 100)]),
    ],
    ids=["trivial", "one-letter", "independent", "no-limits", "empty", "many-corners"],
)
def test_unusual_frontiers_can_be_drawn(front, tmp_path):
    save_figure(plot_frontier(front), tmp_path / "f.png", dpi=50)


def test_given_axes_are_drawn_on():
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert frontier().plot(ax=right) is figure
    assert not left.get_lines()
    assert right.get_lines()


def test_saved_files_are_whole_and_reproducible(tmp_path):
    starts = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF", "svg": b"<?xml"}
    for ending, start in starts.items():
        path = tmp_path / f"f.{ending}"
        save_figure(plot_frontier(frontier()), path)
        assert path.read_bytes().startswith(start)
    first = (tmp_path / "f.png").read_bytes()
    save_figure(plot_frontier(frontier()), tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes() == first
    assert len(list(tmp_path.iterdir())) == 3


def test_what_cannot_be_saved_leaves_nothing(tmp_path):
    figure = plot_frontier(frontier())
    with pytest.raises(InvalidInputError, match=r"\.png"):
        save_figure(figure, tmp_path / "f.jpeg2")
    with pytest.raises(DataFileError):
        save_figure(figure, tmp_path / "missing" / "f.png")
    assert not list(tmp_path.iterdir())


def test_nothing_to_draw():
    with pytest.raises(InvalidInputError, match="at least one"):
        plot_frontier([])


def test_missing_matplotlib_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'privacyfunnel\[plot\]'"):
        plot_frontier(frontier())


def test_threads_draw_the_same_as_one(tmp_path):
    save_figure(plot_frontier(frontier()), tmp_path / "one.png", dpi=60)
    expected = (tmp_path / "one.png").read_bytes()
    paths = [tmp_path / f"{i}.png" for i in range(4)]

    def draw(path):
        save_figure(plot_frontier(frontier()), path, dpi=60)

    threads = [threading.Thread(target=draw, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(path.read_bytes() == expected for path in paths)


def test_drawing_leaves_global_state_alone_and_importing_stays_light():
    code = (
        "import sys\n"
        "from privacyfunnel.tradeoff import Frontier\n"
        "import privacyfunnel.plotting\n"
        "assert 'matplotlib' not in sys.modules\n"
        "Frontier(()).plot()\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def colour_of(figure, name: str) -> str:
    (found,) = {line.get_color() for line in figure.axes[0].get_lines() if line.get_label() == name}
    return found


def test_a_method_has_one_colour_in_every_figure():
    assert set(METHOD_LOOKS) == set(METHODS) - {"auto"}
    assert len(METHOD_LOOKS) == len(COLOURS)
    points = [TradeoffPoint(0.5, 0.1, "one")]
    names = ["another", "greedy", "dca-ridge", "a third"]
    both = plot_frontier({name: Frontier.for_joint(JOINT, points) for name in names})
    alone = plot_frontier({"dca-ridge": Frontier.for_joint(JOINT, points)})
    assert colour_of(both, "dca-ridge") == colour_of(alone, "dca-ridge")
    assert len({colour_of(both, name) for name in names}) == len(names)
    assert looks(["dca", "dca", *"abcdefg"]) == [1, 0, 2, 3, 4, 5, 6, 7, 8]


def test_one_public_letter_is_said_once_and_no_curve_is_listed():
    joint = Joint(np.array([[0.4, 0.6]]))
    figure = plot_frontier(pf.frontier(joint, method=["exact", "dca"], n_points=2, rng=0))
    assert legend(figure) == []
    assert [text.get_text() for text in figure.axes[0].texts] == ["X has one value: there is nothing to keep"]
