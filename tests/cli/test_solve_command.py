"""pfunnel solve: the numbers are those of the mechanism it saves, whatever the format of the table."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from math import log2
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_tables import HEADER, Run, make_records, write_csv

import privacyfunnel as pf
from privacyfunnel.cli.output import bits

ASK = ("--public", "city", "--private", "sex", "--min-utility", 1, "--seed", 0, "--method", "greedy")


def slow_information(pairs: Counter[tuple[object, object]]) -> float:
    """I(A;B) in bits, from weights of pairs, by its definition."""
    total = sum(pairs.values())
    a: Counter[object] = Counter()
    b: Counter[object] = Counter()
    for (left, right), weight in pairs.items():
        a[left] += weight
        b[right] += weight
    return sum(w / total * log2(w * total / (a[x] * b[y])) for (x, y), w in pairs.items() if w)


def test_numbers_are_those_of_the_saved_mechanism(pfunnel: Run, people: Path, tmp_path: Path) -> None:
    saved = tmp_path / "m.json"
    ended = pfunnel("solve", people, *ASK, "--output", saved, "--json")
    assert ended.code == 0
    values = json.loads(ended.out)
    mechanism = pf.load(saved)
    with_x: Counter[tuple[object, object]] = Counter()
    with_y: Counter[tuple[object, object]] = Counter()
    for _, city, sex, _ in make_records():
        row = mechanism.p_z_given_x[mechanism.x_labels.index(city)]
        for z, p in enumerate(row):
            with_x[city, z] += p
            with_y[sex, z] += p
    assert values["utility"] == pytest.approx(slow_information(with_x), abs=1e-12)
    assert values["leakage"] == pytest.approx(slow_information(with_y), abs=1e-12)
    assert values["utility"] >= 1 - 1e-9
    assert values["n_records"] == 60
    assert values["public"] == ["city"]
    assert values["target"] == {"min_utility": 1.0}
    best = Counter({z: max(with_y["f", z], with_y["m", z]) for z in range(mechanism.n_z)})
    assert values["measures"]["guess_after"] == pytest.approx(sum(best.values()) / 60)
    assert 0 <= values["leakage_interval"]["low"] <= values["leakage_interval"]["high"]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet"])
def test_every_format_gives_the_same_result(pfunnel: Run, people: Path, name: str) -> None:
    table = people.with_name(name)
    rows = make_records()
    if name == "t.parquet":
        pq.write_table(pa.table({h: [row[i] for row in rows] for i, h in enumerate(HEADER)}), table)
    elif name == "t.tsv":
        lines = [HEADER, *([*row[:3], "-"] for row in rows)]
        table.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    elif name == "t.csv.gz":
        table.write_bytes(gzip.compress(people.read_bytes()))
    else:
        table.write_bytes(b"\xef\xbb\xbf" + people.read_bytes().replace(b"\n", b"\r\n"))
    reference = json.loads(pfunnel("solve", people, *ASK, "--json").out)
    ended = pfunnel("solve", table, *ASK, "--json")
    assert ended.code == 0, ended.err
    values = json.loads(ended.out)
    for name_ in ("n_records", "utility", "leakage", "leakage_interval", "measures"):
        assert values[name_] == reference[name_]


def test_prints_a_readable_result(pfunnel: Run, people: Path, tmp_path: Path) -> None:
    ended = pfunnel("solve", people, *ASK, "--output", tmp_path / "m.json")
    assert ended.err.startswith(
        "warning: 60 records for 4 letters of city (15.0 a letter) are few: on new people"
    )
    assert ended.err.count("\n") == 1
    lines = ended.out.splitlines()
    told = re.fullmatch(
        r"The release keeps [\d.]+ % of the public information\. It leaks ([\d.]+) bit about sex on these 60 "
        r"records, and ([\d.]+) to ([\d.]+) bit on new people \(95 % interval\)\.",
        lines[0],
    )
    assert told is not None
    values = json.loads(pfunnel("solve", people, *ASK, "--json").out)
    interval = values["leakage_interval"]
    assert told.groups() == tuple(map(bits, (values["leakage"], interval["low"], interval["high"])))
    assert lines[1] == f"{people}: 60 records; city (4 letters) is public, sex (2 letters) is private."
    for name in ("Asked for", "Utility", "Leakage", "Adversary", "Method", "Status", "Saved"):
        assert any(line.strip().startswith(name) for line in lines), name
    assert "greedy" in ended.out
    assert f"pfunnel release {people} --mechanism {tmp_path / 'm.json'} --output" in " ".join(
        ended.out.split()
    )
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (("--beta", 0.1), "no release has I(Z;Y) − 0.1 · I(Z;X) below "),
        (("--min-utility", 1.5), "every release of that utility leaks at least "),
        (("--max-leakage", 0.01), "no release of that leakage has a utility above "),
    ],
)
def test_numbers_say_what_they_are(pfunnel: Run, people: Path, target: tuple[str, float], words: str) -> None:
    ask = ("--public", "city", "--private", "sex", "--method", "exact", *target, "--seed", 0)
    text = pfunnel("solve", people, *ask).out
    values = json.loads(pfunnel("solve", people, *ask, "--json").out)
    (proved,) = [line for line in text.splitlines() if line.strip().startswith("Proved")]
    bound = abs(values["lower_bound"]) if target[0] == "--max-leakage" else values["lower_bound"]
    assert f"{words}{bound:.5f} bit" in proved
    assert text.count("exact on these records") == 3
    assert "95 % interval for the population of these records" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00000"), (-0.0, "0.00000"), (3e-17, "0.00000"), (8.14e-7, "8.1e-07"), (1.25, "1.25000")],
)
def test_bits_keep_small_numbers(value: float, text: str) -> None:
    assert bits(value) == text


def test_several_columns_and_missing_values(pfunnel: Run, tmp_path: Path) -> None:
    rows = make_records()
    rows[5][1] = ""
    table = write_csv(tmp_path / "t.csv", rows)
    ask = (
        "--public",
        "city",
        "--public",
        "note",
        "--private",
        "sex",
        "--max-leakage",
        0.01,
        "--method",
        "greedy",
    )
    refused = pfunnel("solve", table, *ask)
    assert refused.code == 2
    assert "'city' (1)" in refused.err
    assert "--missing letter" in refused.err
    saved = tmp_path / "m.json"
    ended = pfunnel("solve", table, *ask, "--missing", "letter", "--json", "-o", saved)
    assert ended.code == 0, ended.err
    values = json.loads(ended.out)
    assert values["leakage"] <= 0.01 + 1e-9
    assert values["n_x"] == len({(row[1], row[3]) for row in rows})
    assert any(None in label for label in pf.load(saved).x_labels)


def test_default_method_is_said(pfunnel: Run, people: Path) -> None:
    ended = pfunnel("solve", people, "--public", "city", "--private", "sex", "--beta", 0.2, "--n-starts", 2)
    assert ended.code == 0, ended.err
    assert "chosen by auto" in ended.out
    assert "I(Z;Y) − 0.2 · I(Z;X)" in ended.out


def test_a_limit_that_does_nothing_is_said(pfunnel: Run, people: Path) -> None:
    ask = ("--public", "city", "--private", "sex", "--seed", 0, "--max-leakage")
    ended = pfunnel("solve", people, *ask, 0.9)
    assert ended.code == 0, ended.err
    assert "The limit --max-leakage = 0.9 bit does nothing" in " ".join(ended.out.split())
    assert "does nothing" not in pfunnel("solve", people, *ask, 0.01).out


def test_early_stop_is_one_warning(pfunnel: Run, people: Path) -> None:
    ask = ("--public", "city", "--private", "sex", "--beta", 0.3, "--seed", 0, "--method", "dca")
    ended = pfunnel("solve", people, *ask, "--n-starts", 1, "--max-steps", 1, "--tol", 0, "--json")
    assert ended.code == 0
    assert not json.loads(ended.out)["converged"]
    (early,) = [line for line in ended.err.splitlines() if line.startswith("warning: dca: ")]
    assert "--max-steps" in early


def test_alpha_and_n_z_may_be_repeated(pfunnel: Run, people: Path) -> None:
    ask = ("--public", "city", "--private", "sex", "--beta", 0.3, "--seed", 0, "--method", "dca-ridge")
    more = ("--alpha", 0.1, "--alpha", 1, "--n-z", 2, "--n-z", 3, "--n-starts", 1, "--json")
    ended = pfunnel("solve", people, *ask, *more)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["n_z"] in (2, 3)


def test_records_sorted_by_the_private_column_are_warned_of(pfunnel: Run, people: Path) -> None:
    ask = ("--public", "city", "--private", "sex", "--beta", 0.2, "--method", "greedy")
    assert "neighbours" not in pfunnel("solve", people, *ask).err
    in_order = write_csv(people, sorted(make_records(), key=lambda row: row[2]))
    ended = pfunnel("solve", in_order, *ask, "--keep", "note")  # which reads the records again
    assert ended.code == 0
    (warning,) = [line for line in ended.err.splitlines() if "neighbours" in line]
    assert warning.startswith("warning: neighbours among the records agree in sex 98.3 % of the time")
    assert warning.endswith("release them with --shuffle.")


@pytest.mark.parametrize("command", ["solve", "frontier"])
def test_a_private_column_of_one_value_is_refused(pfunnel: Run, people: Path, command: str) -> None:
    write_csv(people, [[*row, "k"] for row in make_records()], [*HEADER, "same"])
    target = ("--beta", 0.5) if command == "solve" else ()
    ended = pfunnel(command, people, "--public", "city", "--private", "same", *target)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: 'same' has one value in all records of ")
    assert ended.err.count("\n") == 1


def test_what_kept_columns_tell_is_measured(pfunnel: Run, people: Path) -> None:
    """Against the mechanism that was saved, on the joint of all columns."""
    rows = [[*row, row[1] + row[2], str(i)] for i, row in enumerate(make_records())]
    write_csv(people, rows, [*HEADER, "both", "number"])
    saved = people.with_name("m.json")
    ask = ("solve", people, "--public", "city", "--private", "sex", "--beta", 0.5, "--method", "greedy")
    keep = ("--keep", "note", "--keep", "both")
    ended = pfunnel(*ask, *keep, "-o", saved, "--json")
    note, both, all_of_them = json.loads(ended.out)["kept"]
    assert note["columns"] == ["note"]
    joint = pf.Joint.from_samples([row[3] for row in rows], [row[2] for row in rows], missing="letter")
    assert note["leakage"] == pytest.approx(joint.mutual_information)
    assert note["guess"] == pytest.approx(pf.measure(pf.TableMechanism.identity(joint), joint).guess_after)
    assert (both["guess"], both["guess_with_z"]) == (1.0, 1.0)
    assert all_of_them["columns"] == ["note", "both"]
    shown = " ".join(pfunnel(*ask, *keep, "-o", saved).out.split())
    assert "both alone lets an attacker guess sex 100.0 % of the time, together with z 100.0 %" in shown
    assert "--output released.csv --shuffle --keep note --keep both" in shown
    assert json.loads(pfunnel(*ask, "--json").out)["kept"] == []
    own = json.loads(pfunnel(*ask, "--keep", "number", "--json").out)["kept"][0]
    assert (own["guess"], own["rare_share"]) == (1.0, 1.0)
    assert "100 % have a value that fewer than 10 share" in " ".join(
        pfunnel(*ask, "--keep", "number").out.split()
    )


def test_kept_columns_of_too_many_values_are_named(
    pfunnel: Run, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The public column alone is small enough; what is kept is not, which is said before the work."""

    def work(*args: object, **more: object) -> None:
        raise AssertionError("solved")

    monkeypatch.setattr("privacyfunnel.discrete.solve.solve", work)
    write_csv(people, [[*row, str(i)] for i, row in enumerate(make_records())], [*HEADER, "number"])
    saved = people.with_name("m.json")
    ask = ("solve", people, "--public", "city", "--private", "sex", "--beta", 0.5, "--method", "greedy")
    ended = pfunnel(*ask, "--keep", "number", "--max-letters", 20, "-o", saved)
    assert (ended.code, ended.out, saved.exists()) == (2, "", False)
    message = ended.err.splitlines()[-1]
    assert message.startswith("error: what --keep 'number' tells with z cannot be counted: ")
    assert "'city' × 'number' has more than 20 distinct letters" in message
    assert message.endswith("or raise --max-letters.")


