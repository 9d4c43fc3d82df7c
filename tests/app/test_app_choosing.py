"""The slider's places: the hull against a slow twin, and guarantees against a population that is known."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from app_pages import write_people

from privacyfunnel.app import jobs
from privacyfunnel.app.choosing import STEPS, points_along
from privacyfunnel.errors import FewRecordsWarning, InvalidInputError
from privacyfunnel.information import mutual_information


def choose(table: Path, way: str, measure: str, seed: int, public: tuple[str, ...] = ("x",), y: str = "y"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewRecordsWarning)
        return jobs.choose(jobs.Asked(str(table), (y,), public, None, (), way, measure, seed))


@pytest.fixture
def population() -> np.ndarray:
    return np.random.default_rng(5).dirichlet(np.ones(8)).reshape(4, 2)


def sample(path: Path, p: np.ndarray, n: int, seed: int) -> Path:
    found = np.random.default_rng([7, seed]).choice(8, n, p=p.ravel())
    path.write_text("x,y\n" + "".join(f"a{i // 2},b{i % 2}\n" for i in found))
    return path


def test_bounds_hold_at_every_place_together(tmp_path: Path, population: np.ndarray) -> None:
    broken = 0
    for seed in range(12):
        choice = choose(sample(tmp_path / "t.csv", population, 600, seed), "columns", "information", seed)
        assert len(choice.stops) == STEPS + 1
        told = []
        for stop, point in zip(choice.stops, points_along(choice.frontier), strict=True):
            rows = [int(letter[1:]) for letter in point.mechanism.x_labels]
            p_yz = population[rows].T @ point.mechanism.p_z_given_x
            told.append(mutual_information(p_yz) > stop.at_most or p_yz.max(axis=0).sum() > stop.guess["y"])
        broken += any(told)
    # One in twenty may break each of the two kinds of bounds; these seeds are far from it.
    assert broken <= 1


@pytest.mark.parametrize("measure", ["information", "success", "parity"])
def test_places_are_the_least_telling_mixtures(tmp_path: Path, population: np.ndarray, measure: str) -> None:
    choice = choose(sample(tmp_path / "t.csv", population, 900, 1), "columns", measure, 1)
    for stop, point in zip(choice.stops, points_along(choice.frontier), strict=True):
        twin = choice.frontier.least_telling(stop.kept - 1e-9)  # all pairs of points, one by one
        assert point.bound.value == pytest.approx(twin.bound.value, abs=1e-6)
        assert point.utility == pytest.approx(stop.kept)
    kept = [stop.kept for stop in choice.stops]
    assert kept == sorted(kept)
    assert kept[-1] == pytest.approx(1.0)


def test_what_must_be_told_is_below_what_is_told(tmp_path: Path, population: np.ndarray) -> None:
    choice = choose(sample(tmp_path / "t.csv", population, 900, 2), "columns", "information", 2)
    assert choice.proved
    for stop in choice.stops:
        least = np.interp(stop.kept, *zip(*choice.proved, strict=True))
        assert least <= stop.told + 1e-6


def test_the_funnel_of_a_place_has_its_bound(tmp_path: Path) -> None:
    table = write_people(tmp_path / "people.csv", 900)
    choice = choose(table, "table", "information", 3, ("job", "city", "age"), "sex")
    for at in (0, 13, STEPS):
        funnel = jobs.chosen_funnel(choice, at)
        assert funnel.certificate_.value <= choice.stops[at].at_most * (1 + 1e-9) + 1e-12
        assert funnel.verdict_.guesses[0].at_most <= choice.stops[at].guess["sex"] + 1e-6
        mechanism = choice.point(at).mechanism
        problem = choice.funnel.made_.problem
        kept = [
            problem.measures.utility_of(problem.joint.p_x, one.p_z_given_x)
            for one in (funnel.rule_.mechanism, mechanism)
        ]
        assert kept[0] >= kept[1] - 1e-6


def test_who_meets_an_unknown_value_guesses_what_is_most_frequent(tmp_path: Path) -> None:
    """Every value occurs once, so none of the others' is known; f comes before m."""
    rows = "".join(f"a{i},{'f' if i % 10 == 0 else 'm'}\n" for i in range(300))
    (tmp_path / "t.csv").write_text("x,y\n" + rows)
    choice = choose(tmp_path / "t.csv", "columns", "information", 0)
    assert choice.raw == choice.without > 0.8


def test_a_rule_is_attacked_by_its_symbols(tmp_path: Path) -> None:
    table = write_people(tmp_path / "people.csv", 900)
    choice = choose(table, "table", "success", 4, ("job", "city"), "sex")
    rule = jobs.chosen_funnel(choice, 30).rule_
    symbols = jobs.Symbols(rule).release(
        rule.reader.points(
            jobs.read_people(
                jobs.Asked(str(table), ("sex",), ("job", "city"), None, (), "table", "success", 4)
            )
        ),
        np.random.default_rng(0),
    )
    assert symbols.dtype.kind == "U"
    assert set(symbols) <= {str(z) for z in range(rule.n_symbols)}


def test_too_many_letters_and_a_task_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"v{i % 2500},b{i % 2}\n" for i in range(5000))
    (tmp_path / "t.csv").write_text("x,y\n" + rows)
    with pytest.raises(InvalidInputError, match="choose the whole table"):
        choose(tmp_path / "t.csv", "columns", "information", 0)
    with pytest.raises(InvalidInputError, match="task"):
        jobs.choose(jobs.Asked("t.csv", ("y",), ("x",), "t", (), "columns", "information", 0))
