"""pfunnel audit: every kind of release, the gate's exit codes, files, sentences."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cli_tables import HEADER, Ended, Run, make_records, write_csv
from pyarrow import parquet

import privacyfunnel as pf
from privacyfunnel.auditing import AuditReport, logistic_regression
from privacyfunnel.auditing.adversaries.supervised import ResidueAdversary
from privacyfunnel.auditing.plan import Plan
from privacyfunnel.files.as_written import numbers_say_all


@pytest.fixture(autouse=True)
def _one_adversary(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fastest adversary stands for all: which ones there are is not the command's business."""
    monkeypatch.setattr(Plan, "_defaults", lambda plan, n_classes: (logistic_regression(),))


@pytest.fixture(scope="module")
def arrays() -> dict[str, Any]:
    """Codes in which the first component tells the class y; x is wider, x_hat is near it."""
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=150)
    z = rng.normal(size=(150, 2)) + np.eye(2)[y % 2] * 4
    x = rng.random((150, 4, 4))
    return {"z": z, "x": x, "x_hat": x + 0.01, "y": y}


@pytest.fixture
def npz(arrays: dict[str, Any], tmp_path: Path) -> Path:
    np.savez(tmp_path / "release.npz", **arrays)
    return tmp_path / "release.npz"


@pytest.fixture
def codes(arrays: dict[str, Any], tmp_path: Path) -> Path:
    rows = [
        [f"{a:.6f}", f"{b:.6f}", f"class {c}"] for (a, b), c in zip(arrays["z"], arrays["y"], strict=True)
    ]
    return write_csv(tmp_path / "codes.csv", rows, ["a", "b", "kind"])


@pytest.fixture
def audited(pfunnel: Run, npz: Path) -> Path:
    ended = pfunnel("audit", npz, "-o", npz.with_name("audit.json"))
    assert ended.code == 0, ended.err
    return npz.with_name("audit.json")


TRAINED_ON = (
    "warning: The mechanism was trained on about 100 % of these records: on them leakage looks smaller than "
    "it is. Audit it on others.\n"
)


def read(ended: Ended, err: str = "") -> dict[str, Any]:
    assert ended.err == err
    values: dict[str, Any] = json.loads(ended.out)
    return values


def success(values: dict[str, Any], on: str = "Z", source: str = "logistic regression") -> dict[str, Any]:
    (found,) = [
        one
        for one in values["findings"]
        if (one["quantity"], one["on"], one["source"]) == ("success", on, source)
    ]
    return dict(found)


def test_codes_with_records_and_reconstructions(pfunnel: Run, npz: Path, arrays: dict[str, Any]) -> None:
    values = read(pfunnel("audit", npz, "--seed", 5, "--json"))
    twin = pf.audit(
        Z=arrays["z"],
        X=arrays["x"].astype(np.float32),
        X_hat=arrays["x_hat"].astype(np.float32),
        private={"y": arrays["y"]},
        random_state=5,
        n_jobs=1,
        name="release.npz",
    )
    assert values["findings"] == [one.to_dict() for one in twin.published().findings]
    assert values["meta"]["fingerprint"] == twin.meta["fingerprint"]
    assert values["meta"]["name"] == "release.npz"
    row = twin.published().summary()
    assert {**values["summary"], "seconds": 0} == {**row, "seconds": 0}
    assert {one["quantity"] for one in values["findings"]} >= {"success", "psnr", "leakage", "chance"}


@pytest.mark.parametrize(
    ("limits", "code", "words"),
    [
        (["--max-success", 1, "--min-psnr", 35], 0, ["Passed: success", "Passed: psnr"]),
        (["--max-success", 0.4], 1, ["Failed: success"]),
        (["--max-success", 1, "--max-leakage", 0.1], 1, ["Passed: success", "Failed: leakage"]),
        (["--min-psnr", 45], 1, ["Failed: psnr may be as low as"]),
        (["--max-lift", 0.1], 1, ["Failed: lift may be as high as"]),
        (["--max-lift", 9], 0, ["Passed: lift"]),
        (["--min-group", 5], 1, ["Failed: the smallest group was not measured"]),
        (["--min-group", 151], 1, ["Failed: the smallest group may be as low as"]),
        ([], 0, []),
    ],
)
def test_the_gate(pfunnel: Run, audited: Path, limits: list[Any], code: int, words: list[str]) -> None:
    ended = pfunnel("audit", audited, *limits)
    assert (ended.code, ended.err) == (code, "")
    for sentence in words:
        assert sentence in ended.out
    values = pfunnel("audit", audited, *limits, "--json")
    assert values.code == code
    assert read(values)["passed"] is (code == 0)
    assert len(read(values)["verdicts"]) == len(limits) // 2


