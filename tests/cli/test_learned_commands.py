"""pfunnel fit, encode and decode: every kind of file, exit codes, sentences."""

from __future__ import annotations

import gzip
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cli_tables import Run, read_csv, write_csv
from pyarrow import parquet

import privacyfunnel as pf

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_torch_thread")

TINY = ["--components", 3, "--hidden", 8, "--epochs", 2, "--seed", 1]
NAMES = [f"funnel{j}" for j in range(3)]


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    data = load_digits()
    return (data.images[:120] / 16).astype(np.float32), data.target[:120]


@pytest.fixture
def npz(digits: Any, tmp_path: Path) -> Path:
    np.savez(tmp_path / "digits.npz", x=digits[0], y=digits[1])
    return tmp_path / "digits.npz"


@pytest.fixture
def model(pfunnel: Run, npz: Path) -> Path:
    ended = pfunnel("fit", npz, "--output", npz.with_name("model"), *TINY)
    assert ended.code == 0, ended.err
    return npz.with_name("model")


def write_idx(path: Path, values: np.ndarray) -> None:
    head = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    data = head + values.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def test_npz_there_and_back(pfunnel: Run, npz: Path, model: Path, digits: Any) -> None:
    z, back = npz.with_name("z.npz"), npz.with_name("back.npz")
    np.savez(npz.with_name("new.npz"), x=digits[0][:50])  # no y: releasing never needs it
    ended = pfunnel("encode", npz.with_name("new.npz"), "--model", model, "--output", z, "--json")
    assert ended.code == 0, ended.err
    values = json.loads(ended.out)
    assert (values["n_records"], values["n_components"], values["seeded"]) == (50, 3, False)
    with np.load(z) as file:
        assert file.files == ["z"]
        codes = file["z"]
    ended = pfunnel("decode", z, "--model", model, "--output", back)
    assert ended.code == 0, ended.err
    assert "50 records reconstructed" in ended.out
    with np.load(back) as file:
        np.testing.assert_array_equal(file["x"], pf.load(model).inverse_transform(codes))
        assert file["x"].shape == (50, 8, 8)


def test_fit_says_what_it_did(pfunnel: Run, npz: Path) -> None:
    output = npz.with_name("other")
    ended = pfunnel("fit", npz, "-o", output, *TINY, "--alpha", 0.02, "--classifier", "linear", "--json")
    assert ended.code == 0, ended.err
    values = json.loads(ended.out)
    assert (values["n_records"], values["n_features"], values["epochs"], values["seed"]) == (120, 64, 2, 1)
    (private,) = values["private"]
    assert (private["name"], private["n_classes"]) == ("y", 10)
    assert private["entropy"] == pytest.approx(np.log2(10), abs=0.05)
    loaded = pf.load(output)
    assert (loaded.alpha, loaded.classifier, loaded.hidden) == (0.02, "linear", (8,))
    assert values["leakage_estimate"] == loaded.history_["leakage"].iloc[-1]
    ended = pfunnel("fit", npz, "-o", output, *TINY)
    assert "120 records learned from" in ended.out
    assert "bits" in ended.out


