"""The attack on a report: private labels from its files, the released codes and this library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing import logistic_regression
from privacyfunnel.auditing.adversaries.clustering import umap_embedding

N = 300


@pytest.fixture(scope="module")
def people():
    """Codes and classes that have nothing to do with each other: whoever sees only codes guesses by luck."""
    rng = np.random.default_rng(11)
    group = rng.integers(0, 4, N)
    return 5 * np.eye(4)[group] + rng.normal(size=(N, 4)), np.array(["left", "right"])[rng.integers(0, 2, N)]


@pytest.fixture(scope="module")
def files(people, tmp_path_factory):
    """The page and the JSON of an audit with all that may be asked for without showing records."""
    pytest.importorskip("umap")
    Z, y = people
    report = pf.audit(
        Z=Z, X=Z, private={"hand": y}, adversaries=[logistic_regression()], figures=True, n_jobs=1
    )
    folder = tmp_path_factory.mktemp("report")
    report.save(folder / "audit.json")
    report.save(folder / "audit.html")
    return {path.suffix: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def parts(value: Any) -> Iterator[Any]:
    """A JSON value and all values in it."""
    yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(one)


def documents(files: dict[str, str]) -> list[Any]:
    """The JSON of the report and what each picture on the page draws."""
    pictures = re.findall(r'<svg class="chart".*?</svg>', files[".html"], flags=re.DOTALL)
    return [json.loads(files[".json"]), *(traces(ElementTree.fromstring(one)) for one in pictures)]


def traces(picture: Any) -> dict[str, Any]:
    """Of each shape that says what it is when pointed at: its name, and where its parts lie."""
    found = []
    for group in picture.iter():
        name = next((one.text for one in group if one.tag == "title"), None)
        places = [
            [float(number) for number in start.split()]
            for path in group.iter("path")
            for start in re.findall(r"M([^A-Za-z]*)", path.get("d", ""))
        ]
        marks = [[float(one.get("x")), float(one.get("y"))] for one in group.iter("use")]
        if name is not None and group is not picture:
            x, y = (list(axis) for axis in zip(*(marks or places), strict=True))
            found.append({"name": name, "x": x, "y": [-one for one in y]})
    return {"view": picture.get("aria-labelledby"), "data": found}


def listed_labels(document: Any) -> dict[int, str]:
    """Labels beside record numbers, or one for each record in their order."""
    found: dict[int, str] = {}
    for part in parts(document):
        if not isinstance(part, dict):
            continue
        lists = [one for one in part.values() if isinstance(one, list)]
        for names in lists:
            if len(names) < 10 or not set(map(str, names)) <= {"left", "right"}:
                continue
            numbers = [one for one in lists if one is not names and len(one) == len(names)]
            rows = next((one for one in numbers if all(type(row) is int for row in one)), range(len(names)))
            found |= {int(row): str(name) for row, name in zip(rows, names, strict=True)}
    return found


def drawn_points(document: Any) -> list[tuple[float, float, str]]:
    """Points of a picture that carry the name of a class."""
    return [
        (x, y, part["name"])
        for part in parts(document)
        if isinstance(part, dict)
        and part.get("name") in ("left", "right")
        and isinstance(part.get("x"), list)
        for x, y in zip(part["x"], part["y"], strict=True)
    ]


def box(points: Any) -> Any:
    low, high = np.quantile(points, [0.01, 0.99], axis=0)
    return (points - (low + high) / 2) / max((high - low).max(), 1e-9)


def labels_by_place(drawn: list[tuple[float, float, str]], Z: Any) -> Any:
    """The class of the drawn point nearest to each code in an embedding of one's own, best aligned."""
    places = np.array([point[:2] for point in drawn])
    names = np.array([point[2] for point in drawn])
    best, guesses = np.inf, np.full(len(Z), "")
    for seed in (0, *(int(np.random.default_rng([0, 3, i]).integers(2**31)) for i in range(2))):
        own = umap_embedding(Z, seed)
        tries = [(own, places)]
        for angle in np.linspace(0, 2 * np.pi, 120, endpoint=False):
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            tries += [(box(own @ turn * [1, mirror]), box(places)) for mirror in (-1, 1)]
        for mine, theirs in tries:
            distances = ((mine[:, None] - theirs[None]) ** 2).sum(axis=2)
            # Codes near points and points near codes.
            misfit = distances.min(axis=1).mean() + distances.min(axis=0).mean()
            if misfit < best:
                best, guesses = misfit, names[distances.argmin(axis=1)]
    return guesses


def by_luck(y: Any) -> float:
    """More hits than this are no luck: four standard deviations above the larger class."""
    share = max(np.mean(y == name) for name in np.unique(y))
    return float(share + 4 * np.sqrt(share * (1 - share) / len(y)))


def test_no_list_holds_anybodys_label(files, people):
    _, y = people
    for document in documents(files):
        found = listed_labels(document)
        assert np.mean([found.get(i) == y[i] for i in range(N)]) <= by_luck(y), found


def test_an_embedding_of_ones_own_does_not_place_labels(files, people):
    Z, y = people
    drawn = [points for document in documents(files) if (points := drawn_points(document))]
    assert len(drawn) == 2  # the pictures of X and Z are there, and say something
    for points in drawn:
        assert np.mean(labels_by_place(points, Z) == y) <= by_luck(y)


def test_no_file_holds_a_point_or_a_number_a_record(files):
    """Nothing is as long as the records, or as what is drawn of them."""
    longest = max(
        len(part) for document in documents(files) for part in parts(document) if isinstance(part, list)
    )
    assert longest < N / 5


def test_every_group_is_large_and_its_shares_are_rough(files):
    density = json.loads(files[".json"])["payload"]["figures_data"]["density"]
    for on in ("X", "Z"):
        assert min(density[on]["records"]) >= density["least"] == 10
        assert {n % 5 for n in density[on]["records"]} == {0}
        assert {round(share, 9) for shares in density[on]["shares"] for share in shares} <= {
            0,
            0.2,
            0.4,
            0.6,
            0.8,
        }


def test_the_first_line_says_that_it_is_as_private_as_the_data(files):
    assert json.loads(files[".json"])["payload"]["notice"].startswith("This is as private as the data")
    main = files[".html"].partition("<main>")[2].lstrip()
    assert main.startswith('<p class="lead">This is as private as the data')


def test_the_attack_finds_labels_where_they_are(people):
    """Both ways of the attack succeed on what they look for."""
    pytest.importorskip("umap")
    Z, y = people
    rows = list(range(0, N, 2))
    listed = {"figure": {"rows": rows, "labels": [str(y[i]) for i in rows]}}
    assert all(listed_labels(listed)[i] == y[i] for i in rows)
    points = umap_embedding(Z, 0)
    own = [
        {"name": name, "x": points[y == name, 0].tolist(), "y": points[y == name, 1].tolist()}
        for name in ("left", "right")
    ]
    assert np.mean(labels_by_place(drawn_points({"data": own}), Z) == y) > 0.99
    # As pictures draw them, from the top.
    shapes = "".join(
        f"<g><title>{one['name']}</title><path d='"
        + "".join(f"M{x} {-y}h1v1h-1z" for x, y in zip(one["x"], one["y"], strict=True))
        + "'/></g>"
        for one in own
    )
    page = f'<svg class="chart"><title>all</title>{shapes}</svg>'
    _, picture = documents({".json": "{}", ".html": page})
    assert np.mean(labels_by_place(drawn_points(picture), Z) == y) > 0.99