def test_the_pessimistic_end_decides(pfunnel: Run, audited: Path) -> None:
    found = success(read(pfunnel("audit", audited, "--json")))
    between = (found["value"] + found["interval"][1]) / 2
    assert pfunnel("audit", audited, "--max-success", between).code == 1
    assert pfunnel("audit", audited, "--max-success", found["interval"][1] + 1e-6).code == 0


def test_what_was_not_measured_does_not_pass(pfunnel: Run, codes: Path) -> None:
    ended = pfunnel("audit", codes, "--private", "kind", "--min-psnr", 1)
    assert ended.code == 1
    assert "psnr was not measured" in ended.out


def test_the_summary_says_what_each_number_is(pfunnel: Run, audited: Path) -> None:
    out = pfunnel("audit", audited, "--max-success", 1).out
    found = success(read(pfunnel("audit", audited, "--json")))
    # First what was found, then the file, however long its path is; sentences are wrapped by a terminal.
    assert out.startswith("The strongest attacker tried is right about y ")
    for line in out.splitlines()[2:-1]:
        assert len(line) <= 100
    assert f"y guessed  ≥ {found['value']:.1%}".replace("%", " %") in out
    assert "= exact, ≥ lower bound, ≤ upper bound, ≈ estimate." in out
    assert "by chance ≈" in out
    assert "from raw X ≥" in out


def test_files_are_written(pfunnel: Run, npz: Path, audited: Path) -> None:
    page, card = npz.with_name("audit.html"), npz.with_name("card.md")
    ended = pfunnel("audit", audited, "-o", page, "--card", card, "--max-success", 0.4)
    assert ended.code == 1  # a failed gate still writes its evidence
    assert "Failed: success" in page.read_text(encoding="utf-8")
    assert "Failed: success" in card.read_text(encoding="utf-8")
    assert json.loads(card.with_suffix(".json").read_text(encoding="utf-8"))["data"]["private"] == ["y"]
    assert isinstance(pf.load(audited), AuditReport)


def test_a_table_of_codes(pfunnel: Run, codes: Path, arrays: dict[str, Any]) -> None:
    """The private column is left out of the codes, wherever it is; labels may be in a file of their own."""
    inside = read(pfunnel("audit", codes, "--private", "kind", "--json"))
    twin = pf.audit(Z=arrays["z"].round(6), private={"kind": [f"class {c}" for c in arrays["y"]]}, n_jobs=1)
    assert success(inside)["value"] == twin.published().find("success", on="Z")[0].value
    beside = codes.with_name("z.parquet")
    parquet.write_table(pa.table({"a": arrays["z"][:, 0], "b": arrays["z"][:, 1]}), beside)
    apart = json.loads(pfunnel("audit", beside, "--labels", codes, "--private", "kind", "--json").out)
    assert success(apart)["value"] == success(inside)["value"]


def test_texts_are_categories_and_a_single_column_is_symbols(pfunnel: Run, tmp_path: Path) -> None:
    rows = [[str(i % 3), "xy"[i % 2], "pq"[i % 2]] for i in range(60)]
    table = write_csv(tmp_path / "t.csv", rows, ["z", "word", "secret"])
    both = read(pfunnel("audit", table, "--private", "secret", "--json"))
    assert success(both, source="counts of symbols")["value"] == 1.0  # word tells it
    one = read(pfunnel("audit", table, "--private", "secret", "--drop", "word", "--json"))
    assert success(one, source="counts of symbols")["value"] < 0.7
    assert "counts of symbols and classes" in {found["source"] for found in one["findings"]}