def test_the_first_line_is_the_verdict(pfunnel: Run, npz: Path, monkeypatch: Any) -> None:
    from privacyfunnel.learned.verdict import Guessed, Verdict

    ended = pfunnel("fit", npz, "-o", npz.with_name("few"), *TINY)
    assert ended.out.startswith("Not measured: 120 records are too few to keep some from training; audit")
    verdict = Verdict(0.41, (Guessed("sex", 0.71, 0.67, 0.02, 0.9),), 50)
    monkeypatch.setattr("privacyfunnel.learned.verdict.LEAST_KEPT", 10)
    monkeypatch.setattr("privacyfunnel.learned.funnel.judged", lambda *rest: verdict)
    args = ("fit", npz, "-o", npz.with_name("m"), *TINY, "--validation-fraction", 0.3)
    ended = pfunnel(*args)
    assert ended.code == 0, ended.err
    sentence = "Keeps 41 % of the variance; sex guessed 71 %, chance 67 %"
    assert ended.out.startswith(f"{sentence} (measured on 50 records kept from training).")
    values = json.loads(pfunnel(*args, "--json").out)
    assert values["verdict"] == str(verdict)
    row = {"attribute": "sex", "n_records": 50, "explained": 0.41, "success": 0.71, "chance": 0.67}
    assert values["summary"] == {**row, "leakage": 0.02, "leakage_kind": "lower bound"}
    verdict = Verdict(0.41, (verdict.guessed[0], Guessed("age", 0.5, 0.4, 0.01, 1.0)), 50)
    several = json.loads(pfunnel(*args, "--json").out)["summary"]
    assert (several["sex: success"], several["age: leakage"]) == (0.71, 0.01)
    assert several["attribute"] == "sex, age"


def test_the_encoder_alone_is_enough_to_release(pfunnel: Run, npz: Path) -> None:
    model, encoder, z = (npz.with_name(name) for name in ("model", "encoder", "z.npz"))
    ended = pfunnel("fit", npz, "-o", model, "--encoder-output", encoder, *TINY)
    assert ended.code == 0, ended.err
    assert "to hand on; the model stays with its owner" in " ".join(ended.out.split())
    codes = []
    for folder in (model, encoder):
        ended = pfunnel("encode", npz, "-m", folder, "-o", z, "--seed", 3)
        assert ended.code == 0, ended.err
        with np.load(z) as file:
            codes.append(file["z"])
    np.testing.assert_array_equal(*codes)
    ended = pfunnel("decode", z, "-m", encoder, "-o", npz.with_name("x.npz"))
    assert (ended.code, ended.out) == (2, "")
    assert "this is the encoder alone, which cannot reconstruct records" in ended.err
    for wrong in (model, npz.parent):  # the owner's folder, and one with the records in it
        ended = pfunnel("fit", npz, "-o", model, "--encoder-output", wrong, *TINY)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["npz", "csv", "parquet"])
@pytest.mark.parametrize("decimals", [None, 2])
def test_codes_have_no_finer_digits(
    pfunnel: Run, npz: Path, model: Path, kind: str, decimals: int | None
) -> None:
    z = npz.with_name(f"z.{kind}")
    more = [] if decimals is None else ["--decimals", decimals]
    ended = pfunnel("encode", npz, "-m", model, "-o", z, *more)
    assert ended.code == 0, ended.err
    assert ("32-bit" if decimals is None else "2 decimals") in ended.out
    if kind == "csv":
        texts = [text for row in read_csv(z)[1] for text in row]
        values = np.array(texts, dtype=np.float64)
        # No more digits than the shortest text of a 32-bit number has.
        assert max(len(text.lstrip("-0.").replace(".", "").split("e")[0]) for text in texts) <= 9
        values = values.astype(np.float32)
    elif kind == "parquet":
        table = parquet.read_table(z)
        assert {str(field.type) for field in table.schema} == {"float"}
        values = np.column_stack([table[name] for name in NAMES])
    else:
        with np.load(z) as file:
            values = file["z"]
        assert values.dtype == np.float32
    rounded = values.round(2)
    assert np.array_equal(values, rounded) == (decimals == 2)
    assert not np.signbit(values[values == 0]).any()


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_tables(pfunnel: Run, kind: str, digits: Any, tmp_path: Path) -> None:
    x, y = digits[0].reshape(120, 64)[:, 10:30], digits[1]
    columns = {f"pixel {j}": x[:, j] for j in range(20)}
    odd = np.where(y % 2, "odd", "even")
    data, new, folder = tmp_path / f"data.{kind}", tmp_path / "new.parquet", tmp_path / "model"
    from privacyfunnel.files import open_writer

    with open_writer(data) as writer:
        writer.write(pa.table({"id": [f"n{i}" for i in range(120)], "odd": odd, **columns}))
    ended = pfunnel("fit", data, "--private", "odd", "--drop", "id", "-o", folder, *TINY)
    assert ended.code == 0, ended.err
    loaded = pf.load(folder)
    assert list(loaded.feature_names_in_) == list(columns)
    assert loaded.private_.columns[0].classes.tolist() == ["even", "odd"]
    # Other columns, another order, another kind of file: the names decide.
    parquet.write_table(pa.table({"more": y, **dict(reversed(columns.items()))}), new)
    for seed in (5, 5, 6):
        ended = pfunnel("encode", new, "-m", folder, "-o", tmp_path / f"z{seed}.csv", "--seed", seed)
        assert ended.code == 0
        assert "use it for tests only" in ended.err
    header, rows = read_csv(tmp_path / "z5.csv")
    assert header == NAMES
    loaded.set_params(release_state=np.random.default_rng(5))
    expected = loaded.transform(pa.table(columns))
    np.testing.assert_allclose(np.array(rows, dtype=np.float32), expected, rtol=1e-5)
    assert rows != read_csv(tmp_path / "z6.csv")[1]
    ended = pfunnel("decode", tmp_path / "z5.csv", "-m", folder, "-o", tmp_path / "back.parquet")
    assert ended.code == 0, ended.err
    back = parquet.read_table(tmp_path / "back.parquet")
    assert back.column_names == list(columns)
    expected = loaded.inverse_transform(expected)
    np.testing.assert_allclose(np.column_stack([back[name] for name in columns]), expected, atol=1e-4)


