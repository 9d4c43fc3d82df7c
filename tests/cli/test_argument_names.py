"""Messages that speak of an argument name it, so that the command says its option and no Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_tables import Run, make_records, write_csv

import privacyfunnel as pf
from privacyfunnel import errors
from privacyfunnel.cli.app import command
from privacyfunnel.cli.running import in_options
from privacyfunnel.errors import ConvergenceWarning, DataFileError, InvalidInputError
from privacyfunnel.solution import Status

PACKAGE = Path(pf.__file__).parent
OPTIONS = {
    p.name: p.opts[0]
    for part in command().commands.values()
    for p in part.params
    if p.param_type_name == "option"
} | {"random_state": "--seed", "rng": "--seed"}
KINDS = [
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
]
# What a file of runs holds is spelt there as in Python.
SPECS = [PACKAGE / "sweep" / name for name in ("data.py", "runs.py", "methods.py")]


def spoken_of(text: str) -> set[str]:
    """The arguments in a message that options stand for, by how Python spells them."""
    snake = [name for name in OPTIONS if "_" in name]
    plain = [name for name in OPTIONS if "_" not in name]
    found = re.findall(rf"(?<![\w'\"-])({'|'.join(snake)})(?![\w'\"])", text)
    found += re.findall(rf"(?<![\w'\"-])({'|'.join(plain)})=", text)
    found += re.findall(rf"^(?:[\w.]+: )?({'|'.join(plain)}) (?:must|belongs)", text)
    return set(found)


def messages(path: Path) -> list[tuple[int, str, set[str] | None]]:
    """Line, text without its values, and names of every error and warning that a file makes."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        if (getattr(node.func, "id", None) or getattr(node.func, "attr", "")) not in KINDS:
            continue
        parts = [
            str(part.value)
            for part in ast.walk(node.args[0])
            if isinstance(part, ast.Constant) and part.value
        ]
        given = next((k.value for k in node.keywords if k.arg == "names"), ast.Tuple([], ast.Load()))
        names = set(ast.literal_eval(given)) if isinstance(given, ast.Tuple) and _is_plain(given) else None
        found.append((node.lineno, "\0".join(parts), names))
    return found


def _is_plain(given: ast.Tuple) -> bool:
    return all(isinstance(one, ast.Constant) for one in given.elts)


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if "cli" not in path.parts and path not in SPECS]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_message_names_its_arguments(path: Path) -> None:
    for line, text, names in messages(path):
        if names is not None:
            assert spoken_of(text) <= names, f"line {line}: {text!r} names {names}"


