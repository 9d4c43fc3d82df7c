"""Look, Choose, Check and Take, by what the script sends; cancelled and killed work; two tabs."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from app_pages import (
    COLUMNS,
    Page,
    assert_repeated,
    command_of,
    started,
    symbols_in_duckdb,
    text_of,
    write_people,
)

import privacyfunnel as pf
from privacyfunnel.app import desks, server, work
from privacyfunnel.keys import new_key

PICKED = {"sex": "private", "job": "public"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of the desks that tests share."""
    return write_people(tmp_path_factory.mktemp("shared") / "people.csv").parent


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[Any]:
    with started(folder) as client:
        yield client


@pytest.fixture
def looked(shared: Any) -> Page:
    page = Page(shared)
    page.post("/open", path="people.csv")
    page.does("look", **page.roles(COLUMNS, **PICKED))
    return page


@pytest.fixture(scope="module")
def chosen(shared: Any) -> Page:
    page = Page(shared)
    page.post("/open", path="people.csv")
    page.does("look", **page.roles(COLUMNS, **PICKED))
    said = page.does("choose", way="columns", measure="information")
    assert "An attacker is right about sex" in said, said
    return page


def test_the_first_screen_shows_columns_and_no_value(page: Page) -> None:
    text = page.get(page.at("look")).text
    assert all(f">{name}</th>" in text for name in COLUMNS)
    assert "job1" not in text


def test_look_tells_which_column_tells(page: Page) -> None:
    said = page.does("look", **page.roles(COLUMNS, sex="private", job="public", city="keep", colour="keep"))
    assert "Somebody who sees job alone is right about sex" in said
    assert "city is kept as it is, and it tells" in said
    assert "colour is kept as it is" not in said


def test_look_says_which_columns_it_has_set_to_drop(page: Page) -> None:
    roles = page.roles(COLUMNS, person="public", sex="private", job="public")
    assert "Set to “drop”, as advised: person." in page.does("look", **roles)
    page.post(page.at("look"), **roles)
    said = page.get(page.at("look")).text
    assert "as advised" not in said
    assert re.search(r'value="public" aria-label="public: person" checked', said)