def test_a_mechanism_and_its_records(pfunnel: Run, mechanism: Path, people: Path) -> None:
    values = read(pfunnel("audit", mechanism, "--data", people, "--json"))
    assert {one["attribute"] for one in values["findings"] if one["quantity"] == "success"} == {"sex"}
    assert "Bayes adversary" in {one["source"] for one in values["findings"]}
    ended = pfunnel("audit", mechanism, "--data", people, "--public", "note", "--private", "sex")
    assert ended.code == 2
    assert "plain" in ended.err


def test_fresh_records_are_certified(pfunnel: Run, mechanism: Path, people: Path) -> None:
    ended = pfunnel("audit", mechanism, "--data", people, "--fresh-records", "--max-leakage", 1)
    assert ended.code == 0
    assert "≤ for every adversary, 95 %" in ended.out
    assert "for every adversary, with 95 % confidence" in ended.out
    values = read(pfunnel("audit", mechanism, "--data", people, "--max-leakage", 1, "--json"))
    assert any("--fresh-records" in one for one in values["meta"]["not_audited"])
    assert not values["verdicts"][0]["proved"] or "entropy" in values["verdicts"][0]["sentence"]


def test_a_mechanism_whose_letters_are_numbers_reads_csv(pfunnel: Run, tmp_path: Path) -> None:
    table = pf.TableMechanism(np.eye(2), x_labels=(7, 8), x_names=("code",), private_names=("y",))
    table.save(tmp_path / "m.json")
    data = write_csv(tmp_path / "d.csv", [[str(7 + i % 2), "ab"[i % 2]] for i in range(40)], ["code", "y"])
    values = read(pfunnel("audit", tmp_path / "m.json", "--data", data, "--json"))
    assert success(values, source="counts of symbols")["value"] == 1.0


def test_a_model_and_its_records(pfunnel: Run, npz: Path) -> None:
    pytest.importorskip("torch")
    model = npz.with_name("model")
    small = ["--components", 2, "--hidden", 4, "--epochs", 1, "--seed", 1]
    assert pfunnel("fit", npz, "--output", model, *small).code == 0
    values = read(pfunnel("audit", model, "--data", npz, "--many-draws", 3, "--json"), TRAINED_ON)
    assert {one["on"] for one in values["findings"]} >= {"Z", "X", "Z × 3"}
    assert {one["quantity"] for one in values["findings"]} >= {"utility", "psnr", "many-draws difference"}


def test_a_model_of_named_columns(pfunnel: Run, codes: Path) -> None:
    """The model takes its own columns from the table, and only those."""
    pytest.importorskip("torch")
    model = codes.with_name("model")
    small = ["--components", 2, "--hidden", 4, "--epochs", 1, "--seed", 1, "--private", "kind"]
    assert pfunnel("fit", codes, "--output", model, *small).code == 0
    values = read(pfunnel("audit", model, "--data", codes, "--private", "kind", "--json"), TRAINED_ON)
    twin = pf.load(model)
    assert list(twin.feature_names_in_) == ["a", "b"]
    assert {one["attribute"] for one in values["findings"] if one["quantity"] == "success"} == {"kind"}
    assert values["meta"]["n_records"] == 150


