"""Bad input: exit code 2, one line on stderr with what, where and the remedy, and no file left behind."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import pyarrow as pa
import pytest
from cli_tables import Run, make_records, write_csv

from privacyfunnel import files
from privacyfunnel.discrete.exact import pricing
from privacyfunnel.files import csv_files

INTERRUPTED = "error: interrupted; no file was left unfinished, run the command again for the result."
SOLVE = ("--public", "a", "--private", "b", "--beta", "0.5", "--method", "greedy")

FILES = {
    "ok.csv": b"a,b,c\n1,x,p\n2,y,q\n1,y,p\n",
    "empty.csv": b"",
    "lines.csv": b"\n\n",
    "header.csv": b"a,b\n",
    "ragged.csv": b'a,b\n1,x\n"2\n2",y\n3\n',
    "latin.csv": b"a,b\n1,x\n2,\xfc\n",
    "utf16.csv": "a,b\n1,x\n".encode("utf-16"),
    "utf16be.csv": b"\xfe\xff" + "a,b\n1,x\n".encode("utf-16-be"),
    "utf16.csv.gz": gzip.compress("a,b\n1,x\n".encode("utf-16")),
    "utf32.csv": "a,b\n1,x\n".encode("utf-32"),
    "semicolon.csv": b"a;b\n1;x;2\n",
    "missing.csv": b'a,b\n1,x\n"",y\n',
    "twice.csv": b"a,a,b\n1,2,x\n",
    "quote.csv": b'a,b\n1,x\n2,"y\n3,x\n4,y\n',
    "quote.tsv": b'a\tb\tc\n1\tx\t1\n2\ty\t"1\n3\tx\t1\n',
    "cut.csv.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03K\xd4",
    "text.csv.gz": b"a,b\n1,x\n",
    "text.parquet": b"a,b\n1,x\n",
    "table.xlsx": b"PK",
}

BAD_FILES = [
    ("nothing.csv", "cannot read the file (No such file or directory); check the name"),
    ("folder", "this is a folder; name a file in it"),
    ("empty.csv", "the file is empty"),
    ("lines.csv", "the file is empty"),
    ("header.csv", "there are no records; pass a table with at least one row"),
    ("ragged.csv", "line 5 has 1 fields and the header has 2; correct it"),
    ("latin.csv", "line 3 is not UTF-8 text; convert the file, for example with: iconv"),
    ("utf16.csv", "the file is UTF-16 text and must be UTF-8; convert it, for example with: iconv -f UTF-16"),
    ("utf16be.csv", "the file is UTF-16 text"),
    ("utf16.csv.gz", "the file is UTF-16 text"),
    ("utf32.csv", "the file is UTF-32 text and must be UTF-8; convert it, for example with: iconv -f UTF-32"),
    ("semicolon.csv", "no column 'a'; the fields seem to be separated by ';'"),
    ("missing.csv", "missing values in column 'a' (1)"),
    ("twice.csv", "two columns are named 'a'; rename one of them"),
    ("quote.csv", "the record that begins in line 3 cannot be read"),
    ("quote.tsv", "the record that begins in line 3 cannot be read"),
    ("cut.csv.gz", "damaged or cut short"),
    ("text.csv.gz", "damaged or cut short"),
    ("text.parquet", "this is not a Parquet file"),
    ("table.xlsx", "the name must end in .csv, .csv.gz, .tsv, .tsv.gz, .parquet or .arrow"),
]

BAD_OPTIONS = [
    (("--public", "aa", "--private", "b", "--beta", "1"), "no column 'aa'; the closest is 'a'"),
    (
        ("--public", "a", "--private", "price", "--beta", "1"),
        "no column 'price'; the columns are 'a', 'b', 'c'",
    ),
    (
        ("--public", "a", "--private", "a", "--beta", "1"),
        "'a' is both public and private; list it on one side",
    ),
    (
        ("--public", "a", "--private", "b"),
        "--max-parity and --remove; got none",
    ),
    ((*SOLVE, "--max-leakage", "0"), "got --beta and --max-leakage"),
    (("--public", "a", "--private", "b", "--beta", "nan"), "'--beta': it must be a finite number"),
    (
        ("--public", "a", "--private", "b", "--max-leakage", "-1"),
        "'--max-leakage': it must be a finite number",
    ),
    (
        ("--public", "a", "--private", "b", "--min-utility", "inf"),
        "'--min-utility': it must be a finite number",
    ),
    (("--public", "a", "--private", "b", "--min-utility", "3"), "--min-utility = 3 bit is more than H(X)"),
    (("--private", "b", "--beta", "1"), "--public"),
    ((*SOLVE, "--method", "dcaa"), "'dcaa' is no method; did you mean dca?"),
    ((*SOLVE, "--alpha", "1"), "--alpha belongs to dca-ridge and dca-sparse; leave it out"),
    ((*SOLVE, "--n-starts", "0"), "--n-starts"),
    ((*SOLVE, "--n-z", "9" * 400, "--method", "dca"), "--n-z must be a whole number, at least 1 and at most"),
    (
        (*SOLVE, "--n-starts", "9" * 400, "--method", "dca"),
        "--n-starts must be a whole number, at least 1 and at most",
    ),
    ((*SOLVE, "--n-jobs", "0"), "--n-jobs must be a positive number"),
    ((*SOLVE, "--seed", "-1"), "--seed"),
    ((*SOLVE, "--missing", "drop"), "'drop' is unknown; choose one of error, letter"),
    ((*SOLVE, "--delimiter", "::"), "must be a single character"),
    ((*SOLVE, "--max-letters", "1"), "more than 1 distinct letters"),
    ((*SOLVE, "--betta", "1"), "--beta"),
    ((*SOLVE, "--output", "none/m.json"), "none/m.json: there is no folder 'none'; create it first"),
    ((*SOLVE, "--output", "folder"), "folder: this is a folder; name a file in it"),
    ((*SOLVE, "--output", "./ok.csv"), "this file is read by this command; give the output another name"),
    (("--public", "a,c", "--private", "b", "--beta", "1"), "name the columns 'a' and 'c' one by one"),
    (("--public", "a", "c", "--private", "b", "--beta", "1"), "what 'c' is for; repeat an option"),
    (("--public", "a", "--private", "b", "--beta", "0,5"), "'--beta': it must be a number, such as 0.5"),
    ((*SOLVE, "--n-starts", "two"), "'--n-starts': it must be a whole number"),
    ((*SOLVE, "--time-limit", "0", "--method", "exact"), "--time-limit must be a finite number, more than 0"),
    ((*SOLVE, "--n-z", "2", "--method", "exact"), "--n-z belongs to the local methods"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def check(pfunnel: Run, folder: Path, args: tuple[object, ...], message: str) -> None:
    before = contents(folder)
    ended = pfunnel(*args)
    assert ended.code == 2, (ended.out, ended.err)
    assert ended.out == ""
    *warnings, line = ended.err.splitlines()
    assert all(warning.startswith("warning: ") for warning in warnings)
    assert line.startswith("error: ")
    assert message in line
    assert "Traceback" not in line
    assert contents(folder) == before


@pytest.mark.parametrize(("name", "message"), BAD_FILES, ids=[name for name, _ in BAD_FILES])
def test_bad_file(pfunnel: Run, folder: Path, name: str, message: str) -> None:
    check(pfunnel, folder, ("solve", name, *SOLVE, "--output", "m.json"), f"{name}: ")
    check(pfunnel, folder, ("frontier", name, *SOLVE[:4], "--plot", "f.png"), message)


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_option(pfunnel: Run, folder: Path, options: tuple[str, ...], message: str) -> None:
    check(pfunnel, folder, ("solve", "ok.csv", *options), message)


def test_unreadable_file(pfunnel: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:  # the superuser, who may run the tests, is refused nothing
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(files, "open", refuse, raising=False)
    message = "ok.csv: cannot read the file (Permission denied); check the name and its permissions"
    check(pfunnel, folder, ("solve", "ok.csv", *SOLVE), message)


@pytest.mark.parametrize(
    ("args", "begins"),
    [
        (
            ("solve", "long.csv", "--public", "a", "--private", "b", "--beta", "1"),
            "long.csv: there is no column",
        ),
        (
            ("solve", "ok.csv", "--public", "x" * 10_000, "--private", "b", "--beta", "1"),
            "ok.csv: there is no col",
        ),
        (("solve", "x" * 10_000, *SOLVE), "x"),
        (("solve", "ok.csv", *SOLVE, "--method", "no such " * 2_000), "Invalid value for '--method'"),
        (("solve", "ok.csv", *SOLVE, "no such " * 2_000), "it is not clear what"),
        (("release", "long.csv", "-m", "m.json", "-o", "out.csv"), "long.csv: 1 of 2 records has a value"),
    ],
)
def test_long_values_are_shortened(pfunnel: Run, folder: Path, args: tuple[str, ...], begins: str) -> None:
    header = "a,b" if args[0] == "release" else f"{'n' * 10_000},b"
    (folder / "long.csv").write_text(f"{header}\n{'v' * 10_000},x\n2,y\n")
    assert pfunnel("solve", "ok.csv", *SOLVE, "-o", "m.json").code == 0
    ended = pfunnel(*args)
    *_, line = ended.err.splitlines()
    assert ended.code == 2
    assert line.startswith(f"error: {begins}")
    assert "…" in line
    assert len(line) < 2100
    if "long.csv" in args:
        assert len(line) < 400


def test_million_letters(pfunnel: Run, folder: Path) -> None:
    lines = "".join(f"{i},{i % 2}\n" for i in range(1_000_000))
    (folder / "ok.csv").write_text("a,b\n" + lines)
    check(
        pfunnel,
        folder,
        ("solve", "ok.csv", *SOLVE),
        "'a' has more than 10,000 distinct letters; group or round",
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--plot", "f.gif"), "f.gif: the name of a figure must end in .png, .pdf or .svg"),
        (("--csv", "f.csv", "--output", "f.csv"), "is another output too; give the output another name"),
        (
            ("--alpha", "0", "--method", "dca-ridge"),
            "--alpha must be a finite number, more than 0; it is 0.0.",
        ),
        (("--n-points", "0"), "--n-points"),
        (("--penalty", "1"), "--penalty belongs to splitting"),
    ],
)
def test_bad_frontier(pfunnel: Run, folder: Path, args: tuple[str, ...], message: str) -> None:
    check(pfunnel, folder, ("frontier", "ok.csv", *SOLVE[:4], *args), message)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("-m", "m.json", "-o", "ok.csv"), "give the output another name"),
        (("-m", "m.json", "-o", "m.json"), "give the output another name"),
        (("-m", "m.json", "-o", "out.txt"), "out.txt: the name must end in"),
        (("-m", "m.json", "-o", "none/out.csv"), "there is no folder 'none'"),
        (("-m", "no.json", "-o", "out.csv"), "no.json: cannot read the file"),
        (("-m", "ok.csv", "-o", "out.csv"), "ok.csv: the file is damaged or was not saved by this library"),
        (("-m", "f.json", "-o", "out.csv"), "f.json: this is a frontier and not a mechanism"),
        (
            ("-m", "m.json", "-o", "out.csv", "--keep-all", "--column", "c"),
            "already has a column 'c'; choose another --column",
        ),
        (("-m", "m.json", "-o", "out.csv", "--keep", "d"), "no column 'd'"),
        (("-m", "m.json", "-o", "out.csv", "--public", "C"), "no column 'C'; the closest is 'c'"),
        (
            ("-m", "m.json", "-o", "out.csv", "--public", "c", "--public", "a"),
            "the mechanism is for 1 column (a) and 2 are named; pass --public for each",
        ),
        (("-m", "m.json", "-o", "-", "--json"), "stdout cannot hold both"),
        (("-o", "out.csv"), "--mechanism"),
    ],
)
def test_bad_release(pfunnel: Run, folder: Path, args: tuple[str, ...], message: str) -> None:
    assert pfunnel("solve", "ok.csv", *SOLVE, "-o", "m.json").code == 0
    assert (
        pfunnel("frontier", "ok.csv", *SOLVE[:4], "--n-points", 1, "--method", "greedy", "-o", "f.json").code
        == 0
    )
    check(pfunnel, folder, ("release", "ok.csv", *args), message)


def full_disk(*args: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("out", ["out.csv", "out.csv.gz", "out.parquet"])
@pytest.mark.parametrize("exists", [False, True])
def test_full_disk_leaves_the_old_file(
    pfunnel: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, out: str, exists: bool
) -> None:
    pfunnel("solve", "ok.csv", *SOLVE, "-o", "m.json")
    if exists:
        (folder / out).write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full_disk)
    message = f"{out}: cannot write the file (No space left on device); choose a folder that"
    check(pfunnel, folder, ("release", "ok.csv", "-m", "m.json", "-o", out), message)


def test_full_disk_in_the_middle(pfunnel: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pfunnel("solve", "ok.csv", *SOLVE, "-o", "m.json")
    monkeypatch.setattr(csv_files.CsvWriter, "write", full_disk)
    check(pfunnel, folder, ("release", "ok.csv", "-m", "m.json", "-o", "out.csv"), "No space left on device")
    monkeypatch.setattr(os, "fdopen", full_disk)
    check(pfunnel, folder, ("solve", "ok.csv", *SOLVE, "-o", "new.json"), "new.json: cannot write the file")


@pytest.mark.parametrize("command", ["solve", "frontier"])
def test_interrupted_solver(
    pfunnel: Run, people: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """In Python the solver returns the best so far; the command ends without a result."""

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pricing.Pricing, "look", interrupt)
    ask = ("--public", "city", "--private", "sex", "--method", "exact", "-o", people.with_name("out.json"))
    ended = pfunnel(command, people, *ask, *(("--beta", 0.1) if command == "solve" else ()))
    assert ended.code == 130
    assert ended.out == ""
    assert ended.err.splitlines()[-1] == INTERRUPTED
    assert [path.name for path in people.parent.iterdir()] == ["people.csv"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, BrokenPipeError])
def test_stopped_in_the_middle(
    pfunnel: Run, tmp_path: Path, people: Path, mechanism: Path, monkeypatch: pytest.MonkeyPatch, stop: type
) -> None:
    write_csv(people, make_records() * 3)
    begun: list[Path] = []

    def write(*args: object) -> None:
        begun.extend(tmp_path.glob(".out.csv.*.tmp"))
        raise stop

    monkeypatch.setattr(csv_files.CsvWriter, "write", write)
    ended = pfunnel("release", people, "-m", mechanism, "-o", people.with_name("out.csv"))
    assert len(begun) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", "people.csv"]
    if stop is KeyboardInterrupt:
        assert ended.code == 130
        assert ended.err.splitlines()[-1] == INTERRUPTED
    else:  # the output is a file: then it is one of those that cannot be written
        assert ended.code == 2


@pytest.mark.parametrize("command", ["solve", "frontier", "release", "audit", "audit codes"])
def test_a_delimiter_without_csv_is_said(pfunnel: Run, people: Path, mechanism: Path, command: str) -> None:
    table = people.with_name("t.parquet")
    with files.open_writer(table) as writer:
        for batch in files.open_table(people).batches():
            writer.write(pa.Table.from_batches([batch]))
    columns = ("--public", "city", "--private", "sex")
    args: dict[str, tuple[object, ...]] = {
        "solve": ("solve", table, *columns, "--beta", 1, "--method", "greedy"),
        "frontier": ("frontier", table, *columns, "--method", "greedy"),
        "release": ("release", table, "-m", mechanism, "-o", people.with_name("z.parquet")),
        "audit": ("audit", mechanism, "--data", table),
        "audit codes": ("audit", table, "--private", "sex", "--drop", "note", "--drop", "id"),
    }
    ended = pfunnel(*args[command], "--delimiter", ";")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].endswith("--delimiter belongs to CSV files; leave it out.")
    if command == "release":  # it is also that of the output
        out = people.with_name("z.csv")
        ended = pfunnel("release", table, "-m", mechanism, "-o", out, "--keep", "id", "--delimiter", ";")
        assert ended.code == 0, ended.err
        assert out.read_text().splitlines()[0] == "id;z"


def test_mistyped_command(pfunnel: Run) -> None:
    ended = pfunnel("slove")
    assert ended.code == 2
    assert ended.err == "error: No such command 'slove'. Did you mean 'solve'? See pfunnel --help.\n"


def test_no_command_shows_the_help(pfunnel: Run) -> None:
    ended = pfunnel()
    assert ended.code == 0
    for name in ("demo", "solve", "frontier", "release"):
        assert name in ended.out