def test_a_large_file_has_a_first_look(client: Any, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    from privacyfunnel.app import screens

    monkeypatch.setattr(screens, "LARGE", 500)
    monkeypatch.setattr(screens, "FIRST_RECORDS", 300)
    table = csv.read_csv(people)
    pq.write_table(table, people.with_suffix(".parquet"), row_group_size=100)
    page = Page(client)
    assert "600 records" in text_of(page.post("/open", path="people.parquet").text)
    said = page.does("look", **page.roles(COLUMNS, **PICKED))
    assert "A first look at 300 of 600 records, from places all over the file" in said, said
    assert "Estimates from 300 records" in said
    lines = page.get(page.at("behind")).text.splitlines()
    assert json.loads(lines[-1]) == {"end": page.at("look")}
    said = text_of(page.get(page.at("look")).text)
    assert "A first look" not in said
    assert "Estimates from 600 records" in said
    page.does("look", **page.roles(COLUMNS, city="private", job="public"))
    desk = client.app.app.state.desks.get(page.desk)
    desk.cancel()  # both, and what was seen stays
    assert "right about city" in text_of(page.get(page.at("look")).text)


@pytest.mark.parametrize(
    ("roles", "sentence"),
    [
        ({"job": "public"}, "Say which column is private"),
        ({"sex": "private", "job": "task", "city": "task"}, "one task at most"),
        ({"sex": "owner"}, "one of the roles"),
    ],
)
def test_roles_that_make_no_sense(page: Page, roles: dict[str, str], sentence: str) -> None:
    answer = page.post(page.at("look"), **page.roles(COLUMNS, **roles))
    assert answer.status_code == 422
    assert sentence in answer.text


def test_a_private_column_that_names_people_is_a_sentence(page: Page) -> None:
    said = page.does("look", **page.roles(COLUMNS, person="private", job="public"))
    assert "nearly every record has its own" in said


def test_choosing_before_looking(page: Page) -> None:
    assert "Look at the table first" in text_of(page.get(page.at("choose")).text)
    answer = page.post(page.at("choose"), way="columns", measure="information")
    assert answer.status_code == 422
    for screen in ("check", "take"):
        assert page.post(page.at(screen)).status_code == 422
    assert page.post(page.at("stop"), at="3").status_code == 422


def test_the_slider_moves_along_a_frontier_that_is_certified_together(chosen: Page) -> None:
    shares = []
    for at in (0, 10, 20, 40):
        text = text_of(chosen.post(chosen.at("stop"), at=str(at)).text)
        shares.append(float(re.search(r"more often than ([\d.]+) % of the time on new people", text)[1]))
        assert "for all places of the slider together" in text
        assert "What is merged" in text
    assert shares == sorted(shares)
    nothing = text_of(chosen.post(chosen.at("stop"), at="0").text)
    assert "Nobody is worse off" in nothing
    assert "≤ 0.000 bit on new people" in nothing
    page = chosen.get(chosen.at("choose")).text
    assert 'class="impossible"' in page
    assert 'type="range"' in page


@pytest.mark.parametrize("at", ["-1", "41", "x", "", "²"])
def test_places_that_the_slider_has_not(chosen: Page, at: str) -> None:
    assert chosen.post(chosen.at("stop"), at=at).status_code == 422


def test_a_bound_is_never_below_what_an_attacker_reaches(chosen: Page) -> None:
    desk = chosen.client.app.app.state.desks.get(chosen.desk)
    for stop in desk.choice.stops:
        assert stop.right <= stop.guess["sex"] + 1e-9
        assert stop.told <= stop.at_most + 1e-9


def test_check_attacks_judges_and_says_what_is_not_covered(chosen: Page) -> None:
    chosen.post(chosen.at("stop"), at="40")
    said = chosen.does("check", max_success="55")
    assert "The strongest attacker tried is right about sex" in said
    assert "Not covered" in said
    assert "5 releases of a record" in said
    assert "with the release" in chosen.get(chosen.at("check")).text  # the bar
    assert 'class="verdict failed"' in chosen.get(chosen.at("check")).text
    bad = chosen.post(chosen.at("check"), max_success="lots")
    assert bad.status_code == 422


def test_take_writes_what_the_command_repeats(chosen: Page, folder: Path) -> None:
    new_key(folder / "my.key")
    chosen.does("check", max_success="95")
    form = {"folder": "out", "form": "csv", "key": "my.key", "id": "person", "dialect": "duckdb"}
    said = chosen.does("take", **form)
    assert "600 records were released" in said
    out = folder / "out"
    names = {path.name for path in out.iterdir()}
    assert names == {
        *("released.csv", "mechanism.json", "release.sql", "codebook.csv", "keep"),
        *("guarantee.md", "card.md", "card.json"),
    }
    assert {path.name for path in (out / "keep").iterdir()} == {"repeat.py", "repeat.sh"}
    # The card names the seed of its adversaries; nothing but what is kept names that of the split.
    others = [path for path in out.iterdir() if path.is_file() and path.stem != "card"]
    assert "seed" not in "".join(path.read_text() for path in others).lower()
    assert not list(folder.glob(".out*"))
    command = command_of(chosen.get(chosen.at("take")).text)
    assert "--key" in command
    assert "--seed" not in command
    assert_repeated(out / "released.csv", command)
    released = sorted((out / "released.csv").read_text().splitlines()[1:])
    assert symbols_in_duckdb(folder / "people.csv", out / "release.sql", folder / "my.key") == released
    private = re.compile(r"(?<![a-z])[fm](?![a-z])")
    for name in ("released.csv", "mechanism.json", "guarantee.md", "codebook.csv"):
        assert not private.search((out / name).read_text()), name
    again = chosen.post(chosen.at("take"), **form)
    assert again.status_code == 422
    assert "something already" in again.text


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"folder": "../out"}, "outside"),
        ({"folder": "/elsewhere/out"}, "outside"),
        ({"folder": "."}, "Name a new folder"),
        ({"folder": "a/b"}, "make it first"),
        ({"folder": "people.csv"}, "something already"),
        ({"folder": ""}, "nothing was named"),
        ({"folder": "out", "form": "exe"}, "CSV or Parquet"),
        ({"folder": "new", "key": "no.key"}, "pfunnel key new"),
        ({"folder": "new", "id": "nobody"}, "not in the table"),
    ],
)
def test_take_refuses(chosen: Page, form: dict[str, str], sentence: str) -> None:
    answer = chosen.post(chosen.at("take"), **form)
    assert answer.status_code == 422
    assert sentence in text_of(answer.text)


def test_a_failed_take_leaves_nothing(chosen: Page, folder: Path) -> None:
    before = set(folder.iterdir())
    (folder / "open.key").write_text("no key")
    os.chmod(folder / "open.key", 0o600)
    said = chosen.does("take", folder="new", key="open.key", id="person")
    assert "holds no key" in said
    assert set(folder.iterdir()) - before == {folder / "open.key"}


def test_a_whole_table(looked: Page, folder: Path) -> None:
    roles = looked.roles(COLUMNS, sex="private", job="public", city="public", age="public", colour="keep")
    looked.post(looked.at("look"), **roles)
    said = looked.does("choose", way="table", measure="success")
    assert "with the kinds of records themselves" in said
    assert "Variance kept" in said
    assert "job: job" in said  # what is merged, in the words of the table
    said = looked.does("check", max_success="80")
    assert "attacker tried is right about sex" in said, said
    assert "counts of symbols" in said  # and not taken for numbers
    assert "5 releases of a record" in said
    new_key(folder / "table.key")
    said = looked.does("take", folder="table", form="parquet", key="table.key", id="person")
    assert "600 records" in said, said
    import pyarrow.parquet as pq

    released = pq.read_table(folder / "table" / "released.parquet")
    assert released.num_rows == 600
    assert sorted(released.column_names) == ["age", "city", "colour", "job"]
    assert "sex" in (folder / "table" / "guarantee.md").read_text()
    command = command_of(looked.get(looked.at("take")).text)
    assert_repeated(folder / "table" / "released.parquet", command)