def test_large_tables_are_released_in_batches(pfunnel: Run, tmp_path: Path, monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.random(90), "b": rng.random(90), "y": rng.integers(2, size=90)})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert pfunnel("fit", tmp_path / "t.parquet", "--private", "y", "-o", tmp_path / "m", *TINY).code == 0
    outputs = []
    for rows in (1 << 16, 7):
        monkeypatch.setattr("privacyfunnel.files.base.BATCH_ROWS", rows)
        output = tmp_path / f"{rows}.parquet"
        ended = pfunnel("encode", tmp_path / "t.parquet", "-m", tmp_path / "m", "-o", output, "--seed", 2)
        assert ended.code == 0, ended.err
        codes = parquet.read_table(output)
        outputs.append(np.column_stack([codes[name] for name in NAMES]))
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-4, atol=1e-5)
    assert len(np.unique(outputs[1][:, 0])) == 90


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_codes_in_random_order(pfunnel: Run, npz: Path, model: Path, kind: str) -> None:
    def codes(name: str, *more: object) -> list[list[float]]:
        output = npz.with_name(f"{name}.{kind}")
        assert pfunnel("encode", npz, "-m", model, "-o", output, *more).code == 0
        if kind == "csv":
            return [[float(value) for value in row] for row in read_csv(output)[1]]
        with np.load(output) as file:
            return file["z"].tolist()

    in_order, once, again = codes("a", "--seed", 1), *(codes("b", "--seed", 1, "--shuffle") for _ in "12")
    assert once == again != in_order
    assert sorted(once) == sorted(in_order)
    assert codes("c", "--shuffle") != codes("d", "--shuffle")


