"""The four screens: what each shows, and what its forms do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from ..auditing.gate import Verdict
from ..errors import InvalidInputError
from ..measures import LEAKAGES
from ..report import wording
from .choosing import STEPS, Choice
from .desks import ROLES, Desk, read_roles
from .jobs import Asked, Checked, check, choose, first_look, look
from .pages import chart_of, percent, render
from .places import Places
from .taking import DIALECTS, FORMATS, Wanted, staging, take
from .work import Work

SCREENS = {"look": "Look", "choose": "Choose", "check": "Check", "take": "Take"}
#: What the guarantee does not allow for.
AGAIN = (
    "This is computation {} of a frontier on these records: the guarantee holds for each by itself, and not "
    "for the best of several that was picked after looking at their bounds."
)
#: Records from which on a first look is at some of them, and at how many.
LARGE, FIRST_RECORDS = 1_000_000, 100_000
#: From this many bits of an inspection's lower end on, a kept column is said to tell.
TELLS = 0.001


def show(desk: Desk, screen: str, others: Sequence[Desk] = ()) -> Response:
    """A screen as it is now; `others` are desks to go on with."""
    if screen not in SCREENS:
        raise InvalidInputError("There is no such screen; choose Look, Choose, Check or Take.")
    values: dict[str, Any] = {"desk": desk, "screen": screen, "screens": SCREENS, "roles": ROLES}
    values["others"] = others
    if screen == "look":
        values |= _look_values(desk)
    elif screen == "choose":
        values |= _choose_values(desk)
    elif screen == "check":
        values |= _check_values(desk)
    else:
        values |= {"dialects": DIALECTS, "formats": FORMATS, "folder": _folder(desk)}
    return render(f"{screen}.html", **values)


def act(desk: Desk, screen: str, form: dict[str, str], places: Places) -> Response:
    """What a form asks for."""
    if screen == "stop":
        return _move(desk, form)
    if desk.busy:
        raise InvalidInputError("There is work under way on this page; wait for it, or cancel it.")
    if screen == "look":
        _start_look(desk, form)
    elif screen == "choose":
        _start_choose(desk, form)
    elif screen == "check":
        _start_check(desk, form)
    elif screen == "take":
        _start_take(desk, form, places)
    return show(desk, screen)


def _start_look(desk: Desk, form: dict[str, str]) -> None:
    roles = read_roles(desk.columns, form)
    desk.dropped = ()
    private = [name for name in desk.columns if roles[name] == "private"]
    if not private:
        raise InvalidInputError("Say which column is private: choose “private” for it.")
    if len([name for name in desk.columns if roles[name] == "task"]) > 1:
        raise InvalidInputError("There is one task at most; give the others another role.")
    again = private != desk.named("private") or desk.inspection is None
    if roles != desk.roles:
        desk.choice = desk.report = desk.taken = None
    desk.roles = roles
    if not again:
        return
    desk.inspection = None
    if desk.behind is not None:
        desk.behind.cancel()
        desk.behind = None
    large = desk.n_records is not None and desk.n_records > LARGE

    def after(found: Any) -> None:
        desk.inspection = found
        if large:
            desk.behind = Work(look, desk.path, private)
        desk.dropped = tuple(name for name in found.advised("drop") if desk.roles.get(name) == "public")
        desk.roles |= dict.fromkeys(desk.dropped, "drop")

    if large:
        desk.start("look", after, first_look, desk.path, private, FIRST_RECORDS)
    else:
        desk.start("look", after, look, desk.path, private)


def _look_values(desk: Desk) -> dict[str, Any]:
    found = desk.inspection
    told = {} if found is None else {one.name: one for one in found.columns}
    warned = []
    for name in desk.named("keep"):
        one = told.get(name)
        if one is not None and (one.bits is None or one.part or one.bits.interval.low > TELLS):
            guessed = "" if one.guessed is None else f", right {percent(one.guessed.value)} of the time"
            warned.append(f"{name} is kept as it is, and it tells{guessed}; make it public, or drop it.")
    order = [one.name for one in found.columns] if found is not None else []
    rest = [name for name in desk.columns if name not in order]
    return {
        "told": told,
        "ordered": [(desk.columns.index(name), name) for name in [*rest, *order]],
        "warned": warned,
        "found": found,
        "partly": found is not None and desk.n_records is not None and found.n_records < desk.n_records,
    }


def asked_of(desk: Desk, way: str, measure: str) -> Asked:
    """What the roles ask for."""
    if desk.inspection is None:
        raise InvalidInputError("Look at the table first: choose what is private, and press Look.")
    public = tuple(desk.named("public"))
    if not public:
        raise InvalidInputError("No column is public, so there is nothing to release; choose some in Look.")
    if way not in ("columns", "table") or measure not in LEAKAGES:
        raise InvalidInputError("Choose what is released and how telling is measured.")
    task = next(iter(desk.named("task")), None)
    return Asked(
        desk.path,
        tuple(desk.named("private")),
        public,
        task,
        tuple(desk.named("keep")),
        way,
        measure,
        desk.seed,
    )


def _start_choose(desk: Desk, form: dict[str, str]) -> None:
    asked = asked_of(desk, form.get("way", ""), form.get("measure", ""))
    desk.choice = desk.report = desk.taken = None

    desk.n_choices += 1
    caveat = AGAIN.format(desk.n_choices) if desk.n_choices > 1 else ""

    def after(found: Choice) -> None:
        desk.asked, desk.choice = asked, replace(found, caveat=caveat)
        knee = found.frontier.knee.utility
        desk.at = min(range(STEPS + 1), key=lambda i: abs(found.stops[i].kept - knee))

    desk.start("choose", after, choose, asked)


def _choose_values(desk: Desk) -> dict[str, Any]:
    public = desk.named("public")
    values: dict[str, Any] = {
        "public": public,
        "way": desk.asked.way if desk.asked else "columns" if len(public) <= 2 else "table",
        "measure": desk.asked.measure if desk.asked else "information",
        "chart": None,
    }
    if desk.choice is not None:
        values |= {"chart": chart_of(desk.choice), **_stop_values(desk)}
    return values


def _stop_values(desk: Desk) -> dict[str, Any]:
    choice = desk.choice
    stop = choice.stops[desk.at]
    return {
        "choice": choice,
        "stop": stop,
        "here": chart_of(choice)["here"][desk.at],
        "said": sentence(choice, desk.at),
        "bar": (choice.without, stop.right, choice.raw),
        "middle": "with the release",
        "raw_word": "raw" if choice.way == "columns" else "kinds of records",
        "symbols": stop.symbols,
        "n_symbols": stop.n_symbols,
    }


def sentence(choice: Choice, at: int) -> str:
    """What happens at a stop, for somebody who knows no information theory."""
    stop = choice.stops[at]
    raw = "with the raw columns" if choice.way == "columns" else "with the kinds of records themselves"
    return (
        f"An attacker is right about {choice.private} ≈\u00a0{percent(stop.right)} of the time; without the "
        f"release ≈\u00a0{percent(choice.without)}, {raw} ≈\u00a0{percent(choice.raw)}."
    )


def _move(desk: Desk, form: dict[str, str]) -> Response:
    at = form.get("at", "")
    if desk.choice is None or not at.isascii() or not at.isdigit() or len(at) > 3 or int(at) > STEPS:
        raise InvalidInputError("The slider has no such place; load the page again.")
    if int(at) != desk.at:
        desk.at, desk.report, desk.taken = int(at), None, None
    return render("stop.html", desk=desk, **_stop_values(desk))


def _start_check(desk: Desk, form: dict[str, str]) -> None:
    if desk.choice is None or desk.asked is None:
        raise InvalidInputError("Choose a release first.")
    desk.limit = read_share(form.get("max_success", ""))
    desk.report = desk.taken = None

    def after(found: Checked) -> None:
        desk.report, desk.repeated = found.report, found.repeated

    desk.start("check", after, check, desk.asked, desk.choice, desk.at)


def read_share(text: str) -> float | None:
    """70 and 70 % as 0.7; nothing as None."""
    given = text.strip().removesuffix("%").strip()
    if not given:
        return None
    try:
        share = float(given) / 100
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise InvalidInputError("The limit is a share in per cent, such as 70.")
    return share


def verdicts_of(desk: Desk) -> tuple[Verdict, ...]:
    """What the gate says, where there is a limit and an audit."""
    if desk.report is None or desk.limit is None:
        return ()
    return tuple(desk.report.published().gate(max_success=desk.limit))


def _check_values(desk: Desk) -> dict[str, Any]:
    values: dict[str, Any] = {"report": None, "verdicts": verdicts_of(desk), "repeated": ()}
    if desk.choice is not None:
        guess = max(desk.choice.stops[desk.at].guess.values())
        values["limit"] = f"{100 * (desk.limit or min(guess, 1.0)):.1f}"
    if desk.report is not None:
        report = desk.report.published()
        first = wording.first_seconds(report)
        values |= {
            "report": report,
            "lines": wording.first_lines(report),
            "bar": first["bar"],
            "middle": "with the release",
            "more_lines": first["lines"],
            "strongest": _rows(report),
            "limits": wording.limits(report),
            "repeated": [
                (k, f"{wording.SIGNS[one.kind]} {wording.number(one.value, 'bits')}")
                for k, one in desk.repeated
            ],
        }
    return values


def _rows(report: Any) -> list[Any]:
    from ..report.html import adversary_rows

    return [
        row
        for name in wording.attributes(report)
        for row in adversary_rows(report, name)
        if "success" in row["found"]
    ]


def _start_take(desk: Desk, form: dict[str, str], places: Places) -> None:
    if desk.choice is None or desk.asked is None:
        raise InvalidInputError("Choose a release first.")
    form_kind, dialect = form.get("form", "csv"), form.get("dialect", "duckdb")
    if form_kind not in FORMATS or dialect not in DIALECTS:
        raise InvalidInputError("Choose CSV or Parquet, and one of the databases.")
    folder = places.new_folder(form.get("folder", ""))
    key, person = form.get("key", "").strip(), form.get("id", "")
    key_file = places.existing(key) if key else None
    unfinished = staging(str(folder))
    wanted = Wanted(str(folder), unfinished, form_kind, key_file, person or None, dialect)
    if wanted.id is not None and wanted.id not in desk.columns:
        raise InvalidInputError("The column that tells people apart is not in the table; choose one that is.")

    def after(found: Any) -> None:
        desk.taken = found

    desk.unfinished = unfinished
    desk.start("take", after, take, desk.asked, desk.choice, desk.at, desk.report, verdicts_of(desk), wanted)


def _folder(desk: Desk) -> str:
    return f"{desk.shown.split('.')[0].replace(' ', '-')}-release"
