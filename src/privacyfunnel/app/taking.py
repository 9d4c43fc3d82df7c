"""What is taken home: the released table, what releases, how it was judged, and how to repeat all of it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Any

from ..errors import InvalidInputError
from ..progress import progress_bar
from .choosing import Choice, Stop
from .jobs import CONFIDENCE, Asked, chosen_funnel, chosen_mechanism, read_people

DIALECTS = ("duckdb", "postgres", "sqlite")
FORMATS = ("csv", "parquet")


@dataclass(frozen=True)
class Wanted:
    """Where everything goes, and how it is drawn.

    Attributes
    ----------
    folder : str
        New or empty; nothing is written anywhere else.
    form : "csv" or "parquet"
    key, id : str, optional
        A key file and the column that tells people apart: one stable draw for each. For columns only.
    dialect : str
    """

    folder: str
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


def take(asked: Asked, choice: Choice, at: int, report: Any, verdicts: Any, wanted: Wanted) -> Taken:
    """Write the release and all that belongs to it into the folder."""
    if asked.way == "table" and wanted.key is not None:
        raise InvalidInputError(
            "A whole table is drawn anew each time, and no key goes with it; leave the key empty, and "
            "hand out the stored file."
        )
    if (wanted.key is None) != (wanted.id is None):
        raise InvalidInputError(
            "A key and the column that tells people apart go together; name both, or none."
        )
    unfinished = staging(wanted.folder)
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        taken = _written(unfinished, asked, choice, at, report, verdicts, wanted)
        os.replace(unfinished, wanted.folder)  # all of it appears at once
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return taken


def staging(folder: str) -> Path:
    """Where files are written until all of them are there; whoever cancels removes it."""
    path = Path(folder)
    return path.with_name(f".{path.name}.unfinished")


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
        n = _release_table(asked, choice, at, output, name)
        command = ["pfunnel", "release", asked.path, "--rule", str(final / "rule")]
        command += [part for column in asked.keep for part in ("--keep", column)]
    else:
        mechanism = chosen_mechanism(choice, at)
        mechanism.save(name("what releases: a table of probabilities", "mechanism.json"))
        write_atomic(
            name(f"the same inside a {wanted.dialect} database", "release.sql"),
            _sql(mechanism, asked, wanted),
        )
        n = _release_columns(mechanism, asked, wanted, output, name)
        command = ["pfunnel", "release", asked.path, "--mechanism", str(final / "mechanism.json")]
        command += [part for column in asked.keep for part in ("--keep", column)]
        if wanted.key is not None and wanted.id is not None:
            command += ["--key", wanted.key, "--id", wanted.id]
    command += ["--shuffle", "--output", str(final / f"again.{wanted.form}")]
    line = join(command)
    script = _script(asked, choice, at, wanted)
    write_atomic(name("repeats everything in Python", "repeat.py"), script)
    write_atomic(name("releases again from the shell", "repeat.sh"), f"#!/bin/sh\n{line}\n")
    write_atomic(name("what is guaranteed, in words", "guarantee.md"), _guarantee(choice, stop))
    if report is not None:
        from ..report import save_card

        save_card(report, name("the release card of the check", "card.md"), verdicts)
        files.append(("card.json", "the same for programs"))
    return Taken(wanted.folder, tuple(files), line, script, n)


def _release_columns(mechanism: Any, asked: Asked, wanted: Wanted, output: str, name: Any) -> int:
    import pyarrow as pa

    from ..files import open_table, open_writer
    from ..keys import read_key

    table = open_table(asked.path)
    key = None if wanted.key is None else read_key(wanted.key)
    columns = list(dict.fromkeys([*asked.public, *asked.keep, *([wanted.id] if wanted.id else [])]))
    table.require(columns)
    n = 0
    with open_writer(output, shuffle=True) as writer, progress_bar("Releasing") as report:
        for batch in table.batches(columns, letters=asked.public, report=report):
            part = pa.Table.from_batches([batch])
            writer.write(
                mechanism.release_frame(part, list(asked.public), keep=asked.keep, key=key, id=wanted.id)
            )
            n += part.num_rows
    with open_writer(name("what each symbol stands for", "codebook.csv"), spreadsheet_safe=True) as writer:
        from ..columns import codebook

        writer.write(pa.table(codebook(mechanism)))
    return n


def _release_table(asked: Asked, choice: Choice, at: int, output: str, name: Any) -> int:
    from ..files import open_writer
    from ..files.base import BATCH_ROWS

    funnel, frame = chosen_funnel(choice, at), read_people(asked)
    with open_writer(output, shuffle=True) as writer, progress_bar("Releasing") as report:
        for start in range(0, len(frame), BATCH_ROWS):
            writer.write(funnel.release(frame.slice(start, BATCH_ROWS), keep=asked.keep))
            report(start, len(frame))
    funnel.save(name("the rule, for new people: a folder", "rule"), part="release")
    with open_writer(name("what each symbol stands for", "codebook.csv"), spreadsheet_safe=True) as writer:
        writer.write(funnel.describe())
    return len(frame)


def _sql(mechanism: Any, asked: Asked, wanted: Wanted) -> str:
    """Statements for a database that has the table."""
    table = Path(asked.path).name.split(".")[0]
    name = f"mechanism_{mechanism.fingerprint[:12]}"
    select = mechanism.to_sql(
        (table,),
        list(asked.public),
        dialect=wanted.dialect,
        keep=asked.keep,
        id=wanted.id,
        shuffle=True,
        mechanism_table=name,
    )
    head = (
        "-- Numbers come from your key: see docs/sql.md for how to bind it.\n"
        if wanted.id
        else "-- Numbers come from the database, which is no entropy of the operating system.\n"
    )
    create = [f"{one};" for one in mechanism.to_sql_table(name, dialect=wanted.dialect)]
    return "\n\n".join([f"{head}-- Run it once and hand out the result.", *create, f"{select};"]) + "\n"


def _guarantee(choice: Choice, stop: Stop) -> str:
    """The certificate without any private value."""
    unit = " bit" if choice.measure == "information" else ""
    guesses = [
        f"- Nobody is right about {name} more often than {100 * min(value, 1.0):.1f} % of the time."
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
            f"- At most {stop.at_most:.4g}{unit} ({choice.measure}) is told about {choice.private}.",
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
    """Python that makes the same rule from the same records."""
    again = os.path.join(wanted.folder, f"again.{wanted.form}")
    head = '"""Repeats a release of `pfunnel app`: the same rule from the same records."""\n\n'
    if asked.way == "table":
        columns = [*asked.public, *asked.private, *([asked.task] if asked.task else []), *asked.keep]
        task = f", task={asked.task!r}" if asked.task else ""
        keep = f", keep={list(asked.keep)!r}" if asked.keep else ""
        made_from = f".drop_columns({list(asked.keep)!r})" if asked.keep else ""
        return (
            head
            + "from privacyfunnel.certified import CertifiedFunnel\n"
            + "from privacyfunnel.files import open_table, open_writer\n"
            + "from privacyfunnel.files.typed import read_typed\n\n"
            + f"table = open_table({asked.path!r})\n"
            + f"wanted = {columns!r}\n"
            + "people = read_typed(table).select([name for name in table.columns if name in wanted])\n"
            + f"funnel = CertifiedFunnel(None, leakage={asked.measure!r}, confidence={CONFIDENCE}, "
            + f"random_state={asked.seed})  # splits the records; draws for people do not depend on it\n"
            + f"funnel.fit(people{made_from}, private={list(asked.private)!r}{task})\n"
            + f"chosen = funnel.choose(max_leakage={choice.stops[at].at_most!r})\n"
            + "print(chosen.verdict_)\n"
            + f"with open_writer({again!r}, shuffle=True) as to:\n"
            + f"    to.write(chosen.release(people{keep}))  # draws anew: hand out one file only\n"
        )
    how = f"keep={list(asked.keep)!r}"
    if wanted.key is not None:
        how += f", key=read_key({wanted.key!r}), id={wanted.id!r}"
    columns = list(dict.fromkeys([*asked.public, *asked.keep, *([wanted.id] if wanted.id else [])]))
    return (
        head
        + "import pyarrow as pa\n\n"
        + "from privacyfunnel.app.jobs import Asked, choose, chosen_mechanism\n"
        + "from privacyfunnel.files import open_table, open_writer\n"
        + ("from privacyfunnel.keys import read_key\n" if wanted.key is not None else "")
        + f"\nasked = {asked!r}\n"
        + "# The seed splits the records; draws for people do not depend on it.\n"
        + f"mechanism = chosen_mechanism(choose(asked), {at})\n"
        + f"table, columns = open_table(asked.path), {columns!r}\n"
        + f"with open_writer({again!r}, shuffle=True) as to:\n"
        + "    for batch in table.batches(columns, letters=asked.public):\n"
        + "        part = pa.Table.from_batches([batch])\n"
        + f"        to.write(mechanism.release_frame(part, list(asked.public), {how}))\n"
    )
