"""docs/cli.md is what the commands say about themselves, and they say something about every option."""

from __future__ import annotations

from pathlib import Path

import pytest

from privacyfunnel.cli.app import command
from privacyfunnel.cli.reference import markdown
from privacyfunnel.cli.running import in_options

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
COMMANDS = command().commands


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), (
        "run: python -m privacyfunnel.cli.reference docs/cli.md"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented(name: str) -> None:
    part = COMMANDS[name]
    assert part.help
    page = PAGE.read_text(encoding="utf-8").split(f"## pfunnel {name}\n")[1].split("\n## ")[0]
    for parameter in part.params:
        if parameter.name == "help":
            continue
        assert parameter.help, f"{name}: {parameter.name} has no help"
        for option in parameter.opts:
            assert option in page or parameter.param_type_name == "argument", option
    assert "--json" in page


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("solve: min_utility = 3 is too much.", "--min-utility = 3 is too much."),
        ('Joint: missing values; pass missing="letter".', "missing values; pass --missing letter."),
        (
            "Change alpha or use method='dca', which is fine.",
            "Change --alpha or use --method dca, which is fine.",
        ),
        ("t.csv: there is no column 'beta'; the closest are 'n_z'.", None),
        ("raise max_letters.", "raise --max-letters."),
    ],
)
def test_messages_speak_of_options(message: str, words: str | None) -> None:
    assert in_options(message) == (message if words is None else words)