def test_images_and_the_labels_beside_them(pfunnel: Run, arrays: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for name, array in (("images-idx3", arrays["x"] * 255), ("labels-idx1", arrays["y"])):
        bytes_ = array.astype(np.uint8)
        head = struct.pack(f">HBB{bytes_.ndim}I", 0, 8, bytes_.ndim, *bytes_.shape)
        (tmp_path / f"t-{name}-ubyte").write_bytes(head + bytes_.tobytes())
    images = tmp_path / "t-images-idx3-ubyte"
    small = ["--components", 2, "--hidden", 4, "--epochs", 1, "--seed", 1]
    assert pfunnel("fit", images, "--output", tmp_path / "model", *small).code == 0
    values = read(
        pfunnel("audit", tmp_path / "model", "--data", images, "--n-repeats", 1, "--json"), TRAINED_ON
    )
    assert {one["attribute"] for one in values["findings"] if one["quantity"] == "success"} == {"y"}
    assert {one["quantity"] for one in values["findings"]} >= {"psnr", "ssim"}


def test_a_task_is_measured(pfunnel: Run, codes: Path) -> None:
    values = read(pfunnel("audit", codes, "--private", "a", "--task", "kind", "--json"))
    tasks = {one["quantity"] for one in values["findings"] if one["attribute"] == "kind"}
    assert tasks == {"task accuracy"}
    assert {one["quantity"] for one in values["findings"] if one["attribute"] == "a"} >= {"success", "chance"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.npz"], "no such file"),
        (["nowhere"], "no such file or folder"),
        (["{codes}", "--private", "kind", "--labels", "nowhere.csv"], "nowhere.csv: there is no such"),
        (["{codes}", "--private", "kind", "--public", "a"], "--public belongs to a mechanism"),
        (["{codes}"], "--private COLUMN"),
        (["{codes}", "--private", "knid"], "'kind'"),
        (["{codes}", "--private", "kind", "--labels", "{npz}"], "no array 'kind'"),
        (["{codes}", "--private", "kind", "-o", "audit.pdf"], ".html or .json"),
        (["{codes}", "--private", "kind", "--card", "card.txt"], ".md"),
        (["{codes}", "--private", "kind", "--max-success", 60], "a share such as 70% or 0.7"),
        (["{codes}", "--private", "kind", "--max-leakage", -1], "0 or more"),
        (["{codes}", "--private", "kind", "-o", "{codes}"], ".html or .json"),
        (["{audited}", "--private", "y"], "this is an audit"),
        (["{audited}", "-o", "{audited}"], "is read by this command"),
        (["{audited}", "-o", "{npz}.json", "--card", "{npz}.md"], "another output too"),
        (["{mechanism}"], "--data FILE"),
        (["{npz}", "--quick", "--thorough"], "opposite things"),
        (["{codes}", "--private", "kind", "--max-lift", -1], "0 or more"),
        (["{npz}", "--private", "z"], "one value a record"),
        (["{npz}", "--labels", "{people}", "--private", "sex"], "60 values of private"),
        (["{codes}", "--private", "kind", "--drop", "a", "--drop", "b"], "no column is left"),
    ],
)
def test_bad_input_is_one_line(
    pfunnel: Run,
    npz: Path,
    codes: Path,
    people: Path,
    audited: Path,
    mechanism: Path,
    arguments: list[Any],
    words: str,
) -> None:
    names = {"npz": npz, "codes": codes, "people": people, "audited": audited, "mechanism": mechanism}
    ended = pfunnel("audit", *[str(one).format(**names) for one in arguments])
    assert ended.code == 2
    assert ended.out == ""
    assert words in ended.err
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("number", ["1e200", "-1e308"])
def test_numbers_that_nobody_can_square_get_a_sentence(pfunnel: Run, tmp_path: Path, number: str) -> None:
    rows = [[str(i), "0.5", "pq"[i % 2]] for i in range(30)]
    rows[7][1] = number
    ended = pfunnel("audit", write_csv(tmp_path / "t.csv", rows, ["a", "b", "y"]), "--private", "y")
    assert (ended.code, ended.out) == (2, "")
    assert "record 8 has" in ended.err
    assert "in column 'b', beyond" in ended.err
    assert ended.err.count("\n") == 1


def test_digits_beyond_32_bits_are_audited(pfunnel: Run, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(Plan, "_defaults", lambda plan, n_classes: (ResidueAdversary(),))
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=400)
    z = np.column_stack([np.round(rng.normal(size=400), 6) + 1e-12 * y, rng.normal(size=400)])
    np.savez(tmp_path / "z.npz", z=z, y=y)
    ended = pfunnel("audit", tmp_path / "z.npz", "--max-success", 0.8)
    assert ended.code == 1
    assert "residues of the codes" in ended.out


@pytest.mark.parametrize("kind", [np.int64, np.longdouble])
def test_digits_that_no_adversary_could_see_are_refused(pfunnel: Run, tmp_path: Path, kind: Any) -> None:
    y = np.arange(60) % 2
    ids = (2**60 + 512 * np.arange(60) + y).astype(kind)
    if kind(np.float64(ids[1])) == ids[1]:
        pytest.skip("this machine has no numbers longer than 64 bits")
    np.savez(tmp_path / "z.npz", z=np.column_stack([ids, ids]), y=y)
    ended = pfunnel("audit", tmp_path / "z.npz", "--max-success", 0.8)
    assert (ended.code, ended.out) == (2, "")
    assert "more digits than a 64-bit number" in ended.err
    assert ended.err.count("\n") == 1


