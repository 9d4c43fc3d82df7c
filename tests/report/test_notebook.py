"""What notebooks show: the sentences of the app and of reports, escaped, and nothing without jinja2."""

from __future__ import annotations

import sys
from html import unescape
from typing import Any

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.report import wording
from privacyfunnel.report.plane import proved_points, round_ticks

pytest.importorskip("jinja2")


def shown(value: Any) -> str:
    found = value._repr_html_()
    assert found is not None
    return unescape(found)


@pytest.fixture(scope="module")
def joint() -> pf.Joint:
    return pf.Joint.from_counts(
        [[40, 10], [30, 20], [10, 40]], x_names=["job"], y_names=["sex"], x_labels=["a", "b", "c"]
    )


@pytest.fixture(scope="module")
def solution(joint: pf.Joint) -> pf.Solution:
    return pf.solve(joint, max_leakage=0.05, rng=0)


def test_a_joint_says_who_is_right(joint: pf.Joint) -> None:
    text = shown(joint)
    raw = (40 + 30 + 40) / 150
    assert f"Whoever sees job is right about sex {100 * raw:.1f} % of the time" in text
    assert f"without seeing anything {100 * 80 / 150:.1f} %" in text
    assert f"{joint.mutual_information:.3f} bit, I(X;Y)" in text
    assert "<svg" in text


def test_a_solution_says_what_happens_and_what_is_merged(solution: pf.Solution) -> None:
    text = shown(solution)
    table = solution.joint.p_xy.T @ solution.mechanism.p_z_given_x
    right = table.max(axis=0).sum()
    assert f"An attacker is right about sex {100 * right:.1f} % of the time on these records" in text
    assert "with the raw column 73.3 %" in text
    assert "one symbol stands for" in text
    assert solution.status.value in text


@pytest.mark.parametrize(
    ("low", "high", "times", "wanted"),
    [
        (0, 0.144, 1, ["0.00", "0.05", "0.10"]),
        (0, 1, 1, ["0.0", "0.5", "1.0"]),
        (0.645, 0.72, 100, ["66", "68", "70", "72"]),
        (0, 1e-4, 1, ["0.00000", "0.00005", "0.00010"]),
    ],
)
def test_axes_have_round_numbers(low: float, high: float, times: int, wanted: list[str]) -> None:
    ticks = round_ticks(low, high, times)
    assert [text for _, text in ticks] == wanted
    assert [times * place for place, _ in ticks] == pytest.approx([float(text) for text in wanted])
    assert low <= ticks[0][0]
    assert ticks[-1][0] <= high + 1e-12


def test_a_frontier_is_drawn_with_what_is_impossible(joint: pf.Joint) -> None:
    front = pf.frontier(joint, n_points=4, rng=0, n_jobs=1)
    text = shown(front)
    assert "<polyline" in text
    assert 'class="impossible"' in text
    assert f"leakage {front.leakage_at(front.max_utility / 2):.4f} bit" in text
    assert "NaN" not in text


def test_the_impossible_area_is_what_is_proved_and_no_more(joint: pf.Joint) -> None:
    front = pf.frontier(joint, n_points=5, rng=0, n_jobs=1)
    corners = proved_points(front)
    assert len(corners) >= 3
    for share in np.linspace(0, 1, 201):
        drawn = np.interp(share, *zip(*corners, strict=True))
        assert drawn == pytest.approx(front.lower_bound_at(share * front.max_utility), abs=1e-9)
    assert proved_points(pf.frontier(joint, method="greedy", n_points=3, rng=0, n_jobs=1)) == []


def test_a_mechanism_says_what_its_symbols_stand_for(solution: pf.Solution) -> None:
    text = shown(solution.mechanism)
    assert f"3 values of job are released as {solution.mechanism.n_z} symbols" in text
    bare = pf.TableMechanism(np.eye(2))
    assert "one symbol stands for" not in shown(bare)


def test_a_report_says_its_first_lines(solution: pf.Solution) -> None:
    report = pf.audit(solution.mechanism, solution.joint)
    text = shown(report)
    assert wording.first_lines(report.published())[0] in text
    assert "<svg" in text


def test_labels_are_escaped() -> None:
    bad = "<script>alert(1)</script>"
    joint = pf.Joint(
        [[0.25, 0.25], [0.5, 0.0]], x_names=[bad], y_names=[bad], x_labels=[bad, "b"], y_labels=["u", "v"]
    )
    for value in (joint, pf.TableMechanism.identity(joint), pf.solve(joint, beta=0.5, rng=0)):
        found = value._repr_html_()
        assert found is not None
        assert "<script" not in found
        assert "&lt;script&gt;" in found


def test_without_jinja2_a_notebook_shows_the_repr(joint: pf.Joint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert joint._repr_html_() is None


def test_the_page_of_a_report_begins_with_the_same(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    z = np.where(rng.random(400) < 0.7, y, rng.integers(0, 3, 400))
    beside = {"dull": rng.integers(0, 2, 400), "telling": np.where(rng.random(400) < 0.95, y, 1 - y)}
    report = pf.audit(Z=z, X=z, private={"sex": y}, keep=beside, effort="quick", n_jobs=1, n_repeats=1)
    report.save(tmp_path / "audit.html")
    page = unescape((tmp_path / "audit.html").read_text(encoding="utf-8"))
    report = report.published()
    found = wording.first_seconds(report)
    chance, best, raw = found["bar"]
    told = wording.told(report, "sex")
    assert (chance, best) == (told.chance.value, told.best.value)
    assert raw == told.raw.value
    assert any(
        line.startswith("Of the columns beside it, telling tells most about sex") for line in found["lines"]
    )
    places = [page.index(line) for line in (wording.first_lines(report)[0], *found["lines"])]
    assert places == sorted(places)
    assert page.index('class="chart bar"') < page.index('class="tiles"')
    assert places[-1] < page.index('class="tiles"')
