"""pfunnel protect, and pfunnel release --rule."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_tables import Run

import privacyfunnel as pf
from privacyfunnel.keys import new_key


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """6,000 people whose job tells their sex and their pay; a code with a leading zero is a text."""
    rng = np.random.default_rng(0)
    job = rng.integers(0, 4, 6_000)
    man = rng.random(6_000) < np.array([0.2, 0.4, 0.6, 0.8])[job]
    frame = pd.DataFrame(
        {
            "job": np.array(["nurse", "clerk", "cook", "miner"])[job],
            "hours": np.round(rng.normal(38, 6, 6_000) + 3 * man).astype(int),
            "code": np.array(["007", "010"])[(job > 1).astype(int)],
            "sex": np.where(man, "male", "female"),
            "rich": rng.random(6_000) < np.array([0.2, 0.5, 0.1, 0.7])[job],
        }
    )
    path = tmp_path_factory.mktemp("protect") / "people.csv"
    frame.to_csv(path, index=False)
    return path


def test_the_one_command(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    safe, rule, card = tmp_path / "safe.parquet", tmp_path / "rule", tmp_path / "card.md"
    arguments = ("--private", "sex", "--task", "rich", "--max-leakage", 0.08, "--seed", 0)
    ended = pfunnel("protect", table, *arguments, "--output", safe, "--rule", rule, "--card", card)
    assert ended.code == 0, ended.err
    first = ended.out.splitlines()[0]
    assert first.startswith("From a new person's release nobody guesses sex right more often than")
    assert " bit" not in first
    assert "% of the time (about 5" in first  # of the records that made the rule
    assert "sex ≤ 0.08 bit the most that any adversary learns, with 95 %" in " ".join(ended.out.split())
    assert "job: " in ended.out
    # As it is printed, it does not write over what was just released.
    said = "".join(ended.out.split())
    assert f"pfunnelreleaseNEW.csv--rule{rule}--output{tmp_path / 'more.parquet'}" in said
    released = pd.read_parquet(safe)
    assert list(released.columns) == ["job", "hours", "code", "rich"]
    assert len(released) == 6_000
    assert released["hours"].dtype == "int64"
    assert set(released["code"]) == {"007", "010"}
    book = pd.read_parquet(tmp_path / "safe-codebook.parquet")
    assert book["share"].sum() == pytest.approx(1)
    written = card.read_text()
    assert "- sex: nobody learns more than 0.08 bit about it" in written
    assert "with this confidence each, not together" in written
    assert "| rows | 6,000 in, 6,000 out, in random order |" in written
    assert "| private | sex |\n| task | rich |\n| columns left out | sex (private) |" in written
    assert f"| made by | privacyfunnel {pf.__version__}, {date.today().isoformat()[:4]}" in written
    assert "seed" not in written
    assert f"| SHA-256 of the file | {hashlib.sha256(safe.read_bytes()).hexdigest()} |" in written
    assert "will be replaced" not in ended.err
    # The people of the table are not new, and what is exact about them is for their owner alone.
    assert "not about the people whose rows are in this table" in written
    assert "about new people; those of this table made or certified the rule" in " ".join(ended.out.split())
    (inside,) = re.findall(r"In this table +sex = (\d\d\.\d) %", ended.out)
    assert 50 < float(inside) < 70
    assert inside not in written
    for text in (written, (rule / "rule.json").read_text()):
        assert "female" not in text
    new = tmp_path / "new.csv"
    people = pd.read_csv(table, dtype=str).drop(columns=["sex", "rich"])
    people.loc[0, "job"] = "astronaut"  # goes to the nearest
    people.to_csv(new, index=False)
    ended = pfunnel("release", new, "--rule", rule, "--output", tmp_path / "out.csv", "--shuffle")
    assert ended.code == 0, ended.err
    out = pd.read_csv(tmp_path / "out.csv", dtype=str)
    assert list(out.columns) == ["job", "hours", "code", "rich"]
    assert len(out) == 6_000
    assert "astronaut" not in set(out["job"])


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (("--max-success", "65%"), "sex ≤ 65 %"),
        (("--max-advantage", "8%"), "the most often that any adversary guesses right, with 95 %"),
        (("--remove", "92%"), "sex ≤ 0.0799"),
        (("--max-parity", "20%"), "20.0 % apart, each with 95 % confidence"),
        (("--keep-variance", "40%"), "keeps 4"),
        ((), "no limit was set: the knee of the certified trade-off was taken"),
    ],
)
def test_limits_in_peoples_words(
    pfunnel: Run, table: Path, tmp_path: Path, limit: tuple[str, ...], said: str
) -> None:
    output = tmp_path / "safe.csv"
    ended = pfunnel("protect", table, "--private", "sex", *limit, "--output", output, "--seed", 0)
    assert ended.code == 0, ended.err
    assert said in " ".join(ended.out.split())
    again = pfunnel("protect", table, "--private", "sex", *limit, "-o", output, "--seed", 0, "--json")
    assert "safe.csv is there and will be replaced; if it was handed out" in again.err
    values = json.loads(again.out)
    assert values["n_records"] == 6_000
    assert values["told"][0]["column"] == "job"
    assert values["told"][0]["after"] < values["told"][0]["before"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--private", "sx"), "no column 'sx'"),
        (("--private", "sex", "--max-leakage", 0.0001), "would be needed"),
        (
            ("--private", "sex", "--max-success", "170%"),
            "share of more than 0%, such as 70% or 0.7, and is 170%",
        ),
        (("--private", "sex", "--max-success", "0"), "'--max-success': it is a share of more than 0%"),
        (("--private", "sex", "--max-success", "-1"), "'--max-success': it is a share of more than 0%"),
        (("--private", "sex", "--max-parity", "0%"), "'--max-parity': it is a share of more than 0%"),
        (("--private", "sex", "--max-advantage", "0"), "'--max-advantage': it is a share of more than 0%"),
        (
            ("--private", "sex", "--max-leakage", "0"),
            "'--max-leakage': it must be a finite number, more than 0",
        ),
        (
            ("--private", "sex", "--max-leakage", "-1"),
            "'--max-leakage': it must be a finite number, more than",
        ),
        (("--private", "sex", "--max-leakage", "nan"), "it must be a finite number, more than 0, and is nan"),
        (("--private", "sex", "--max-success", "70%", "--max-parity", "10%"), "pass one of --max-leakage"),
        (("--private", "sex", "--remove", "100%"), "more than 0% and less than 100%"),
        (("--private", "sex", "--keep-variance", "100%"), "cells themselves keep"),
        (
            ("--private", "sex", "--task", "sex", "--max-leakage", 0.1),
            "people.csv: 'sex' is both --private and the --task",
        ),
        (("--private", "sex", "--drop", "sexe"), "no column 'sexe'"),
        (("--private", "sex", "--keep", "sex"), "--keep names 'sex', which is private"),
        (("--private", "sex", "--keep", "name"), "no column 'name'"),
        (("--private", "sex", "--rule", "/dev/null/rule"), "the folder may not be written"),
    ],
)
def test_bad_input_is_one_line(
    pfunnel: Run, table: Path, tmp_path: Path, arguments: tuple[object, ...], said: str
) -> None:
    ended = pfunnel("protect", table, *arguments, "--output", tmp_path / "safe.csv", "--seed", 0)
    assert ended.code == 2
    assert said in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (
            ("--remove", "99.9%"),
            "--remove 99.9% (0.0009998 bit) cannot be certified at 95 %",
        ),
        (("--max-parity", "2%"), "--max-parity 2% cannot be certified at 95 %"),
        (("--max-success", "51.5%"), "--max-success 51.5% (without any release 50."),
        (("--max-advantage", "1%"), "--max-advantage 1%, in all 51."),
        (("--max-leakage", "0.0001"), "--max-leakage 0.0001 bit cannot be certified at 95 %"),
    ],
)
def test_a_refusal_speaks_of_the_limit_as_it_was_typed(
    pfunnel: Run, table: Path, tmp_path: Path, limit: tuple[str, str], said: str
) -> None:
    ended = pfunnel("protect", table, "--private", "sex", *limit, "--output", tmp_path / "a.csv", "--seed", 0)
    assert ended.code == 2
    assert said in ended.err
    assert re.search(r"about [\d,]+ would be needed", ended.err)
    assert "fitting these again until it passes, with other seeds or settings, voids the level" in ended.err
    assert "letters" not in ended.err


def test_what_is_guessed_inside_the_table_is_exact(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    """It is what the drawn symbols of many releases come to."""
    from privacyfunnel.cli.protect_told import guessed_inside
    from privacyfunnel.files import open_table
    from privacyfunnel.files.typed import read_typed

    frame = read_typed(open_table(str(table)))
    funnel = pf.certified.CertifiedFunnel(0.08, random_state=0).fit(frame, private="sex", task="rich")
    sex = pd.factorize(frame["sex"].to_pandas())[0]
    rng = np.random.default_rng(0)
    counts = np.zeros((funnel.rule_.n_symbols, 2))
    for _ in range(40):
        np.add.at(counts, (funnel.transform(frame, rng=rng), sex), 1)
    found = guessed_inside(funnel, frame, ["sex"])
    assert found["sex"] == pytest.approx(counts.max(axis=1).sum() / counts.sum(), abs=2e-3)
    assert found["sex"] > np.bincount(sex).max() / len(sex)


def test_a_rule_wants_its_columns(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    rule = tmp_path / "rule"
    ended = pfunnel(
        "protect", table, "--private", "sex", "--max-leakage", 0.2, "-o", tmp_path / "a.csv", "--rule", rule
    )
    assert ended.code == 0, ended.err
    people = pd.read_csv(table, dtype=str)
    for change, said in (
        ({"hours": "many"}, "column 'hours' held int64 when the rule was made"),
        ({}, "there is no column 'code'"),
    ):
        new = tmp_path / "new.csv"
        (people.assign(**change) if change else people.drop(columns="code")).to_csv(new, index=False)
        ended = pfunnel("release", new, "--rule", rule, "-o", tmp_path / "b.csv")
        assert (ended.code, said in ended.err) == (2, True), ended.err
    ended = pfunnel("release", table, "--rule", rule, "--keep-all", "-o", tmp_path / "b.csv")
    assert "--keep-all belongs to --mechanism" in ended.err
    # Stable draws that are asked for and not given would be a second release of the same people.
    for asked, said in (
        (("--key", "k"), "--key and --id"),
        (("--key", "k", "--id", "code", "--seed", 0), "--seed and --key"),
        (("--key", tmp_path / "no.key", "--id", "code"), "there is no such key file"),
    ):
        ended = pfunnel("release", table, "--rule", rule, *asked, "-o", tmp_path / "b.csv")
        assert (ended.code, said in ended.err) == (2, True), ended.err
    assert not (tmp_path / "b.csv").exists()
    people.assign(person=[f"{i:05}" for i in range(len(people))]).to_csv(tmp_path / "ids.csv", index=False)
    new_key(tmp_path / "my.key")
    drawn = []
    for name in ("one.csv", "two.csv"):
        keyed = ("--key", tmp_path / "my.key", "--id", "person", "--keep", "person", "--shuffle")
        ended = pfunnel(
            "release", tmp_path / "ids.csv", "--rule", rule, *keyed, "-o", tmp_path / name, "--json"
        )
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["keyed"]
        drawn.append((tmp_path / name).read_text().splitlines())
    assert drawn[0] != drawn[1]
    assert sorted(drawn[0]) == sorted(drawn[1])
    ended = pfunnel("release", table, "-o", tmp_path / "b.csv")
    assert "pass either --mechanism" in ended.err
    ended = pfunnel("release", table, "--rule", tmp_path / "nothing", "-o", tmp_path / "b.csv")
    assert "there is no such folder" in ended.err


def test_a_limit_on_guesses_is_what_the_first_line_says(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    ended = pfunnel(
        "protect", table, "--private", "sex", "--max-success", "60%", "--seed", 0, "-o", tmp_path / "safe.csv"
    )
    assert ended.code == 0, ended.err
    assert "right more often than 60.0 % of the time" in ended.out.splitlines()[0]


def test_a_table_without_records_and_a_private_column_that_is_dropped(
    pfunnel: Run, table: Path, tmp_path: Path
) -> None:
    empty, safe = tmp_path / "empty.csv", tmp_path / "safe.csv"
    empty.write_text("job,sex\n")
    ended = pfunnel("protect", empty, "--private", "sex", "-o", safe)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: {empty}: there are no records; pass a table with at least one row.\n"
    ended = pfunnel("protect", table, "--private", "sex", "--drop", "sex", "-o", safe)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: --drop names 'sex', which is needed;")
    assert not safe.exists()


def test_a_kept_column_is_handed_out_and_measured(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    people = pd.read_csv(table, dtype=str)
    people["tall"] = np.where(people["sex"] == "male", "yes", "no")
    people.loc[::5, "tall"] = "no"
    people.to_csv(tmp_path / "in.csv", index=False)
    arguments = ("--private", "sex", "--task", "rich", "--max-leakage", 0.1, "--seed", 0)
    keep = ("--keep", "tall", "--keep", "rich", "-o", tmp_path / "safe.csv")
    ended = pfunnel("protect", tmp_path / "in.csv", *arguments, *keep)
    assert ended.code == 0, ended.err
    assert "the guarantee is not about what these columns tell: tall, rich" in ended.err
    assert "tall alone lets an attacker guess sex" in " ".join(ended.out.split())
    released = pd.read_csv(tmp_path / "safe.csv", dtype=str)
    assert sorted(released.columns) == ["code", "hours", "job", "rich", "tall"]
    assert (released["tall"] == "yes").sum() == (people["tall"] == "yes").sum()
    assert (released["rich"] == "True").sum() == (people["rich"] == "True").sum()
    values = json.loads(pfunnel("protect", tmp_path / "in.csv", *arguments, *keep, "--json").out)
    tall = next(one for one in values["kept"] if one["columns"] == ["tall"])
    truth = pd.crosstab(people["tall"], people["sex"]).to_numpy().max(axis=1).sum() / 6_000
    assert tall["guess"] == pytest.approx(truth, abs=0.0006)
    assert tall["chance"] == pytest.approx(people["sex"].value_counts(normalize=True).max(), abs=0.0006)
    assert [one["columns"] for one in values["kept"]] == [["tall"], ["rich"], ["tall", "rich"]]


def test_missing_values_are_refused_or_values(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    people = pd.read_csv(table, dtype=str)
    people.loc[people.index[6:1000:7], "sex"] = ""
    people["age"] = np.where(np.arange(6_000) % 3, "NA", "40")
    people.to_csv(tmp_path / "in.csv", index=False)
    arguments = ("--private", "sex", "--max-leakage", 0.2, "--seed", 0, "-o", tmp_path / "safe.csv")
    ended = pfunnel("protect", tmp_path / "in.csv", *arguments)
    assert ended.code == 2
    assert "column 'sex' is missing in 142 of 6,000 records, the first of which is record 7" in ended.err
    assert "pass --missing letter" in ended.err
    ended = pfunnel("protect", tmp_path / "in.csv", *arguments, "--missing", "letter")
    assert ended.code == 0, ended.err
    assert "taken for values: age (NA); if they do, pass --missing-text NA." in ended.err
    assert "NA" in set(pd.read_csv(tmp_path / "safe.csv", dtype=str, keep_default_na=False)["age"])
    ended = pfunnel("protect", tmp_path / "in.csv", *arguments, "--missing", "letter", "--missing-text", "NA")
    assert (ended.code, "NA" in ended.err) == (0, False), ended.err
    ages = pd.read_csv(tmp_path / "safe.csv", dtype=str, keep_default_na=False)["age"]
    assert set(ages) == {"", "40"}


def test_tomorrows_records_are_read_like_those_of_the_rule(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    people = pd.read_csv(table, dtype=str)
    people["age"] = np.where(np.arange(6_000) % 3, "40", "NA")
    people.to_csv(tmp_path / "in.csv", index=False, sep=";")
    people.head(50).to_csv(tmp_path / "new.csv", index=False, sep=";")
    reading = ("--delimiter", ";", "--missing-text", "NA")
    inspected = pfunnel("inspect", tmp_path / "in.csv", "--private", "sex", "--delimiter", ";")
    assert "taken for values: age (NA); if they do, pass --missing-text NA." in inspected.err
    inspected = pfunnel("inspect", tmp_path / "in.csv", "--private", "sex", *reading)
    assert not inspected.err
    said = " ".join(inspected.out.split())
    assert "--private sex --delimiter ';' --max-leakage 0.01" in said
    assert "--private sex --delimiter ';' --missing-text NA --output safe.csv" in said
    rule = ("--rule", tmp_path / "rule")
    arguments = ("--private", "sex", "--max-leakage", 0.2, "--seed", 0, "-o", tmp_path / "safe.csv")
    ended = pfunnel("protect", tmp_path / "in.csv", *arguments, *rule, *reading)
    assert ended.code == 0, ended.err
    assert f"--rule{rule[1]}--delimiter';'--missing-textNA--output" in "".join(ended.out.split())
    more = ("-o", tmp_path / "more.csv")
    refused = pfunnel("release", tmp_path / "new.csv", *rule, "--delimiter", ";", *more)
    assert refused.code == 2
    assert "correct it, or pass --missing-text NA if that means a missing value." in refused.err
    assert not more[1].exists()
    ended = pfunnel("release", tmp_path / "new.csv", *rule, *reading, *more)
    assert ended.code == 0, ended.err
    ages = pd.read_csv(more[1], dtype=str, keep_default_na=False, sep=";")["age"]
    assert set(ages) == {"", "40"}
    ended = pfunnel("release", "people.parquet", *rule, "--missing-text", "NA", *more)
    assert "--missing-text belongs to CSV files; leave it out." in ended.err
    # What separates the fields is found, and is the same in the output.
    ended = pfunnel("release", tmp_path / "new.csv", *rule, "--missing-text", "NA", *more)
    assert ended.code == 0, ended.err
    assert more[1].read_text().startswith("job;hours;code;rich;age\n")
    ended = pfunnel("release", tmp_path / "new.csv", *rule, "--missing-text", "NA", "-o", tmp_path / "m.tsv")
    assert (tmp_path / "m.tsv").read_text().startswith("job\thours\t")


def test_too_few_records_are_told_in_the_first_line(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    pd.read_csv(table, dtype=str).head(50).to_csv(tmp_path / "few.csv", index=False)
    ended = pfunnel(
        "protect", tmp_path / "few.csv", "--private", "sex", "-o", tmp_path / "safe.csv", "--seed", 0
    )
    assert ended.code == 0, ended.err
    first = ended.out.splitlines()[0]
    assert first.startswith("Every row is made in the same way and tells nothing about sex")
    assert "with 16 records held back" in ended.out


def test_long_work_is_told_beforehand(capsys: pytest.CaptureFixture[str]) -> None:
    from privacyfunnel.cli.protect import _watched

    for n, said in ((32_561, "Protecting a.csv: about 20 s of computing"), (900, ""), (None, "")):
        with _watched("a.csv", n):
            pass
        err = capsys.readouterr().err
        assert err.startswith(said)
        assert bool(err) == bool(said)


def test_two_tables_have_two_codebooks(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    for name in ("safe.csv", "safe.parquet"):
        ended = pfunnel("protect", table, "--private", "sex", "-o", tmp_path / name, "--seed", 0)
        assert ended.code == 0, ended.err
    books = sorted(path.name for path in tmp_path.iterdir())
    assert books == ["safe-codebook.csv", "safe-codebook.parquet", "safe.csv", "safe.parquet"]


def test_dates_of_a_csv_file_come_back_as_dates(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    people = pd.read_csv(table, dtype=str)
    born = np.datetime64("1950-01-01") + rng.integers(0, 20_000, len(people)).astype("timedelta64[D]")
    seen = np.datetime64("2024-01-01T00:00:00") + rng.integers(0, 10**7, len(people)).astype("timedelta64[s]")
    people["born"], people["seen"] = born.astype(str), np.char.replace(seen.astype(str), "T", " ")
    people["due"] = np.where(rng.random(len(people)) < 0.5, "2023-02-28", "2023-02-30")  # no date
    people.to_csv(tmp_path / "in.csv", index=False)
    arguments = ("--private", "sex", "--max-leakage", 0.2, "--seed", 0, "--rule", tmp_path / "rule")
    ended = pfunnel("protect", tmp_path / "in.csv", *arguments, "-o", tmp_path / "safe.csv")
    assert ended.code == 0, ended.err
    ended = pfunnel("release", tmp_path / "in.csv", "--rule", tmp_path / "rule", "-o", tmp_path / "new.csv")
    assert ended.code == 0, ended.err
    for name in ("safe.csv", "new.csv"):
        released = pd.read_csv(tmp_path / name, dtype=str)
        assert released["born"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
        assert released["seen"].str.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d").all()
        assert released["born"].between("1949-06-01", "2005-06-01").all()
        assert set(released["due"]) == {"2023-02-28", "2023-02-30"}


def test_figures_for_programs_are_rounded_as_the_page_does(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    arguments = ("--private", "sex", "--task", "rich", "--max-leakage", 0.2, "--seed", 0, "--keep", "rich")
    ended = pfunnel("protect", table, *arguments, "-o", tmp_path / "safe.csv", "--json")
    values = json.loads(ended.out)
    figures = [
        *((values["variance_kept"], 2), (values["task_score"], 3), (values["task_score_before"], 3)),
        *((one, 2) for one in values["kept_by_column"].values()),
        *((one[name], 4) for one in values["told"] for name in ("before", "after")),
        *((one[name], 4) for one in values["kept"] for name in ("leakage", "leakage_with_z")),
        *((one[name], 3) for one in values["kept"] for name in ("guess", "guess_with_z")),
    ]
    assert len(figures) >= 15
    for value, digits in figures:
        assert value == round(value, digits)


def test_a_rule_says_what_its_bound_is_of(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    for limit, said in [
        (
            ("--max-success", "65%"),
            "nobody guesses sex right more often than 65 % of the time, with 95 %",
        ),
        (("--max-parity", "20%"), "two groups of sex more than 20 % apart, with 95 % confidence"),
        (("--max-leakage", "0.2"), "nobody learns more than 0.2 bit about sex, with 95 % confidence"),
    ]:
        rule = tmp_path / limit[0]
        protected = pfunnel(
            "protect",
            table,
            "--private",
            "sex",
            *limit,
            "--seed",
            0,
            "--rule",
            rule,
            "-o",
            tmp_path / "a.csv",
        )
        assert protected.code == 0, protected.err
        ended = pfunnel("release", table, "--rule", rule, "-o", tmp_path / "b.csv")
        assert said in " ".join(ended.out.split())


@pytest.mark.parametrize("kind", ["csv", "folder"])
def test_large_tables_are_read_batch_by_batch(
    pfunnel: Run, table: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from privacyfunnel.cli import protect_inputs

    monkeypatch.setattr(protect_inputs, "LARGE_TEXT", 1_000)
    monkeypatch.setattr(protect_inputs, "LARGE_PACKED", 1_000)
    monkeypatch.setattr("privacyfunnel.cli.protect.read_table", None)  # it is not called
    source = table
    if kind == "folder":
        source = tmp_path / "parts"
        source.mkdir()
        people = pd.read_csv(table, dtype={"code": str})
        for i in range(3):
            people[2_000 * i : 2_000 * (i + 1)].to_parquet(source / f"part-{i}.parquet")
    arguments = ("--private", "sex", "--task", "rich", "--max-leakage", 0.1, "--seed", 0)
    ended = pfunnel(
        "protect", source, *arguments, "-o", tmp_path / "safe.csv", "--card", tmp_path / "card.md"
    )
    assert ended.code == 0, ended.err
    assert ended.out.startswith("From a new person's release nobody guesses sex right more often than")
    assert "6,000 rows in random order" in " ".join(ended.out.split())
    assert "| rows | 6,000 in, 6,000 out" in (tmp_path / "card.md").read_text()
    released = pd.read_csv(tmp_path / "safe.csv", dtype=str)
    assert list(released.columns) == ["job", "hours", "code", "rich"]
    assert len(released) == 6_000
    assert set(released["code"]) == {"007", "010"}
    ended = pfunnel("protect", source, "--private", "height", "-o", tmp_path / "b.csv")
    assert (ended.code, "there is no column 'height'" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("output", "said"),
    [("safe.csv", "more.csv"), ("to/safe.TSV.gz", "to/more.TSV.gz"), ("more.parquet", "more-2.parquet")],
)
def test_new_records_go_to_another_file(output: str, said: str) -> None:
    from privacyfunnel.cli.protected import _another

    assert _another(output) == said


def test_a_card_takes_no_name_for_markup_and_says_no_minus_nothing() -> None:
    from privacyfunnel.cli.protected import card_of

    odd = "a|b <script>"
    values = {
        "leakage": "success",
        "certificate": {odd: 0.75},
        "output": "safe.csv",
        "sha256": "0" * 64,
        "verdict": f"Nobody guesses {odd}.",
        "confidence": 0.95,
        "n_certifying": 100,
        "private": [odd],
        "task": None,
        "records": "columns",
        "n_records_read": 300,
        "n_records": 300,
        "left_out": {},
        "keep": [odd],
        "kept_by_column": {odd: -0.0},
    }
    card = card_of(values)
    assert "| a\\|b \\<script\\> | 0 % |" in card
    assert card.count("\\<script\\>") == 5
    assert "| rows | 300 in, 300 out, in random order |" in card
    assert "| columns left out | none |" in card
    assert "<script>" not in card


def test_times_and_decimal_commas_come_back_as_they_were_written(pfunnel: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path, out = tmp_path / "visits.csv", tmp_path / "safe.csv"
    lines = [
        f"{m // 60:02d}:{m % 60:02d};2023-01-{1 + m % 28:02d}T20:{m % 60:02d}:00Z;"
        f"{m // 16},{m % 16:02d};t{m % 400};1,{m % 900 + 100};{'ab'[m > 700]}"
        for m in rng.integers(0, 1440, 2_000).tolist()
    ]
    path.write_text("\n".join(["checkin;made;paid;town;metres;sex", *lines]) + "\n", encoding="utf-8")
    arguments = ("--private", "sex", "--max-leakage", 0.3, "--n-cells", 8, "--seed", 0, "--delimiter", ";")
    ended = pfunnel("protect", path, *arguments, "--output", out)
    assert ended.code == 0, ended.err
    released = pd.read_csv(out, sep=";")
    assert released["checkin"].str.fullmatch("[0-2][0-9]:[0-5][0-9]").all()
    assert released["made"].str.fullmatch(r"2023-01-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:00Z").all()
    assert released["paid"].str.fullmatch("[0-9]+,[0-9]{2}").all()
    said = " ".join(ended.err.split())
    assert "numbers with commas are taken for texts in metres, as a comma may separate decimals" in said
    assert "share become one, which is much of town (" in said
