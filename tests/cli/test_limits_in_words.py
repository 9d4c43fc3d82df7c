"""Limits in people's words become limits of measures, and are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from cli_tables import Run

import privacyfunnel as pf
from privacyfunnel.cli.budget import BUDGETS, Budget, share
from privacyfunnel.errors import InfeasibleError

SOLVE = ("--public", "city", "--private", "sex", "--seed", 0)


@pytest.mark.parametrize(
    ("text", "number"), [("70%", 0.7), ("0.7", 0.7), (" 5 % ", 0.05), (".5", 0.5), ("100%", 1.0), ("0", 0.0)]
)
def test_shares(text: str, number: float) -> None:
    assert share(text) == pytest.approx(number)
    assert share(None) is None


@pytest.mark.parametrize("text", ["70", "-1%", "101%", "x", "", "1e2%", "nan"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"70% or 0\.7"):
        share(text)


def test_every_way_to_say_it() -> None:
    joint = pf.Joint([[0.3, 0.1], [0.2, 0.4]], y_names="sex")
    told = joint.mutual_information
    expected = {
        "max_success": {"max_leakage": 0.6, "leakage": "success"},
        "max_advantage": {"max_leakage": 0.6, "leakage": "success"},
        "max_parity": {"max_leakage": 0.1, "leakage": "parity"},
        "remove": {"max_leakage": 0.9 * told, "leakage": "information"},
    }
    for kind in BUDGETS:
        budget = Budget(kind, 0.6 if kind == "max_success" else 0.1)
        arguments = budget.arguments(joint)
        assert arguments["max_leakage"] == pytest.approx(expected[kind]["max_leakage"])
        assert arguments.get("leakage") == expected[kind].get("leakage")
        assert "the most utility" in budget.words(joint)
        solution = pf.solve(joint, **arguments, rng=0)
        assert solution.leakage <= arguments["max_leakage"] + 1e-9
    with pytest.raises(InfeasibleError, match="right 50 % of the time; allow that or more"):
        Budget("max_success", 0.4).arguments(joint)
    assert Budget("max_advantage", 0.9).arguments(joint)["max_leakage"] == 1.0


def test_success(pfunnel: Run, people: Path) -> None:
    values = json.loads(pfunnel("solve", people, *SOLVE, "--max-advantage", "2%", "--json").out)
    measures = values["measures"]
    assert measures["guess_after"] <= measures["guess_before"] + 0.02 + 1e-9
    assert values["leakage"] == pytest.approx(measures["guess_after"])
    assert (values["scale"]["leakage"], values["asked"]) == ("success", {"max_advantage": 0.02})
    limit = f"{100 * values['leakage']:.4f}%"
    ended = pfunnel("solve", people, *SOLVE, "--max-success", limit)
    assert ended.code == 0
    assert "guess of sex is right for" in ended.out.splitlines()[0]
    assert f"sex is guessed at most {100 * values['leakage']:.4g}" in " ".join(ended.out.split())


def test_a_share_of_the_leak_is_removed(pfunnel: Run, people: Path) -> None:
    values = json.loads(pfunnel("solve", people, *SOLVE, "--remove", "90%", "--json").out)
    assert values["leakage"] == pytest.approx(0.1 * values["mutual_information"], rel=1e-3)
    assert values["scale"]["leakage"] == "information"


def test_a_limit_that_does_nothing_is_named_as_it_was_given(pfunnel: Run, people: Path) -> None:
    ended = pfunnel("solve", people, *SOLVE, "--max-success", "99%")
    assert "The limit --max-success = 99 % does nothing" in " ".join(ended.out.split())
    assert "max-leakage" not in ended.out


def test_parity(pfunnel: Run, people: Path) -> None:
    ended = pfunnel("solve", people, *SOLVE, "--max-parity", "5%")
    assert ended.code == 0
    assert "no rule on z treats two groups of sex" in " ".join(ended.out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-success", "10%"], "--max-success: 10 % is impossible"),
        (["--max-success", "70"], "70% or 0.7"),
        (["--remove", "90%", "--beta", "1"], "got --beta and --remove"),
        (["--max-success", "70%", "--leakage", "parity"], "--max-success is about success"),
        ([], "got none"),
    ],
)
def test_bad_input_is_one_line(pfunnel: Run, people: Path, arguments: list[str], words: str) -> None:
    ended = pfunnel("solve", people, *SOLVE, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert ended.err.count("\n") == 1


def test_a_limit_for_the_population(pfunnel: Run, people: Path) -> None:
    head, *rows = people.read_text().splitlines()
    people.write_text("\n".join([head, *(20 * rows)]) + "\n")
    for limit, at_most, said in (
        (("--max-leakage", 0.3), 0.3, "nobody learns more than 0.3 bit about sex of a new person"),
        (("--max-success", "95%"), 0.95, "more often than 95 % of the time"),
        (("--max-parity", "90%"), 0.9, "more than 90 % differently"),
    ):
        ended = pfunnel("solve", people, *SOLVE, *limit, "--population", "80%")
        assert ended.code == 0, ended.err
        assert said in " ".join(ended.out.split())
        values = json.loads(pfunnel("solve", people, *SOLVE, *limit, "--population", 0.8, "--json").out)
        assert (values["certified"]["at_most"], values["certified"]["confidence"]) == (at_most, 0.8)
        assert values["leakage_interval"] is None
    for limit, said in ((("--remove", "90%"), "--remove is computed"), (("--beta", 2), "pass --max-leakage")):
        ended = pfunnel("solve", people, *SOLVE, *limit, "--population", "95%")
        assert (ended.code, said in ended.err) == (2, True), ended.err