def test_names_of_columns_are_defused_on_request(pfunnel: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"=a": rng.random(90), "b": -rng.random(90), "y": rng.integers(2, size=90)})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert pfunnel("fit", tmp_path / "t.parquet", "--private", "y", "-o", tmp_path / "m", *TINY).code == 0
    for command, data, output in (("encode", "t.parquet", "z.csv"), ("decode", "z.csv", "back.csv")):
        ask = (command, tmp_path / data, "-m", tmp_path / "m", "--spreadsheet-safe")
        assert pfunnel(*ask, "-o", tmp_path / output).code == 0
        refused = pfunnel(*ask, "-o", tmp_path / "x.npz")
        assert refused.code == 2
        assert "--spreadsheet-safe belongs to CSV files" in refused.err
    assert read_csv(tmp_path / "back.csv")[0] == ["'=a", "b"]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_images(pfunnel: Run, ending: str, digits: Any, tmp_path: Path) -> None:
    images = np.round(digits[0] * 255)
    write_idx(tmp_path / f"train-images-idx3-ubyte{ending}", images)
    write_idx(tmp_path / f"train-labels-idx1-ubyte{ending}", digits[1])
    write_idx(tmp_path / f"t10k-images-idx3-ubyte{ending}", images[:20])
    folder = tmp_path / "model"
    ended = pfunnel("fit", tmp_path, "-o", folder, "--likelihood", "bernoulli", *TINY)
    assert ended.code == 0, ended.err
    assert pf.load(folder).record_shape_ == (8, 8)
    new = tmp_path / f"t10k-images-idx3-ubyte{ending}"
    ended = pfunnel("encode", new, "-m", folder, "-o", tmp_path / "z.npz", "--seed", 3)
    assert ended.code == 0, ended.err
    loaded = pf.load(folder).set_params(release_state=np.random.default_rng(3))
    with np.load(tmp_path / "z.npz") as file:
        np.testing.assert_allclose(file["z"], loaded.transform(images[:20].reshape(20, -1) / 255), rtol=1e-5)


def test_a_conditional_model_asks_for_the_private_column(pfunnel: Run, npz: Path, digits: Any) -> None:
    folder, z, back = (npz.with_name(name) for name in ("cpf", "z.npz", "back.npz"))
    assert pfunnel("fit", npz, "-o", folder, "--method", "conditional", "--gamma", 2, *TINY).code == 0
    assert pfunnel("encode", npz, "-m", folder, "-o", z).code == 0
    ended = pfunnel("decode", z, "-m", folder, "-o", back)
    assert ended.code == 2
    assert "decodes with the private attribute, and there is no 'y'" in ended.err
    with np.load(z) as file:
        codes = file["z"]
    np.savez(z, z=codes, y=digits[1])
    assert pfunnel("decode", z, "-m", folder, "-o", back).code == 0
    expected = pf.load(folder).inverse_transform(codes, private=digits[1])
    with np.load(back) as file:
        np.testing.assert_array_equal(file["x"], expected)
    rows = [[*map(str, row), str(label)] for row, label in zip(codes, digits[1], strict=True)]
    names = [f"conditionalfunnel{j}" for j in range(3)]
    table = write_csv(npz.with_name("z.csv"), rows, [*names, "y"])
    ended = pfunnel("decode", table, "-m", folder, "-o", back)
    assert ended.code == 0, ended.err
    with np.load(back) as file:
        np.testing.assert_allclose(file["x"], expected, atol=1e-5)


ROWS = [["1", "2.5", "m"], ["2", "0.5", "f"], ["3", "", "m"], ["4", "1", "f"]]


@pytest.mark.parametrize(
    ("rows", "args", "message"),
    [
        (ROWS, [], "nothing says what is private; name it with --private"),
        (ROWS, ["--private", "sx"], "there is no column 'sx'"),
        (
            ROWS[:2],
            ["--private", "a"],
            "column 'sex' does not hold numbers (record 1 has 'm'); encode it as numbers",
        ),
        (ROWS, ["--private", "sex"], "record 3 has no value in column 'b'; fill it in"),
        (ROWS[:2], ["--private", "sex", "--drop", "a", "--drop", "b"], "no column is left for X"),
        ([["1", "2", "f"], ["2", "3", "f"]], ["--private", "sex"], "one class only"),
        (
            [["1", "2", ""], ["2", "3", "f"]],
            ["--private", "sex"],
            "record 1 has no value in the private column",
        ),
        ([], ["--private", "sex"], "there are no records"),
        (ROWS[:1], ["--private", "sex"], "sample"),
        ([["1", "1e99", "m"], ["2", "3", "f"]], ["--private", "sex"], "record 1 has '1e99' in column 'b'"),
        (ROWS[:2], ["--private", "sex", "--gamma", 1], "--gamma is no setting of --method funnel"),
        (ROWS[:2], ["--private", "sex", "--method", "magic"], "'magic' is unknown; choose one of funnel"),
        (ROWS[:2], ["--private", "sex", "--likelihood", "bernoulli"], "between 0 and 1"),
    ],
)
def test_bad_tables_get_one_line(
    pfunnel: Run, tmp_path: Path, rows: list[list[str]], args: list[Any], message: str
) -> None:
    table = write_csv(tmp_path / "t.csv", rows, ["a", "b", "sex"])
    settings = [] if "--private" not in args else args
    drop = ["--drop", "sex", "--drop", "b"] if not args else []
    ended = pfunnel("fit", table, "-o", tmp_path / "m", *TINY, *settings, *drop)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.count("\n") == 1
    assert message in ended.err
    assert not (tmp_path / "m").exists()