def test_a_solve_is_not_lost_to_what_is_kept(
    pfunnel: Run, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many symbols there are is known after the solve only."""
    monkeypatch.setattr("privacyfunnel.auditing.measures.kept.MOST_ENTRIES", 13)
    saved = people.with_name("m.json")
    ask = ("solve", people, "--public", "city", "--private", "sex", "--beta", 9, "--method", "greedy")
    ended = pfunnel(*ask, "--keep", "note", "-o", saved, "--json")
    assert (ended.code, saved.exists()) == (0, True), ended.err
    assert json.loads(ended.out)["kept"] == []
    assert "warning: what note tells with z was not measured: 6 values of the kept columns with" in ended.err


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("sex", "people.csv: column 'sex' is private"),
        ("city", "people.csv: column 'city' is public"),
        ("nte", "people.csv: there is no column 'nte'; the closest is 'note'"),
    ],
)
def test_columns_that_cannot_be_kept(pfunnel: Run, people: Path, column: str, message: str) -> None:
    saved = people.with_name("m.json")
    ended = pfunnel(
        "solve", people, "--public", "city", "--private", "sex", "--beta", 1, "--keep", column, "-o", saved
    )
    assert ended.code == 2
    assert message in ended.err
    assert not saved.exists()


def test_a_file_that_tells_of_people_who_are_alone_with_a_letter_is_warned_of(
    pfunnel: Run, people: Path, tmp_path: Path
) -> None:
    table = write_csv(tmp_path / "t.csv", [*make_records(), ["060", "Nuuk", "f", ""]])
    saved = ("--output", tmp_path / "m.json")
    told = pfunnel("solve", table, *ASK, *saved)
    assert told.code == 0
    assert "warning: " in told.err
    assert "1 of 5 letters of city has fewer than 10 records" in " ".join(told.err.split())
    assert "fewer than 10" not in pfunnel("solve", table, *ASK).err  # nothing is saved
    assert "fewer than 10" not in pfunnel("solve", people, *ASK, *saved).err
