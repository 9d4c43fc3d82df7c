"""The table of methods: a solver is a row and a file of its own, and everything else has it."""

import os
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest
from typer.testing import CliRunner

import privacyfunnel as pf
from privacyfunnel.cli.app import app
from privacyfunnel.datasets import paper_joint
from privacyfunnel.discrete.iterate import State
from privacyfunnel.discrete.kernels import lagrangians
from privacyfunnel.discrete.methods import METHODS, Method, methods_with
from privacyfunnel.sweep.methods import kind_of


class Toy:
    """Goes half of the way from its start to the constant release, and so to L = 0, in every step."""

    name = "toy"
    monotone = False

    def start(self, problem, p, beta, parameter):
        return State(p.copy(), lagrangians(problem, p, beta), beta, parameter)

    def step(self, problem, state, active):
        constant = np.eye(state.p.shape[2])[0]
        state.p[active] = (state.p[active] + constant) / 2
        state.objective[active] = lagrangians(problem, state.p[active], state.beta[active])


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(METHODS, "toy", Method("toy", f"{__name__}:Toy", betas=(0.1, 0.3)))


def test_a_row_of_the_table_is_all_that_solve_and_frontier_need(toy):
    joint = paper_joint()
    solution = pf.solve(joint, beta=0.2, method="toy", n_starts=3, rng=0)
    assert (solution.method, solution.status) == ("toy", pf.Status.CONVERGED)
    assert 0 < solution.n_steps < 40
    assert solution.objective <= 1e-6
    kept = pf.solve(joint, min_utility=0.5, method="toy", n_starts=3, rng=0)
    assert kept.utility >= 0.5 - 1e-9
    assert kept.target == pf.solution.Target("min_utility", 0.5)
    front = pf.frontier(joint, method=["toy", "greedy"], n_points=3, n_starts=2, rng=0)
    assert front.methods == ("toy", "greedy")
    betas = [point.beta for point in front.select("toy").points if point.beta is not None]
    assert (min(betas), max(betas)) == (pytest.approx(0.1), pytest.approx(0.3))


def test_the_command_and_the_sweep_have_it_too(toy, tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("city,sex\n" + "Rome,f\nRome,m\nOslo,f\nOslo,f\n" * 20)
    ask = [str(table), "--public", "city", "--private", "sex"]
    solved = CliRunner().invoke(app, ["solve", *ask, "--beta", "0.2", "--method", "toy", "--json"])
    assert solved.exit_code == 0, solved.output
    assert '"method": "toy"' in solved.output
    wrong = CliRunner().invoke(app, ["solve", *ask, "--beta", "0.2", "--method", "tpy"])
    assert "did you mean toy?" in wrong.output
    assert kind_of("toy") == "solver"


def test_the_help_of_the_command_lists_it():
    code = (
        "from privacyfunnel.discrete.methods import METHODS, Method\n"
        "METHODS['toy'] = Method('toy', 'discrete.test_methods:Toy', parameter='alpha')\n"
        "from privacyfunnel.cli.app import app\n"
        "app(['solve', '--help'])"
    )
    wide = {**os.environ, "COLUMNS": "200", "TERMINAL_WIDTH": "200"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=wide)
    assert f"{', '.join(METHODS)}, toy." in " ".join(shown.stdout.replace("│", " ").split())
    assert "Regularisation of dca-ridge and dca-sparse and toy" in " ".join(shown.stdout.split())


@pytest.mark.parametrize("row", METHODS.values(), ids=METHODS)
def test_a_row_says_what_its_method_does(row):
    assert bool(row.algorithm) == (row.proof == "")
    if row.algorithm:
        found = resolve_name(row.algorithm)
        assert getattr(found, "name", row.name) == row.name
        assert hasattr(found, "step") == bool(row.starts)
    assert (row.parameter is None) == np.isnan(row.default)
    assert 0 < row.betas[0] < row.betas[1]


def test_settings_belong_to_methods():
    assert methods_with("alpha") == ["dca-ridge", "dca-sparse"]
    assert methods_with("penalty") == ["splitting"]
    assert set(METHODS) - set(methods_with("n_z")) == {"exact"}


def test_no_other_file_asks_for_a_method_by_name():
    """Adding one must not need an edit elsewhere; what is special about a method stands in its row."""
    package = Path(pf.__file__).parent
    rooms = [
        *(package / "discrete").glob("*.py"),
        *(package / "cli").glob("*.py"),
        *(package / "sweep").glob("*.py"),
    ]
    quoted = [f'"{name}"' for name in METHODS if name not in ("auto", "exact", "dca")]
    own = {"methods.py", *(f"{name.replace('-', '_')}.py" for name in METHODS)}
    for path in rooms:
        text = path.read_text(encoding="utf-8")
        assert path.name in own or [name for name in quoted if name in text] == [], path.name
