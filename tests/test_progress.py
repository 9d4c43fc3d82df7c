"""Progress off a terminal: a line a minute, also while one step takes long, and nothing for short work."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest

from privacyfunnel import progress


class Clock:
    """Minutes that pass when the test says so; stands for the event that ends the lines."""

    def __init__(self) -> None:
        self.ended = False
        self._asked, self._goes_on = Event(), Event()

    def wait(self, seconds: float) -> bool:
        """Called by the thread that prints."""
        assert seconds == 60
        self._asked.set()
        self._goes_on.wait()
        self._goes_on.clear()
        return self.ended

    def set(self) -> None:
        self.ended = True
        self._goes_on.set()

    def pass_a_minute(self) -> None:
        """Return once the line of that minute was printed."""
        self._asked.wait()
        self._asked.clear()
        self._goes_on.set()
        self._asked.wait()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "Event", lambda: clock)
    return clock


def test_a_line_a_minute(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress_bar("Solving with dca") as report:
        clock.pass_a_minute()
        report(43, 100)
        clock.pass_a_minute()
        clock.pass_a_minute()  # the same step still
        report(2, 3, "trees on Z")
        clock.pass_a_minute()
    assert capsys.readouterr().err.splitlines() == [
        "Solving with dca: 1 min",
        "Solving with dca: 43 %, 2 min",
        "Solving with dca: 43 %, 3 min",
        "Solving with dca: 66 %, trees on Z, 4 min",
    ]


def test_work_of_unknown_length(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.status_line("Solving with exact") as show:
        show("gap 0.1 bit")
        clock.pass_a_minute()
    assert capsys.readouterr().err == "Solving with exact: gap 0.1 bit, 1 min\n"


def test_short_work_prints_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress_bar("Reading") as report:
        report(1, 1)
    assert clock.ended
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shown", [progress.progress_bar, progress.status_line])
def test_switched_off(monkeypatch: pytest.MonkeyPatch, shown: Callable[..., object]) -> None:
    monkeypatch.setattr(progress, "Thread", None)  # nothing may begin
    with shown("Reading", False) as report:  # type: ignore[attr-defined]
        report(*([1, 2] if shown is progress.progress_bar else ["some"]))


def test_the_work_may_fail(clock: Clock) -> None:
    with pytest.raises(ZeroDivisionError), progress.progress_bar("Reading"):
        raise ZeroDivisionError
    assert clock.ended


def test_long_work_says_how_long_once_its_pace_is_known(monkeypatch, capsys):
    now = iter([0.0, 2.0, 4.0, 100.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    seen = []
    report = progress.saying_how_long(lambda *told: seen.append(told), "Training on 9 records")
    for done in (1, 21, 41, 61):
        report(done, 2021, "x")
    assert capsys.readouterr().err == "Training on 9 records: about 3 minutes (a rough guess).\n"
    assert seen == [(done, 2021, "x") for done in (1, 21, 41, 61)]


@pytest.mark.parametrize(("total", "enabled"), [(221, None), (9999, False), (9999, True)])
def test_short_work_and_shown_work_are_not_announced(total, enabled, monkeypatch, capsys):
    now = iter([0.0, 2.0, 4.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    report = progress.saying_how_long(lambda *told: None, "Training", enabled)
    for done in (1, 21, 41):
        report(done, total)
    assert capsys.readouterr().err == ""


def test_whoever_listens_hears_it_instead_of_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[tuple[str, int, int]] = []
    with progress.listening(lambda *told: heard.append(told)):
        with progress.progress_bar("Counting") as report:
            report(1, 4)
            report(2, 4, "here")
        with progress.status_line("Solving") as show:
            show("a bound of 3")
        with progress.progress_bar("Silent", False) as report:
            report(1, 2)
    assert heard == [("Counting", 1, 4), ("Counting  here", 2, 4), ("Solving: a bound of 3", 0, 0)]
    assert capsys.readouterr() == ("", "")
