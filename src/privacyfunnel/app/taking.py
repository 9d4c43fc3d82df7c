"""What is taken home: the released table, what releases, how it was judged, and how to repeat all of it."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Any

from ..errors import DataFileError, InvalidInputError, PrivacyFunnelError
from ..measured import rounded_up
from ..sql import DIALECTS
from .choosing import Choice, Stop
from .jobs import CONFIDENCE, Asked, chosen_funnel, chosen_mechanism

__all__ = ["DIALECTS", "FORMATS", "Taken", "Wanted", "staging", "take"]

FORMATS = ("csv", "parquet")
#: Of what is taken, the part that is not to be handed on.
KEEP = "keep"


@dataclass(frozen=True)
class Wanted:
    """Where everything goes, and how it is drawn.

    Attributes
    ----------
    folder, unfinished : str
        New or empty; and beside it, where everything lies until all of it is there.
    form : "csv" or "parquet"
    key, id : str, optional
        A key file and the column that tells people apart: one stable draw for each.
    dialect : str
    """

    folder: str
    unfinished: str
    form: str
    key: str | None
    id: str | None
    dialect: str


@dataclass(frozen=True)
class Taken:
    """What was written, and the command that repeats the release."""

    folder: str
    files: tuple[tuple[str, str], ...]
    command: str
    script: str
    n_records: int
    keyed: bool


def take(asked: Asked, choice: Choice, at: int, report: Any, verdicts: Any, wanted: Wanted) -> Taken:
    """Write the release and all that belongs to it into the folder."""
    if (wanted.key is None) != (wanted.id is None):
        raise InvalidInputError(
            "A key and the column that tells people apart go together; name both, or none."
        )
    unfinished = Path(wanted.unfinished)
    try:
        unfinished.mkdir()
        taken = _written(unfinished, asked, choice, at, report, verdicts, wanted)
        os.replace(unfinished, wanted.folder)  # all of it appears at once
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        if isinstance(error, PrivacyFunnelError):
            raise
        raise DataFileError(
            f"{wanted.folder}: it cannot be written ({error.strerror or type(error).__name__}); name another "
            "folder."
        ) from None
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return taken


def staging(folder: str) -> str:
    """Where files are written until all of them are there, by one tab alone; whoever cancels removes it."""
    path = Path(folder)
    return str(path.with_name(f".{path.name}.{secrets.token_hex(4)}.unfinished"))


def _written(
    folder: Path, asked: Asked, choice: Choice, at: int, report: Any, verdicts: Any, wanted: Wanted
) -> Taken:
    from ..persistence import write_atomic

    files = []

    def name(what: str, file: str) -> str:
        files.append((file, what))
        return str(folder / file)

    final = Path(wanted.folder)
    output = name("the released table, in random order", f"released.{wanted.form}")
    stop = choice.stops[at]
    if asked.way == "table":
        n, what = _release_table(asked, choice, at, wanted, output, name), ["--rule", str(final / "rule")]
    else:
        n = _release_columns(asked, choice, at, wanted, output, name)
        what = ["--mechanism", str(final / "mechanism.json")]
    command = ["pfunnel", "release", asked.path, *what]
    command += [part for column in asked.keep for part in ("--keep", column)]
    if wanted.key is not None and wanted.id is not None:
        command += ["--key", wanted.key, "--id", wanted.id]
    command += ["--shuffle", "--output", str(final / f"again.{wanted.form}")]
    line = join(command)
    script = _script(asked, choice, at, wanted)
    # With the seed of the split and the records somebody could tell the rules of two guesses apart.
    (folder / KEEP).mkdir()
    write_atomic(name("for you alone: repeats everything in Python", f"{KEEP}/repeat.py"), script)
    write_atomic(name("for you alone: releases again", f"{KEEP}/repeat.sh"), f"#!/bin/sh\n{line}\n")
    write_atomic(name("what is guaranteed, in words", "guarantee.md"), _guarantee(choice, stop))
    if report is not None:
        from ..report import save_card

        save_card(report, name("the release card of the check", "card.md"), verdicts)
        files.append(("card.json", "the same for programs"))
    return Taken(wanted.folder, tuple(files), line, script, n, wanted.key is not None)


def _release_columns(asked: Asked, choice: Choice, at: int, wanted: Wanted, output: str, name: Any) -> int:
    import pyarrow as pa

    from ..columns import codebook
    from ..files import open_writer
    from ..persistence import write_atomic

    mechanism = chosen_mechanism(choice, at)
    mechanism.save(
        name(
            "what releases, for who releases and not for the public: a table of probabilities",
            "mechanism.json",
        )
    )
    write_atomic(
        name(f"the same inside a {wanted.dialect} database, for who releases", "release.sql"),
        _sql(mechanism, asked, wanted),
    )
    written = mechanism.release_stream(asked.path, output, asked.public, **_how(asked, wanted))
    with open_writer(name("what each symbol stands for", "codebook.csv"), spreadsheet_safe=True) as writer:
        writer.write(pa.table(codebook(mechanism)))
    return int(written.n_records)


def _release_table(asked: Asked, choice: Choice, at: int, wanted: Wanted, output: str, name: Any) -> int:
    from ..files import open_writer

    funnel = chosen_funnel(choice, at)
    written = funnel.release_stream(asked.path, output, **_how(asked, wanted))
    funnel.save(name("the rule, for new people: a folder", "rule"), part="release")
    with open_writer(name("what each symbol stands for", "codebook.csv"), spreadsheet_safe=True) as writer:
        writer.write(funnel.describe())
    return int(written.n_records)


def _how(asked: Asked, wanted: Wanted) -> dict[str, Any]:
    from ..keys import read_key

    key = None if wanted.key is None else read_key(wanted.key)
    return {"keep": asked.keep, "key": key, "id": wanted.id, "shuffle": True}


def _sql(mechanism: Any, asked: Asked, wanted: Wanted) -> str:
    """Statements for a database that has the table."""
    from ..sql.script import release_script

    head, statements = release_script(
        mechanism,
        (Path(asked.path).name.split(".")[0],),
        list(asked.public),
        dialect=wanted.dialect,  # type: ignore[arg-type]
        keep=asked.keep,
        id=wanted.id,
    )
    return "\n\n".join([head, *statements]) + "\n"


def _guarantee(choice: Choice, stop: Stop) -> str:
    """The certificate without any private value."""
    from ..report.card import plain

    unit = " bit" if choice.measure == "information" else ""
    guesses = [
        f"- Nobody is right about {plain(name)} more often than "
        f"{rounded_up(100 * min(value, 1.0), 1):.1f} % of the time."
        for name, value in stop.guess.items()
    ]
    return "\n".join(
        [
            "# What is guaranteed",
            "",
            f"With {100 * choice.confidence:g} % confidence, against everybody who sees one release of a new "
            "person from the same population and nothing else:",
            "",
            *guesses,
            f"- At most {rounded_up(stop.at_most):.4g}{unit} ({choice.measure}) is told about "
            f"{plain(choice.private)}.",
            "",
            f"Certified by {choice.n_held_out:,} records that had no part in making the rule, for all places "
            "of the slider together, so that it holds for the one that was chosen after looking. Each of "
            "these statements has the confidence by itself.",
            *(["", choice.caveat] if choice.caveat else []),
            "",
            "It is not about a second release of the same people (but for draws by a key), other "
            "populations, columns that are handed out unchanged beside it, or attributes that nobody named.",
            "",
        ]
    )


def _script(asked: Asked, choice: Choice, at: int, wanted: Wanted) -> str:
    """Python that makes the same from the same records, compares, and releases once more."""
    again = os.path.join(wanted.folder, f"again.{wanted.form}")
    stored = os.path.join(wanted.folder, "rule" if asked.way == "table" else "mechanism.json")
    imports, making = _making_table(asked, choice, at) if asked.way == "table" else _making_columns(asked, at)
    how = [f"keep={list(asked.keep)!r}", "shuffle=True"]
    if wanted.key is not None:
        imports.append("from privacyfunnel.keys import read_key")
        how += [f"key=read_key({wanted.key!r})", f"id={wanted.id!r}"]
    public = "" if asked.way == "table" else f"{list(asked.public)!r}, "
    lines = [
        '"""Repeats a release of `pfunnel app`: makes what releases from the same records, and releases."""',
        "",
        "import privacyfunnel as pf",
        *imports,
        "",
        *making,
        f"stored = pf.load({stored!r})",
        "same = made.fingerprint == stored.fingerprint",
        'print("Made again to the last bit." if same else "Made again, and not quite the same: the search '
        'ends by the clock, and machines round differently. What is stored releases.")',
        f"stored.release_stream({asked.path!r}, {again!r}, {public}{', '.join(how)})",
    ]
    return "\n".join(lines) + "\n"


def _making_columns(asked: Asked, at: int) -> tuple[list[str], list[str]]:
    return ["from privacyfunnel.app.jobs import Asked, choose, chosen_mechanism"], [
        "# The seed splits the records; draws for people do not depend on it.",
        f"asked = {asked!r}",
        f"made = chosen_mechanism(choose(asked), {at})",
    ]


def _making_table(asked: Asked, choice: Choice, at: int) -> tuple[list[str], list[str]]:
    columns = [*asked.public, *asked.private, *([asked.task] if asked.task else [])]
    task = f", task={asked.task!r}" if asked.task else ""
    return [
        "from privacyfunnel.certified import CertifiedFunnel",
        "from privacyfunnel.files import open_table",
        "from privacyfunnel.files.typed import read_typed",
    ], [
        f"table = open_table({asked.path!r})",
        f"wanted = {columns!r}",
        "people = read_typed(table).select([name for name in table.columns if name in wanted])",
        "# The seed splits the records; draws for people do not depend on it.",
        f"funnel = CertifiedFunnel(None, leakage={asked.measure!r}, confidence={CONFIDENCE}, "
        f"random_state={asked.seed})",
        f"funnel.fit(people, private={list(asked.private)!r}{task})",
        f"chosen = funnel.choose(max_leakage={choice.stops[at].at_most!r})",
        "print(chosen.verdict_)",
        "made = chosen.rule_",
    ]