def test_bad_arrays_and_places(pfunnel: Run, npz: Path, model: Path, tmp_path: Path) -> None:
    def error(*args: object) -> str:
        ended = pfunnel(*args)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.count("\n") == 1, ended.err
        return ended.err

    here = tmp_path / "here"
    here.mkdir()
    np.savez(here / "pickle.npz", x=np.array([{"a": 1}], dtype=object), y=[1])
    np.savez(here / "other.npz", a=np.ones((3, 2)))
    np.savez(here / "flat.npz", x=np.ones(3))
    np.savez(here / "nan.npz", x=[[1.0, 2.0], [np.nan, 1.0]], y=[0, 1])
    np.savez(here / "short.npz", x=np.ones((3, 2)), y=[0, 1])
    with (here / "single.npz").open("wb") as file:
        np.save(file, np.ones((3, 2)))
    np.savez(here / "text.npz", x=np.array([["a"], ["b"]]), y=[0, 1])
    (here / "cut.npz").write_bytes(npz.read_bytes()[:500])
    for name, members in {"member.npz": {"x": b"text"}, "label.npz": {"y": b"text"}}.items():
        np.savez(here / name, **({"x": np.ones((3, 2))} if "x" not in members else {}))
        with zipfile.ZipFile(here / name, "a") as archive:
            for member, content in members.items():
                archive.writestr(f"{member}.npy", content)
    for name, message in {
        "pickle.npz": "plain arrays",
        "other.npz": "there is no array 'x' in the file (it holds a)",
        "flat.npz": "a row for each record",
        "nan.npz": "record 2 of the array 'x'",
        "short.npz": "one value for each",
        "text.npz": "does not hold numbers",
        "cut.npz": "damaged",
        "single.npz": "this is no .npz file",
        "none.npz": "there is no such file",
        "member.npz": "its member 'x' is no array",
        "label.npz": "its member 'y' is no array",
    }.items():
        assert message in error("fit", here / name, "-o", here / "m", *TINY), name
    assert "train-images-idx3-ubyte" in error("fit", here, "-o", here / "m", *TINY)
    assert "this is what the command reads" in error("fit", npz, "-o", npz, *TINY)
    assert "this is a file" in error("fit", npz, "-o", here / "cut.npz", *TINY)
    assert "there is no array 'w' in the file (it holds x, y)" in error(
        "fit", npz, "-o", here / "m", "--private", "w", *TINY
    )
    assert not (here / "m").exists()

    z = here / "z.npz"
    assert "its member 'x' is no array" in error("encode", here / "member.npz", "-m", model, "-o", z)
    assert "its member 'x' is no array" in error("audit", model, "--data", here / "member.npz")
    with zipfile.ZipFile(here / "codes.npz", "w") as archive:
        archive.writestr("z.npy", b"text")
        archive.writestr("y.npy", b"text")
    assert "its member 'z' is no array" in error("audit", here / "codes.npz")
    (here / "many-idx.idx").write_bytes(b"\0\0\x08\xc8" + b"\0\0\0\1" * 200 + b"\7")
    for command in ("fit", "encode"):
        more = ["-o", here / "m", *TINY] if command == "fit" else ["-m", model, "-o", z]
        assert "promises 200 dimensions" in error(command, here / "many-idx.idx", *more)
    assert "no such folder" in error("encode", npz, "-m", here / "none", "-o", z)
    assert "manifest.json (there is none)" in error("encode", npz, "-m", here, "-o", z)
    assert "must end in .npz" in error("encode", npz, "-m", model, "-o", here / "z.txt")
    assert "is read by this command" in error("encode", npz, "-m", model, "-o", npz)
    np.savez(here / "narrow.npz", x=np.ones((3, 2)), z=np.ones((3, 2)))
    assert "has 2 values and the model is for 64" in error(
        "encode", here / "narrow.npz", "-m", model, "-o", z
    )
    assert "3 components" in error("decode", here / "narrow.npz", "-m", model, "-o", z)
    table = write_csv(here / "z.csv", [["1"]], ["a"])
    assert "there is no column 'funnel0'" in error("decode", table, "-m", model, "-o", z)
    assert "has 1 columns" in error("encode", table, "-m", model, "-o", z)
    (weights,) = model.glob("weights-*")
    weights.write_bytes(weights.read_bytes()[:-1])
    assert "damaged or cut short" in error("encode", npz, "-m", model, "-o", z)
    assert not z.exists()


