"""Figures show the numbers of the report: what is drawn is compared with what was put in."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from report_samples import CLASSES, exact_report, make_report

from privacyfunnel import report as pages
from privacyfunnel.auditing import AuditReport, ClassTable
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.plotting import save_figure
from privacyfunnel.report.figures import TIP, UNTOLD, class_colour
from privacyfunnel.report.tradeoffs import frontier_points


def texts(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def save_all(figure, folder):
    for ending in ("png", "pdf"):
        save_figure(figure, folder / f"figure.{ending}")
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_the_staircase_holds_what_nothing_beats():
    rng = np.random.default_rng(1)
    points = [tuple(point) for point in rng.random((60, 2)).round(2).tolist()]

    def beaten(one):
        return any(other[0] >= one[0] and other[1] <= one[1] and other != one for other in points)

    slow = sorted({one for one in points if not beaten(one)})
    assert frontier_points(points) == slow
    assert len(slow) < len(points)


def test_success_against_psnr(tmp_path):
    groups = {
        "first": [
            make_report(success=0.6, psnr=20),
            make_report(success=0.7, psnr=18),
            make_report(success=0.8, psnr=25),
        ],
        "second": [make_report(success=0.5, psnr=15)],
    }
    figure = pages.plot_success_psnr(groups)
    (ax,) = figure.axes
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert set(lines) == {"first", "second"}
    assert lines["first"].get_xydata().tolist() == [[20, 0.6], [18, 0.7], [25, 0.8]]
    stairs = [line for line in ax.lines if line.get_drawstyle() == "steps-pre"]
    assert stairs[0].get_xydata().tolist() == [[20, 0.6], [25, 0.8]]  # (18, 0.7) is beaten
    assert "chance" in texts(figure)
    assert "lower bound" in ax.get_ylabel()
    save_all(figure, tmp_path)


def test_one_adversary_may_be_chosen():
    figure = pages.plot_success_psnr([make_report()], adversary="lines")
    (line,) = [line for line in figure.axes[0].lines if line.get_label() == "hand-made"]
    assert line.get_ydata().tolist() == [pytest.approx(0.5)]
    with pytest.raises(InvalidInputError, match="no report has both"):
        pages.plot_success_psnr([exact_report()])


def test_information_plane_tells_exact_from_bracketed(tmp_path):
    figure = pages.plot_information_plane([make_report(), exact_report()])
    (ax,) = figure.axes
    boxes = [patch for patch in ax.patches if patch.get_fill()]
    assert [box.get_bbox().bounds for box in boxes] == [pytest.approx((2.0, 0.25, 1.0, 1.05))]
    marks = {line.get_label(): line for line in ax.lines}
    assert marks["table"].get_xydata().tolist() == [[1.5, 0.25]]
    assert marks["table"].get_markerfacecolor() != "white" == marks["hand-made"].get_markerfacecolor()
    save_all(figure, tmp_path)


def test_confusion_before_and_after(tmp_path):
    figure = pages.plot_confusion(make_report())
    left, right, *_ = figure.axes
    assert "X" in left.get_title(loc="left")
    # Of 20, 5, 5; 6, 18, 6; 9, 5, 16 records, in steps of a tenth.
    shares = [[0.7, 0.2, 0.2], [0.2, 0.6, 0.2], [0.3, 0.2, 0.5]]
    assert np.allclose(right.images[0].get_array(), shares)
    assert "60.0 % right" in right.get_title(loc="left")
    save_all(figure, tmp_path)
    with pytest.raises(InvalidInputError, match="'nobody'"):
        pages.plot_confusion(make_report(), "nobody")


def test_one_view_and_the_best_guessed_classes():
    figure = pages.plot_confusion(make_report(), views=["Z"], most=2)
    (ax,) = figure.axes
    assert "on Z" in ax.get_title(loc="left")
    assert np.allclose(ax.images[0].get_array(), [[0.7, 0.2], [0.2, 0.6]])
    assert len(ax.get_xticklabels()) == 2
    left, right = pages.plot_embedding(make_report()).axes
    for on, drawn in (("X", left), ("Z", right)):
        (ax,) = pages.plot_embedding(make_report(), views=[on], names=False).axes
        assert ax.get_title(loc="left") == drawn.get_title(loc="left")
        assert [boxes_of(patch) for patch in ax.patches] == [boxes_of(patch) for patch in drawn.patches]
        assert not ax.figure.legends


def test_success_stands_beside_raw_records_and_chance():
    figure = pages.plot_success(make_report(), "colour")
    (ax,) = figure.axes
    assert texts(figure) == ["trees", "decoder (reconstruction X̂)", "lines"]
    marks = {line.get_gid(): line for line in ax.lines if line.get_gid()}
    assert [line.get_xydata().tolist() for line in marks.values()] == [
        [[0.9, 0]],
        [[0.6, 0]],
        [[pytest.approx(0.55), 1]],
        [[0.5, 2]],
    ]
    assert f"{TIP}trees, release Z: ≥ 60.0 % (lower bound; 55.0 to 65.0 %)" in marks
    (ticks,) = [line for line in ax.lines if line.get_marker() == "|"]
    assert ticks.get_xdata().tolist() == [1 / 3] * 3
    bars = [line.get_xydata().tolist() for line in ax.lines if line.get_linewidth() == 1.6]
    assert [[0.85, 0], [0.95, 0]] in bars
    assert "lower bound" in ax.get_xlabel()
    assert "lower bound" not in pages.plot_success(exact_report(), "colour").axes[0].get_xlabel()


def test_leakage_is_drawn_by_kind():
    figure = pages.plot_leakage(make_report(), "colour")
    (ax,) = figure.axes
    assert texts(figure) == ["entropy", "mixture", "trees", "lines"]
    marks = [line for line in ax.lines if line.get_gid()]
    assert [(line.get_xdata()[0], line.get_marker()) for line in marks] == [
        (1.2, "<"),
        (0.33, "o"),
        (0.31, ">"),
        (0.28, ">"),
    ]
    assert len({line.get_color() for line in marks}) == 3
    (names,) = figure.legends
    assert [text.get_text() for text in names.get_texts()] == ["≥ lower bound", "≤ upper bound", "≈ estimate"]


def test_many_classes_are_drawn_without_names():
    classes = tuple(range(200))
    table = ClassTable.of_counts("trees", "Z", "id", classes, 10 * np.eye(200, dtype=np.intp))
    figure = pages.plot_confusion(AuditReport((), (table,)))
    assert texts(figure) == []
    assert figure.axes[0].images[0].get_array().shape == (200, 200)
    assert not figure.axes[0].get_xticklabels()


def boxes_of(patch):
    """Left, bottom, width and height of the rectangles that a shape consists of."""
    corners = [np.array(one) for one in patch.get_path().to_polygons(closed_only=True)]
    return [(*one.min(axis=0).tolist(), *np.ptp(one, axis=0).tolist()) for one in corners]


def test_cells_are_drawn_by_size_and_share(tmp_path):
    figure = pages.plot_embedding(make_report())
    left, right = figure.axes
    colours = [to_hex(patch.get_facecolor()) for patch in left.patches]
    boxes = [box for patch in left.patches for box in boxes_of(patch)]
    # 20 records, of the first class four in five; half as many, of the other two.
    untold, (x, y, width, height), second, third = boxes
    assert (x + untold[0] + untold[2]) / 2 == pytest.approx(0.5)
    assert y + height / 2 == pytest.approx(0.5)
    assert width / untold[2] == pytest.approx(4)
    assert (second[2] + third[2]) ** 2 / height**2 == pytest.approx(10 / 20)
    assert third[2] / second[2] == pytest.approx(1.5)
    assert colours == [UNTOLD, class_colour(0), class_colour(1), class_colour(2)]
    assert [patch.get_gid() for patch in left.patches] == [f"{TIP}not told", *(f"{TIP}{c}" for c in CLASSES)]
    assert [ax.get_xlabel()[:4] for ax in (left, right)] == ["5 % ", "10 %"]
    assert [len(boxes_of(patch)) for patch in right.patches] == [1, 1, 1]
    (names,) = figure.legends
    assert [text.get_text() for text in names.get_texts()][-1] == "not told"
    save_all(figure, tmp_path)


def test_samples_stand_above_their_reconstructions(tmp_path):
    figure = pages.plot_samples(make_report(), n_columns=3)
    axes = np.array(figure.axes).reshape(4, 3)
    for block, column in ((0, 0), (0, 2), (1, 0)):
        original, copy = (axes[2 * block + row, column].images[0].get_array() for row in (0, 1))
        assert original.shape == (2, 3)
        assert np.allclose(original / 2, copy)
    assert not axes[2, 1].images  # four images leave two places empty
    save_all(figure, tmp_path)


@pytest.mark.parametrize("plot", [pages.plot_success, pages.plot_leakage])
def test_an_attribute_that_is_not_there_is_named(plot):
    with pytest.raises(InvalidInputError, match="about 'nobody'"):
        plot(exact_report(), "nobody")


@pytest.mark.parametrize("plot", [pages.plot_embedding, pages.plot_samples, pages.plot_confusion])
def test_what_a_report_lacks_is_said(plot):
    with pytest.raises(InvalidInputError, match="has no"):
        plot(exact_report())


def test_classes_have_colours_of_their_own():
    assert len({class_colour(i) for i in range(20)}) == 20