def test_the_check_sees_messages(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text(
        "raise InvalidInputError(f\"n_z is {n}; use method='dca', not 'n_jobs'.\", names=('n_z',))\n"
        "raise DataFileError('f: private must be given.')\n"
    )
    (_, first, names), (_, second, none) = messages(source)
    assert spoken_of(first) == {"n_z", "method"}
    assert (names, spoken_of(second), none) == ({"n_z"}, {"private"}, set())


def assert_in_options(line: str) -> None:
    """No argument as Python spells it."""
    assert spoken_of(line.removeprefix("error: ").removeprefix("warning: ")) == set(), line
    assert not re.search(r"\w=['\"\w]", line), line


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    np.savez("d.npz", x=rng.normal(size=(60, 3)), y=y, z=rng.normal(size=(60, 2)))
    np.savez("unit.npz", x=rng.random((60, 3)), y=y)
    write_csv(tmp_path / "people.csv", make_records())
    write_csv(tmp_path / "new.csv", [["1", "Kyiv", "f", ""]])
    write_csv(tmp_path / "gap.csv", [["1", "", "f", ""]])
    return tmp_path


SOLVE = ("solve", "people.csv", "--public", "city", "--private", "sex")
FIT = ("fit", "d.npz", "-o", "m", "--hidden", "4", "--epochs", "1", "--seed", "1")
BAD = [
    ((*SOLVE, "--beta", "1", "--n-z", "9" * 30, "--method", "dca"), "--n-z must be a whole number"),
    ((*SOLVE, "--beta", "1", "--max-steps", "9" * 30), "--max-steps must be a whole number"),
    ((*SOLVE, "--beta", "1", "--method", "dca-ridge", "--alpha", "0"), "--alpha must be a finite number"),
    ((*SOLVE, "--beta", "1", "--n-jobs", "0"), "--n-jobs must be a positive number"),
    (
        (*SOLVE, "--beta", "1", "--max-leakage", "1"),
        "and --remove; got --beta and --max-leakage",
    ),
    ((*SOLVE, "--min-utility", "9"), "--min-utility = 9 bit is more than H(X)"),
    ((*SOLVE, "--beta", "1", "--max-letters", "2"), "or raise --max-letters"),
    ((*SOLVE, "--beta", "1", "--penalty", "1", "--method", "dca"), "--penalty belongs to splitting"),
    (("solve", "gap.csv", *SOLVE[2:], "--beta", "1"), "missing values in column 'city' (1) among"),
    (("solve", "gap.csv", *SOLVE[2:], "--beta", "1"), "pass --missing letter"),
    (("frontier", *SOLVE[1:], "--n-points", "9" * 30), "--n-points must be a whole number"),
    (("frontier", *SOLVE[1:], "--method", "exact", "--time-limit", "0"), "--time-limit must be a finite"),
    (("release", "new.csv", "-m", "m.json", "-o", "z.csv"), "with --unknown draw or --unknown drop"),
    (("release", "gap.csv", "-m", "m.json", "-o", "z.csv"), "solve with --missing letter"),
    (("audit", "d.npz", "--confidence", "0"), "--confidence must be between 0 and 1"),
    (("sweep", "s.json", "--store", "s", "--n-jobs", "0"), "--n-jobs must be a whole number"),
    (("fit", "people.csv", "--private", "sex", "-o", "m"), "leave it out with --drop id"),
    (("fit", "people.csv", "--private", "sex", "--drop", "id", "-o", "m"), "leave it out with --drop city"),
    (
        (*FIT, "--likelihood", "exponential", "--objective", "dca"),
        "--likelihood exponential needs --objective",
    ),
    ((*FIT, "--learning-rate", "0"), "--learning-rate must be a finite number above 0"),
    ((*FIT, "--validation-fraction", "0.9"), "--validation-fraction must lie between 0 and 0.5"),
    ((*FIT, "--max-leakage", "0"), "--max-leakage must be a positive number"),
    ((*FIT, "--max-leakage", "1", "--leakage-weight", "0"), "--max-leakage needs a --leakage-weight above"),
    ((*FIT, "--max-leakage", "0.1"), "--max-leakage needs at least"),
    (
        ("fit", "unit.npz", *FIT[2:], "--scale", "columns", "--likelihood", "bernoulli"),
        "--scale columns would move X out of the range of --likelihood bernoulli; use --scale none",
    ),
    ((*FIT, "--scale", "none", "--likelihood", "bernoulli"), "for --likelihood bernoulli"),
    ((*FIT, "--architecture", "conv"), "--architecture conv needs square single-channel images"),
    ((*FIT, "--method", "deep-variational", "--batch-size", "1"), "--batch-size must be 2 or more"),
    ((*FIT, "--device", "abacus"), "--device must be 'auto' or a device"),
    ((*FIT, "--numeric", "a"), "--numeric names 'a'"),
    ((*FIT, "--method", "written", "--gamma", "1"), "--gamma is no setting of --method written"),
    ((*FIT, "--method", "conditional", "--leakage-weight", "1"), "--leakage-weight is no setting of"),
]


@pytest.mark.parametrize(("args", "words"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_the_command_speaks_of_options(
    pfunnel: Run, data: Path, mechanism: Path, args: tuple[str, ...], words: str
) -> None:
    if args[0] == "fit":
        pytest.importorskip("torch")
    (data / "s.json").write_text('{"runs": [{"method": "greedy", "data": {"name": "paper"}}]}')
    ended = pfunnel(*args)
    assert ended.code == 2, (ended.out, ended.err)
    line = ended.err.splitlines()[-1]
    assert words in line
    assert_in_options(line)


def test_warnings_and_statuses_speak_of_options(pfunnel: Run, data: Path) -> None:
    ended = pfunnel(*SOLVE, "--beta", "0.3", "--method", "dca", "--max-steps", "1", "--n-starts", "1")
    assert ended.code == 0, ended.err
    (warning,) = [line for line in ended.err.splitlines() if "step limit" in line]
    assert warning.endswith("Raise --max-steps or --tol.")
    assert "Raise --max-steps or --tol." in " ".join(ended.out.split())
    for line in (warning, ended.out):
        assert_in_options(line)
    ended = pfunnel(*SOLVE, "--max-leakage", "0.9", "--method", "greedy")
    assert "The limit --max-leakage = 0.9 bit does nothing" in " ".join(ended.out.split())


def _statuses() -> list[Any]:
    pytest.importorskip("torch")
    from privacyfunnel.learned.budget import BudgetStatus
    from privacyfunnel.learned.training import TrainingStatus

    return [*Status, *TrainingStatus, *BudgetStatus]


def test_every_status_is_spelt_for_the_command() -> None:
    spelt = [in_options(status.value, status.names) for status in _statuses()]
    for sentence in spelt:
        assert_in_options(sentence)
    assert any("--learning-rate" in one for one in spelt)
    assert any("--alpha or use --method dca" in one for one in spelt)


def test_python_reads_the_same_as_before() -> None:
    error = InvalidInputError("n_z must be 1.", names=["n_z"])
    assert (str(error), error.names, error.args) == ("n_z must be 1.", ("n_z",), ("n_z must be 1.",))
    placed = error.at("t.csv")
    assert (type(placed), str(placed), placed.names) == (InvalidInputError, "t.csv: n_z must be 1.", ("n_z",))
    file = DataFileError("t.csv: it is gone.")
    assert (str(file), file.names, file.errno) == ("t.csv: it is gone.", (), None)
    assert str(ConvergenceWarning("Raise tol.", names=("tol",))) == "Raise tol."
    with pytest.raises(InvalidInputError, match=r"^solve: pass exactly one of beta, min_utility") as wrong:
        pf.solve(pf.Joint([[0.5], [0.5]]))
    assert wrong.value.names == ("beta", "min_utility", "max_leakage")