#: Classes in random order: one that follows from the row number would fail by the order alone.
COINS = np.random.default_rng(8).integers(2, size=400).tolist()
WRITTEN = {
    "decimals": (["1", "2"], ["1.0", "2.0"]),
    "leading zeros": (["1", "2"], ["01", "02"]),
    "sign of zero": (["0", "5"], ["-0", "5"]),
    "long whole numbers": ([f"{10**18}"], [f"{10**18 + 1}"]),
    "long decimals": (["0.5", "0.25"], ["0.50000000000000000001", "0.25000000000000000001"]),
    "space": (["1", "2"], ["1 ", "2 "]),
}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("kind", WRITTEN)
def test_how_numbers_are_written_is_part_of_the_release(
    pfunnel: Run, tmp_path: Path, kind: str, kept: bool
) -> None:
    rows = [["a", WRITTEN[kind][COINS[i]][i % len(WRITTEN[kind][0])], "pq"[COINS[i]]] for i in range(400)]
    table = write_csv(tmp_path / "t.csv", rows, ["z", "code", "y"])
    how = ["--keep", "code"] if kept else ["--drop", "z"]
    ended = pfunnel("audit", table, "--private", "y", *how, "--max-leakage", 0.3)
    assert ended.code == 1, ended.err
    assert "Failed: leakage may be as high as" in ended.out


@pytest.mark.parametrize("values", [("", None), ("a", "a\0"), (0.0, -0.0), ("1", "1.0")])
def test_values_that_look_alike_are_different_symbols(
    pfunnel: Run, tmp_path: Path, values: tuple[Any, Any]
) -> None:
    rows = [(values[COINS[i]], "pq"[COINS[i]]) for i in range(400)]
    z, y = map(list, zip(*rows, strict=True))
    parquet.write_table(pa.table({"z": z, "y": y}), tmp_path / "t.parquet")
    ended = pfunnel("audit", tmp_path / "t.parquet", "--private", "y", "--max-leakage", 0.3)
    assert ended.code == 1, ended.err


@pytest.mark.parametrize(
    "way", [repr, "{:.3f}".format, "{:.6g}".format, "{:.4e}".format, lambda number: str(np.float32(number))]
)
def test_numbers_that_are_written_alike_are_numbers(way: Any) -> None:
    numbers = np.random.default_rng(2).normal(size=300) * 10.0 ** np.arange(-6, 6).repeat(25)
    texts = pa.chunked_array([[way(number) for number in numbers.tolist()]])
    values = texts.cast(pa.float64()).to_numpy()
    assert numbers_say_all(texts, values)
    other = pa.chunked_array([[*texts.to_pylist()[:-1], f"+{texts[-1]}"]])
    assert not numbers_say_all(other, values)