def test_interrupted_training_saves_nothing(pfunnel: Run, npz: Path, monkeypatch: Any) -> None:
    from privacyfunnel.learned.steps import AlternatingStep

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(AlternatingStep, "__call__", interrupted)
    ended = pfunnel("fit", npz, "-o", npz.with_name("m"), *TINY)
    assert ended.code == 130
    assert ended.err.splitlines() == [
        "error: interrupted; no file was left unfinished, run the command again for the result."
    ]
    assert not npz.with_name("m").exists()


@pytest.mark.parametrize("met", [True, False])
def test_a_budget_that_is_not_met_is_a_failed_gate(
    pfunnel: Run, npz: Path, monkeypatch: Any, met: bool
) -> None:
    from privacyfunnel.auditing.adversaries import LeakageBound
    from privacyfunnel.learned import Funnel
    from privacyfunnel.learned.base import LearnedFunnel
    from privacyfunnel.learned.budget import Budget, BudgetStatus
    from privacyfunnel.learned.verdict import Guessed, Verdict

    def train(self: Any, trained: Any, *args: Any, **more: Any) -> None:
        LearnedFunnel._train(self, trained, *args, **more)
        interval = pf.Interval(0.0, 0.2, 0.95, "held-out", 0)
        bound = LeakageBound(0.1, 0.05, interval, 40, 80, "mlp", 0.2, 0.1, 0.5, 1.0)
        status = BudgetStatus.MET if met else BudgetStatus.NOT_MET
        budget = trained.budget = Budget(self.max_leakage, bound, 0.18, met, 0.25, status, 2.0, ())
        trained.verdict = Verdict(0.25, (Guessed.of("y", bound, 1.0),), 40, budget.note)

    monkeypatch.setattr(Funnel, "_train", train)
    folder, target = npz.with_name("m"), 0.19 if met else 0.02
    ended = pfunnel("fit", npz, "-o", folder, *TINY, "--max-leakage", target)
    assert ended.code == (0 if met else 1), ended.err
    assert f"{target} bits {'met' if met else 'not met'}" in ended.out
    assert "at most 0.1800 bits" in ended.out
    assert ended.out.startswith("Keeps 25 % of the variance; y guessed 20 %, chance 10 %; ")
    assert f"{0.18 / target:.0%} of the budget of {target} bit used".replace("%", " %") in ended.out
    assert pf.load(folder).budget_.accepted is met
    ended = pfunnel("fit", npz, "-o", folder, *TINY, "--max-leakage", target, "--json")
    budget = json.loads(ended.out)["budget"]
    assert (budget["target"], budget["upper"], budget["met"], budget["explained"]) == (
        target,
        0.18,
        met,
        0.25,
    )
    assert budget["status"] == (BudgetStatus.MET if met else BudgetStatus.NOT_MET).value