def endless() -> None:
    while True:
        time.sleep(0.01)


def ends_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def raises_a_value() -> None:
    raise KeyError("secret value")


def test_cancel_ends_the_work_and_the_desk_goes_on(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    from privacyfunnel.app import screens

    monkeypatch.setattr(screens, "look", lambda *args: None)
    desk = page.client.app.app.state.desks.get(page.desk)
    desk.start("look", lambda found: None, endless)
    process = desk.work._process
    assert process.is_alive()
    busy = page.post(page.at("look"), **page.roles(COLUMNS, **PICKED))
    assert busy.status_code == 422
    assert "work under way" in busy.text
    assert "Cancel" in page.get(page.at("look")).text
    said = text_of(page.post(page.at("cancel")).text)
    assert work.CANCELLED in said
    assert not process.is_alive()
    monkeypatch.undo()
    assert "is right about sex" in page.does("look", **page.roles(COLUMNS, **PICKED))


@pytest.mark.parametrize(("job", "sentence"), [(ends_itself, work.KILLED), (raises_a_value, work.FAILED)])
def test_a_worker_that_dies_is_a_sentence(page: Page, job: Any, sentence: str) -> None:
    desk = page.client.app.app.state.desks.get(page.desk)
    desk.start("look", lambda found: None, job)
    page.follow()
    said = text_of(page.get(page.at("look")).text)
    assert sentence in said
    assert "secret" not in said
    assert "is right about sex" in page.does("look", **page.roles(COLUMNS, **PICKED))


def test_work_ends_with_the_server(people: Path) -> None:
    with started(people.parent) as client:
        page = Page(client)
        page.post("/open", path="people.csv")
        desk = client.app.app.state.desks.get(page.desk)
        desk.start("look", lambda found: None, endless)
        process = desk.work._process
        assert process.is_alive()
    assert not process.is_alive()


def test_work_of_a_tab_that_was_closed_ends_though_nobody_asks(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "TIDY", 0.01)
    monkeypatch.setattr(desks, "KEPT_SECONDS", -1.0)
    with started(people.parent) as client:
        desk = desks.Desk("x.csv", "x.csv", ("a",))
        desk.start("look", lambda found: None, endless)
        client.app.app.state.desks.add(desk)
        assert desk.work is not None
        desk.work.wait(60)
        assert desk.work.state == "cancelled"


def test_two_tabs_do_not_disturb_each_other(looked: Page) -> None:
    other = Page(looked.client)
    other.post("/open", path="people.csv")
    assert other.desk != looked.desk
    assert "is right about sex" not in text_of(other.get(other.at("look")).text)
    assert "is right about sex" in text_of(looked.get(looked.at("look")).text)


def test_a_desk_is_kept_for_ten_minutes() -> None:
    now = 0.0
    kept = desks.Desks(lambda: now)
    desk = kept.add(desks.Desk("x.csv", "x.csv", ("a",)))
    now = 599.0
    assert kept.get(desk.name) is desk
    now = 1199.5
    with pytest.raises(pf.errors.InvalidInputError, match="no longer open"):
        kept.get(desk.name)


def test_a_column_or_file_that_vanished_is_a_sentence(page: Page, people: Path) -> None:
    people.write_text("person,gender\n1,f\n2,m\n")
    said = page.does("look", **page.roles(COLUMNS, **PICKED))
    assert "sex" in said
    people.unlink()
    said = page.does("look", **page.roles(COLUMNS, **PICKED))
    assert "cannot read the file" in said


def test_very_many_values_are_a_sentence(client: Any, tmp_path: Path) -> None:
    rows = "\n".join(f"{i % 2},word{i},{i % 3}" for i in range(30_000))
    (tmp_path / "many.csv").write_text(f"y,x,w\n{rows}\n")
    page = Page(client)
    page.post("/open", path="many.csv")
    page.does("look", **page.roles(["y", "x", "w"], y="private", x="public", w="public"))
    page.post(page.at("look"), **page.roles(["y", "x", "w"], y="private", x="public", w="public"))
    said = page.does("choose", way="columns", measure="information")
    assert "different values" in said or "letters" in said, said


def test_a_second_frontier_is_said_to_be_one(looked: Page) -> None:
    first = looked.does("choose", way="columns", measure="information")
    assert "computation" not in first
    again = looked.does("choose", way="columns", measure="success")
    assert "This is computation 2 of a frontier on these records" in again
    looked.post(looked.at("look"), **looked.roles(COLUMNS, **PICKED))  # nothing changed, so it stays
    assert "An attacker is right" in text_of(looked.get(looked.at("choose")).text)
    looked.post(looked.at("look"), **looked.roles(COLUMNS, sex="private", city="public"))
    assert "An attacker is right" not in text_of(looked.get(looked.at("choose")).text)
