"""compare: the table says what the frontiers say, gaps are measured from a proof, and every joint has one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from strategies import KINDS, random_joint

import privacyfunnel as pf
from privacyfunnel.discrete.compare import method_settings, paper_symbols
from privacyfunnel.discrete.methods import METHODS
from privacyfunnel.errors import ConvergenceWarning, InvalidInputError
from privacyfunnel.progress import listening
from privacyfunnel.report import compare as save_page

FAST = {"n_points": 6, "n_starts": 1, "rng": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def paper() -> pf.Comparison:
    return pf.compare(pf.datasets.paper_joint(), n_points=12, n_starts=2, rng=0, n_jobs=1)


def test_every_method_is_there_and_none_beats_what_is_proved(paper: pf.Comparison) -> None:
    assert paper.methods == ("exact", *(name for name in METHODS if name not in ("auto", "exact")))
    rows = paper.rows()
    assert len(rows) == 3 * len(paper.methods)
    optimum = pf.frontier(pf.datasets.paper_joint(), method="exact", n_points=30, rng=0)
    for row in rows:
        front = paper.fronts[row["method"]]
        assert row["leakage"] == front.leakage_at(row["utility"]) >= row["lower_bound"] - 1e-9
        assert row["leakage_one_release"] >= row["leakage"] - 1e-12
        assert row["gap"] == row["leakage"] - row["lower_bound"]
        assert row["lower_bound"] <= optimum.leakage_at(row["utility"])
        assert row["cpu_seconds"] >= 0
    assert max(row["gap"] for row in rows if row["method"] == "exact") < 2e-3


def test_the_largest_gap_is_the_largest_on_a_fine_grid(paper: pf.Comparison) -> None:
    for method, front in paper.fronts.items():
        gap, at = paper.largest_gap(method)
        grid = np.linspace(0, front.max_utility, 2001)
        seen = max(front.leakage_at(u) - (front.lower_bound_at(u) or 0.0) for u in grid)
        assert seen <= gap + 1e-12
        assert gap == pytest.approx(front.leakage_at(at) - (front.lower_bound_at(at) or 0.0), abs=1e-12)
        assert gap <= seen + 1e-3


def test_the_papers_solvers_run_the_papers_sweep(paper: pf.Comparison) -> None:
    joint = pf.datasets.paper_joint()
    grid = np.geomspace(0.1, 10, 16)
    for method in ("dca-ridge", "dca-sparse"):
        settings = method_settings(method, joint)
        assert settings["betas"] == pytest.approx(grid)
        assert settings["alpha"] == pytest.approx(grid)
        assert (settings["n_z"], settings["n_starts"]) == ((2, 3, 4), 10)
        points = [point for point in paper.fronts[method].points if point.method == method]
        assert len(points) == 3 * 16 * 16 * 2  # two starts were asked for
        tried = {(p.settings["alpha"], p.settings["beta"]) for p in points}
        assert len(tried) == 256
        assert "16 β × 16 α from 0.1 to 10, |Z| = 2, 3, 4, 2 starts" in paper.settings[method]
        assert "the paper's sweep has 10" in paper.settings[method]


@pytest.mark.full
def test_the_whole_sweep_of_the_paper_says_so() -> None:
    found = pf.compare(pf.datasets.paper_joint(), methods=["dca-ridge"], rng=0)
    assert len([p for p in found.fronts["dca-ridge"].points if p.method == "dca-ridge"]) == 7680
    assert found.settings["dca-ridge"].endswith("10 starts (as the paper sweeps)")


def test_symbols_are_counted_around_the_letters_that_occur() -> None:
    assert paper_symbols(pf.Joint([[0.5, 0.5]])) == (2, 3)
    assert paper_symbols(pf.Joint([[1.0]])) == (2,)
    assert paper_symbols(pf.Joint(np.full((2, 5), 0.1))) == (4, 5, 6)
    assert paper_symbols(pf.Joint([[0.5, 0.0], [0.0, 0.0], [0.25, 0.25]])) == (2, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
def test_odd_joints(kind: str, shape: tuple[int, int]) -> None:
    joint = random_joint(np.random.default_rng(7), *shape, kind)
    _is_sound(pf.compare(joint, methods=["dca", "dca-ridge", "dca-sparse", "greedy"], **FAST))


@pytest.mark.parametrize(
    "joint",
    [
        pf.Joint([[1.0]]),
        pf.Joint([[0.5, 0.5]]),
        pf.Joint([[0.5], [0.5]]),
        pf.datasets.independent(),
        pf.datasets.perfect_privacy(),
    ],
    ids=["one letter", "one public letter", "one private letter", "independent", "perfect privacy"],
)
def test_joints_with_nothing_to_do(joint: pf.Joint, tmp_path) -> None:
    found = pf.compare(joint, **FAST)
    _is_sound(found)
    if joint.mutual_information < 1e-12:
        assert "tells nothing about" in found.summary
        assert all(row["leakage"] < 1e-12 for row in found.rows())
    found.save(tmp_path / "page.html")


def _is_sound(found: pf.Comparison) -> None:
    for row in found.rows():
        assert row["leakage"] >= row["lower_bound"] - 1e-9
        assert row["largest_gap"] >= row["gap"] - 1e-9
    assert "nan" not in found.summary


def test_the_sentence_has_the_numbers_of_the_curves(paper: pf.Comparison) -> None:
    joint = paper.joint
    half = 0.5 * joint.entropy_x
    least = paper.fronts["exact"].lower_bound_at(half)
    assert least is not None
    assert f"at least {100 * least / joint.mutual_information:.1f} %" in paper.summary
    told = {name: front.leakage_at(half) for name, front in paper.fronts.items()}
    last = max(told, key=told.__getitem__)
    assert f"{100 * told[last] / joint.mutual_information:.1f} %." in paper.summary
    random = {"dca", "dca-ridge", "dca-sparse", "splitting", "em"}
    assert set(paper.starts) == random & set(paper.methods)
    if last in random:
        assert f"{last}, the furthest from it at {paper.starts[last]} random start" in paper.summary


def test_results_do_not_depend_on_workers_nor_on_the_company() -> None:
    joint = pf.datasets.paper_joint()
    alone = pf.compare(joint, methods=["dca"], **FAST)
    beside = pf.compare(joint, methods=["greedy", "dca"], **{**FAST, "n_jobs": 2})
    assert alone.methods == ("exact", "dca")
    for name in alone.methods:
        assert [(p.utility, p.leakage) for p in alone.fronts[name].points] == [
            (p.utility, p.leakage) for p in beside.fronts[name].points
        ]


def test_files_tell_the_table(paper: pf.Comparison, tmp_path) -> None:
    frame = paper.to_frame()
    assert list(frame["method"]) == [row["method"] for row in paper.rows()]
    paper.to_csv(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text(encoding="utf-8").count("\n") == len(frame) + 1
    save_page(paper, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.index(paper.summary[:40]) < page.index("<h1>")
    assert "<script" not in page
    for row in paper.rows():
        assert f"{row['leakage']:.5f}" in page
    assert "the paper&#39;s sweep has 10" in page
    assert "proved impossible" in page
    html = paper._repr_html_()
    assert html is not None
    assert "CPU s" in html
    figure = paper.plot()
    assert len(figure.axes) == 1


def test_runs_that_stop_early_are_counted_and_not_warned_of(paper: pf.Comparison) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = pf.compare(paper.joint, methods=["splitting"], **FAST)
    assert sum(row["stopped_early"] for row in found.rows()) > 0


def test_few_records_are_told_once() -> None:
    joint = pf.Joint.from_counts([[3, 1], [2, 4]])
    with pytest.warns(pf.errors.FewRecordsWarning) as told:
        pf.compare(joint, methods=["greedy"], **FAST)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"methods": ["auto"]}, "name these instead"),
        ({"methods": ["best"]}, "is no method; choose one of"),
        ({"methods": []}, "methods is empty"),
        ({"utilities": []}, "from 0 to H"),
        ({"utilities": [9.0]}, "from 0 to H"),
        ({"utilities": [-1.0]}, "utilities"),
        ({"n_starts": 0}, "n_starts"),
        ({"n_points": 0}, "n_points"),
        ({"time_limit": 0.0}, "time_limit"),
    ],
)
def test_bad_arguments(given: dict, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        pf.compare(pf.datasets.paper_joint(), **given)


def test_what_is_no_joint() -> None:
    with pytest.raises(InvalidInputError, match="compare: joint must be a Joint"):
        pf.compare([[0.5, 0.5]])


def test_a_page_is_html_and_nothing_else(paper: pf.Comparison, tmp_path) -> None:
    for write in (paper.save, lambda path: save_page(paper, path)):
        with pytest.raises(InvalidInputError, match=r"x\.pdf: a page is written as HTML"):
            write(tmp_path / "x.pdf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ([], r"compare: methods is empty; name one or more"),
        (["dca-rigde"], r"compare: 'dca-rigde' is no method; did you mean dca-ridge\?"),
        ("gready", r"compare: 'gready' is no method; did you mean greedy\?"),
        (["zzzz"], r"compare: 'zzzz' is no method; choose one of auto, exact"),
        ([3], r"compare: 3 is no method; choose one of auto, exact"),
    ],
)
def test_methods_that_are_none(methods, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        pf.compare(pf.datasets.paper_joint(), methods=methods)


def test_progress_tells_which_method_runs() -> None:
    heard: list[tuple[str, int, int]] = []
    with listening(lambda *told: heard.append(told)):
        pf.compare(pf.datasets.paper_joint(), methods=["dca", "greedy"], **FAST)
    assert [(done, total) for what, done, total in heard if what == "Comparing methods  dca"][:1] == [(1, 3)]
    assert {what.split()[2] for what, _, _ in heard} == {"exact", "dca", "greedy"}
    assert any("%" in what for what, _, _ in heard)