def test_settings_reach_the_estimator(pfunnel: Run, npz: Path) -> None:
    output = npz.with_name("conv")
    ended = pfunnel(
        *("fit", npz, "-o", output, "-d", 2, "--epochs", 1, "--seed", 1),
        *("--architecture", "conv", "--latent", "laplace", "--device", "cpu"),
    )
    assert ended.code == 0, ended.err
    loaded = pf.load(output)
    assert (loaded.architecture, loaded.latent, loaded.n_components) == ("conv", "laplace", 2)
    for option, value, message in (
        ("--architecture", "rnn", "'rnn' is unknown; choose one of mlp, conv"),
        ("--latent", "cauchy", "'cauchy' is unknown; choose one of normal, laplace"),
        ("--device", "abacus", "it is 'abacus'"),
        ("--device", "xpu:7", "use 'cpu' or 'auto'"),
    ):
        ended = pfunnel("fit", npz, "-o", npz.with_name("none"), *TINY, option, value)
        assert ended.code == 2
        assert ended.err.count("\n") == 1
        assert message in ended.err
    assert not npz.with_name("none").exists()


@pytest.mark.parametrize(
    "shortage",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes."),
    ],
)
def test_too_little_memory(
    pfunnel: Run, npz: Path, model: Path, monkeypatch: Any, shortage: Exception
) -> None:
    from privacyfunnel.learned import Funnel

    def short(*args: Any, **more: Any) -> None:
        raise shortage

    for method in ("fit", "transform", "inverse_transform"):
        monkeypatch.setattr(Funnel, method, short)
    z = npz.with_name("z.npz")
    np.savez(npz.with_name("codes.npz"), z=np.zeros((2, 3)))
    for command, remedy in (
        (("fit", npz, "-o", npz.with_name("m"), *TINY), "--hidden"),
        (("encode", npz, "-m", model, "-o", z), "as CSV or Parquet"),
        (("decode", npz.with_name("codes.npz"), "-m", model, "-o", z), "as CSV or Parquet"),
    ):
        ended = pfunnel(*command)
        assert ended.code == 2
        assert "there is not enough memory for these records" in ended.err
        assert remedy in ended.err
        assert "--n-z" not in ended.err
        assert ended.err.count("\n") == 1
    assert not z.exists()


def test_a_full_disk_leaves_the_old_model(pfunnel: Run, npz: Path, model: Path, monkeypatch: Any) -> None:
    import errno

    z = pf.load(model).transform(np.zeros((2, 64), np.float32))

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        ended = pfunnel("fit", npz, "-o", model, *TINY, "--alpha", 1)
    assert ended.code == 2
    assert "No space left on device" in ended.err
    assert pf.load(model).alpha is None
    assert pf.load(model).transform(np.zeros((2, 64), np.float32)).shape == z.shape


def test_what_is_for_comparison_only_says_so(pfunnel: Run, npz: Path) -> None:
    ended = pfunnel("fit", npz, "--output", npz.with_name("m"), "--method", "published", *TINY)
    assert ended.code == 0, ended.err
    assert "for comparison only and protects nobody" in " ".join(ended.out.split())


def test_the_mended_reading_has_a_name(pfunnel: Run, npz: Path) -> None:
    folder = npz.with_name("m")
    ended = pfunnel("fit", npz, "--output", folder, "--method", "written-mended", "--beta", 0.1, *TINY)
    assert ended.code == 0, ended.err
    model = pf.load(folder)
    assert (model.likelihood, model.schedule, model.classifier) == ("bernoulli", "simultaneous", "linear")
    assert (model.objective, model.leakage_weight, model.beta) == ("dca", 0.2, 0.1)