def test_who_is_worst_off_and_what_was_not_measured_are_told(pfunnel: Run, tmp_path: Path) -> None:
    rows = [["abc"[i % 3], "pq"[i * i % 7 % 2]] for i in range(90)] + [["a", "rare"]] * 4
    table = write_csv(tmp_path / "t.csv", rows, ["z", "y"])
    ended = pfunnel("audit", table, "--private", "y", "--max-leakage", 0.2, "--card", tmp_path / "card.md")
    assert ended.code == 1
    assert "Worst off" in ended.out
    assert "Not measured" in ended.out
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    for words in ("lift", "group size", "unmeasured leakage", "unmeasured success"):
        assert f"| {words} | y |" in card
    page = tmp_path / "page.html"
    assert pfunnel("audit", table, "--private", "y", "-o", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "Who is worst off, y" in text
    assert "counted as told" in text


def test_a_finite_alphabet_needs_no_network(pfunnel: Run, mechanism: Path, people: Path) -> None:
    tried = read(pfunnel("audit", mechanism, "--data", people, "--json"))["meta"]["settings"]["adversaries"]
    assert set(tried) == {"Bayes adversary", "counts of symbols", "order of the rows"}


@pytest.mark.parametrize("n", [60, 1001])
def test_names_of_people_are_no_categories(pfunnel: Run, tmp_path: Path, n: int) -> None:
    rows = [[f"person {i}", "x", "pq"[i % 2]] for i in range(n)]
    ended = pfunnel("audit", write_csv(tmp_path / "t.csv", rows, ["name", "z", "y"]), "--private", "y")
    assert ended.code == 2
    assert "--drop name" in ended.err


def test_kept_columns_are_audited_and_on_the_card(pfunnel: Run, mechanism: Path, people: Path) -> None:
    rows = [[*row, row[2].upper()] for row in make_records()]
    write_csv(people, rows, [*HEADER, "title"])
    card = people.with_name("card.md")
    ask = ("audit", mechanism, "--data", people, "--card", card, "--max-success", 0.95)
    ended = pfunnel(*ask, "--keep", "title", "--keep", "note")
    assert ended.code == 1
    said = " ".join(ended.out.split())
    assert "title alone lets an attacker guess sex 100.0 % of the time, together with z 100.0 %" in said
    assert "title and note together with z let an attacker guess sex" in said
    assert "title alone lets an attacker guess sex 100.0 % of the time" in card.read_text()
    saved = json.loads(card.with_suffix(".json").read_text())
    assert saved["data"]["kept"] == ["title", "note"]
    for args, message in (
        (("--keep", "sex"), "'sex' is private; it cannot be kept beside the release"),
        (("--keep", "titel"), "there is no column 'titel'; the closest is 'title'"),
    ):
        ended = pfunnel(*ask, *args)
        assert ended.code == 2
        assert message in ended.err


def test_kept_columns_of_a_file_of_codes(pfunnel: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    z, key = rng.integers(2, size=(2, 300))
    rows = [[str(a), f"k{b}", str(a ^ b)] for a, b in zip(z, key, strict=True)]
    data = write_csv(tmp_path / "d.csv", rows, ["z", "key", "y"])
    values = read(pfunnel("audit", data, "--private", "y", "--keep", "key", "--json"))
    found = {one["on"]: one["value"] for one in values["findings"] if one["quantity"] == "success"}
    assert found["Z + key"] == 1.0
    assert found["key"] < 0.6


@pytest.mark.parametrize("kind", ["npz", "nested"])
def test_kept_columns_that_cannot_be_measured(pfunnel: Run, tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=40)
    if kind == "npz":
        data, message = tmp_path / "d.npz", "--keep belongs to CSV and Parquet files"
        np.savez(data, z=rng.random((40, 2)), y=y)
    else:
        data, message = tmp_path / "d.parquet", "column 'k' holds list"
        parquet.write_table(pa.table({"z": rng.random(40), "y": y, "k": [[1]] * 40}), data)
    ended = pfunnel("audit", data, "--private", "y", "--keep", "k")
    assert ended.code == 2
    assert message in ended.err


def test_the_key_of_fingerprints_stays_in_its_file(pfunnel: Run, npz: Path) -> None:
    key, outputs = (
        npz.with_name("owner.key"),
        [npz.with_name(name) for name in ("a.json", "a.html", "card.md")],
    )
    files = ["-o", outputs[0], "-o", outputs[1], "--card", outputs[2]]
    ended = pfunnel("audit", npz, "--key", key, *files, "--json")
    prints = read(ended)["meta"]["fingerprint"]
    assert {name: one.partition(":")[0] for name, one in prints.items()} == {
        "Z": "sha256",
        **dict.fromkeys(("X", "X_hat", "private"), "hmac-sha256"),
    }
    assert key.stat().st_mode & 0o777 == 0o600
    secret = key.read_text(encoding="ascii").strip()
    for text in [ended.out, *(one.read_text(encoding="utf-8") for one in outputs)]:
        assert secret not in text
        assert prints["private"] in text
    assert read(pfunnel("audit", npz, "--key", key, "--json"))["meta"]["fingerprint"] == prints
    assert set(read(pfunnel("audit", npz, "--json"))["meta"]["fingerprint"]) == {"Z"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{npz}", "--key", "{npz}"], "holds no key"),
        (["{npz}", "--key", "nowhere/owner.key"], "cannot use the key file"),
        (["{audited}", "--key", "owner.key"], "this is an audit"),
    ],
)
def test_a_key_that_cannot_be_used_is_one_line(
    pfunnel: Run, npz: Path, audited: Path, arguments: list[str], words: str
) -> None:
    npz.chmod(0o600)
    ended = pfunnel("audit", *[one.format(npz=npz, audited=audited) for one in arguments])
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert words in ended.err


def test_figures_and_records_are_shown_on_request_only(
    pfunnel: Run, npz: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("umap")
    monkeypatch.setattr("privacyfunnel.auditing.published.umap_embedding", lambda Z, seed, start: Z[:, :2])
    warning = "This is as private as the data"
    page, report = npz.with_name("a.html"), npz.with_name("a.json")
    for options, kept in (([], set()), (["--figures"], {"density"}), (["--show-records"], {"images"})):
        ended = pfunnel("audit", npz, "-o", page, "-o", report, *options)
        assert ended.code == 0, ended.err
        payload = json.loads(report.read_text(encoding="utf-8"))["payload"]
        assert set(payload["figures_data"]) == kept
        told = [
            payload["notice"],
            page.read_text(encoding="utf-8").partition('<p class="lead">')[2],
            ended.out,
        ]
        assert [text.startswith(warning) for text in told] == [bool(kept)] * 3
    assert pfunnel("audit", report, "--figures").code == 2


def test_codes_and_labels_of_two_files_must_be_in_one_order(pfunnel: Run, tmp_path: Path) -> None:
    """Of a shuffled file an audit finds nothing: that is said wherever nobody can check it."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    codes = write_csv(tmp_path / "z.csv", [[str(one)] for one in y], ["z"])
    labels = write_csv(tmp_path / "y.csv", [[f"c{one}"] for one in y], ["y"])
    report = tmp_path / "a.json"
    ended = pfunnel("audit", codes, "--labels", labels, "--private", "y", "-o", report)
    assert ended.code == 0, ended.err
    assert "must hold the same people in the same order" in ended.err
    meta = json.loads(report.read_text(encoding="utf-8"))["payload"]["meta"]
    assert meta["not_audited"][0].startswith("That codes and private values are of the same people")
    mixed = write_csv(tmp_path / "m.csv", [[str(one)] for one in rng.permutation(y)], ["z"])
    ended = pfunnel("audit", mixed, "--labels", labels, "--private", "y", "-o", tmp_path / "m.json")
    assert (ended.code, ended.out) == (2, "")
    assert "if the rows are in another order nothing can be, whatever the file tells" in ended.err
    assert "pass --same-order if both hold the same people" in ended.err
    assert not (tmp_path / "m.json").exists()
    ended = pfunnel("audit", mixed, "--labels", labels, "--private", "y", "--same-order")
    assert ended.code == 0, ended.err
    ended = pfunnel("audit", codes, "--labels", labels, "--private", "y", "--figures")
    assert "--figures: there is nothing to draw" in ended.err


def test_what_else_a_released_file_holds_is_told(pfunnel: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    np.savez(tmp_path / "r.npz", z=rng.normal(size=(60, 2)), y=y, secret=y)
    rows = [[f"{a:.3f}", f"c{b}", "n"] for a, b in zip(rng.normal(size=60), y, strict=True)]
    table = write_csv(tmp_path / "r.csv", rows, ["z", "y", "note"])
    for asked, held in (
        ((tmp_path / "r.npz",), "y, secret"),
        ((table, "--private", "y", "--drop", "note"), "y, note"),
    ):
        said = read(pfunnel("audit", *asked, "--json"))["meta"]["not_audited"][0]
        assert said.startswith(f"What else the released file holds: {held}.")


def test_a_share_may_be_written_in_per_cent(pfunnel: Run, people: Path, mechanism: Path) -> None:
    ended = pfunnel("audit", mechanism, "--data", people, "--quick", "--n-jobs", 1, "--max-success", "1%")
    assert ended.code == 1, ended.err
    assert "above 0.01" in ended.out


def test_arrays_that_do_not_fit_each_other_get_one_sentence(
    pfunnel: Run, arrays: dict[str, Any], tmp_path: Path
) -> None:
    for change, words in (
        ({"x_hat": arrays["x"][:, 1:]}, "X and X_hat must hold the same numbers of each record"),
        ({"z": np.zeros((150, 0))}, "its shape is (150, 0)"),
    ):
        np.savez(tmp_path / "wrong.npz", **(arrays | change))
        ended = pfunnel("audit", tmp_path / "wrong.npz")
        assert ended.code == 2
        assert words in ended.err
        assert "Traceback" not in ended.err
