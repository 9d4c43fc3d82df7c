"""docs/cli.md is what the commands say about themselves, and they say something about every option."""

from __future__ import annotations

from pathlib import Path

import pytest

from privacyfunnel.cli.reference import commands, markdown
from privacyfunnel.cli.running import in_options

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
COMMANDS = commands()


def test_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == markdown(text), "run: python -m privacyfunnel.cli.reference docs/cli.md"


def test_old_sections_go_and_the_introduction_stays() -> None:
    introduction, *sections = PAGE.read_text(encoding="utf-8").split("\n## pfunnel ")
    assert len(sections) == len(COMMANDS)
    page = markdown(f"{introduction}\n## pfunnel forgotten\n\nIt did something.\n")
    assert page == PAGE.read_text(encoding="utf-8")


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
    ("message", "names", "words"),
    [
        ("solve: min_utility = 3 is too much.", ["min_utility"], "--min-utility = 3 is too much."),
        (
            'Joint: missing values; pass missing="letter".',
            ["missing"],
            "missing values; pass --missing letter.",
        ),
        (
            "Change alpha or use method='dca', which is fine.",
            ["alpha", "method"],
            "Change --alpha or use --method dca, which is fine.",
        ),
        ("t.csv: there is no column 'beta'; the closest is 'n_z'.", ["beta", "n_z"], None),
        ("raise max_letters.", ["max_letters"], "raise --max-letters."),
        ("the column max_letters is beta.", [], None),
        (
            "random_state must be a number; rng too.",
            ["random_state", "rng"],
            "--seed must be a number; --seed too.",
        ),
        ("release with shuffle=True.", ["shuffle"], "release with --shuffle."),
        ("device must be a device.", ["device"], "--device must be a device."),
        ("needs a leakage_weight.", ["leakage_weight"], "needs a --leakage-weight."),
        ("one of beta and tol; got beta.", ["beta", "tol"], "one of --beta and --tol; got --beta."),
        ("n_z = 2 and n_z=2.5, tol=3.", ["n_z", "tol"], "--n-z = 2 and --n-z 2.5, --tol 3."),
        ("pass it as private=.", ["private"], "pass it as --private."),
        ("level must be 1; n_z_max is none.", ["level", "n_z"], None),
        ("n_components must be 1.", ["n_components"], "--components must be 1."),
    ],
)
def test_messages_speak_of_options(message: str, names: list[str], words: str | None) -> None:
    assert in_options(message, names) == (message if words is None else words)
