"""Desks: one for each tab, with its table, roles, what was found, and the work that is being done."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidInputError
from .work import Work

#: What a column can be.
ROLES = ("private", "public", "task", "keep", "drop")
#: Seconds that a desk is kept after its tab asked for something last.
KEPT_SECONDS = 600.0
#: Desks at the same time.
MOST_DESKS = 20


@dataclass
class Desk:
    """What somebody works on in one tab.

    Attributes
    ----------
    path, shown : the table, and what it is called on the page
    columns : tuple of str
    roles : role of each column
    dropped : the columns that a look has left out
    inspection, choice, report, repeated, taken : what the four screens found; None before
    n_records : how many there are, where the file tells it
    work, doing : what is being done, and for which screen
    behind : the count of all records, while a first look at some is shown
    at : the stop of the slider
    seed : splits the records; what is drawn for people does not depend on it
    asked : what the choice was made of
    n_choices : frontiers that were computed on these records
    copied : whether the table is an upload
    limit : how often anybody may be right, if one was set
    unfinished : a folder to be removed where writing ends too early
    message, notes : why work failed, and what it warned of
    """

    path: str
    shown: str
    columns: tuple[str, ...]
    roles: dict[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    inspection: Any = None
    choice: Any = None
    report: Any = None
    repeated: Any = ()
    taken: Any = None
    n_records: int | None = None
    work: Work | None = None
    behind: Work | None = None
    doing: str = ""
    after: Callable[[Any], None] | None = None
    at: int = 0
    seed: int = field(default_factory=lambda: secrets.randbelow(2**31))
    name: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    seen: float = field(default_factory=time.monotonic)
    asked: Any = None
    n_choices: int = 0
    copied: bool = False
    limit: float | None = None
    unfinished: str | None = None
    message: str = ""
    notes: tuple[str, ...] = ()

    def named(self, role: str) -> list[str]:
        """The columns with a role, in the order of the table."""
        return [name for name in self.columns if self.roles.get(name) == role]

    @property
    def furthest(self) -> str:
        """The last screen that has something to show; nothing where nothing was done."""
        found = {"take": self.taken, "check": self.report, "choose": self.choice, "look": self.inspection}
        return self.doing if self.busy else next((name for name, one in found.items() if one is not None), "")

    def start(self, screen: str, after: Callable[[Any], None], job: Callable[..., Any], *args: Any) -> None:
        """Begin work; `after` takes its result."""
        if self.busy:
            raise InvalidInputError("There is work under way on this page; wait for it, or cancel it.")
        self.message, self.notes = "", ()
        self.work, self.doing, self.after = Work(job, *args), screen, after

    @property
    def busy(self) -> bool:
        return self.work is not None and self.work.running

    def settle(self) -> None:
        """Take in the result of work that has ended."""
        if self.behind is not None and not self.behind.running:
            behind, self.behind = self.behind, None
            if behind.state == "done":
                self.inspection = behind.result
            else:
                self.message = behind.sentence
        if self.work is None or self.work.running:
            return
        work, after, self.work, self.after = self.work, self.after, None, None
        self.notes = work.notes
        self._tidy()
        if work.state == "done" and after is not None:
            after(work.result)
        else:
            self.message = work.sentence

    def cancel(self) -> None:
        for work in (self.work, self.behind):
            if work is not None:
                work.cancel()
        self._tidy()

    def _tidy(self) -> None:
        """Remove what writing has left behind that ended too early: cancelled, killed, or with the server."""
        if self.unfinished is not None:
            shutil.rmtree(self.unfinished, ignore_errors=True)
            self.unfinished = None


class Desks:
    """All desks of the server, by their names."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._desks: dict[str, Desk] = {}
        self._clock = clock

    def add(self, desk: Desk) -> Desk:
        self.forget()
        if len(self._desks) >= MOST_DESKS:
            raise InvalidInputError(
                f"{MOST_DESKS} tables are open already; close some tabs and wait ten "
                "minutes, or start the app anew."
            )
        desk.seen = self._clock()
        self._desks[desk.name] = desk
        return desk

    def get(self, name: str) -> Desk:
        self.forget()
        desk = self._desks.get(name)
        if desk is None:
            raise InvalidInputError("This page is no longer open; open the table again.")
        desk.seen = self._clock()
        desk.settle()
        return desk

    def begun(self) -> list[Desk]:
        """Those on which something was done: a tab that was closed may go on with one."""
        self.forget()
        return [desk for desk in self._desks.values() if desk.furthest]

    def forget(self) -> None:
        """End what nobody has looked at for long."""
        for name, desk in list(self._desks.items()):
            if self._clock() - desk.seen > KEPT_SECONDS:
                desk.cancel()
                del self._desks[name]

    def close(self) -> None:
        for desk in self._desks.values():
            desk.cancel()
        self._desks.clear()


def read_roles(columns: tuple[str, ...], given: Mapping[str, Any]) -> dict[str, str]:
    """Roles by column from a form whose fields are numbered, since names may hold anything."""
    roles = {}
    for i, name in enumerate(columns):
        role = given.get(f"role-{i}", "public")
        if role not in ROLES:
            raise InvalidInputError("Each column has one of the roles private, public, task, keep and drop.")
        roles[name] = str(role)
    return roles
