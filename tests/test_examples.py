"""The examples run, the README's code prints what it says, and the links of the docs lead somewhere."""

import re
import runpy
import sys
from pathlib import Path

import pytest
from pages import run_line

import privacyfunnel as pf

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run an example in an empty folder; what it printed."""

    def run(name, *arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def test_every_example_has_a_test_and_is_short():
    source = Path(__file__).read_text(encoding="utf-8")
    for example in EXAMPLES:
        assert f'run("{example.name}"' in source, f"{example.name} has no test here"
        assert len(example.read_text(encoding="utf-8").splitlines()) < 66


def test_pictures_of_pages_are_small_and_all_of_them_are_shown():
    pages = "".join(page.read_text(encoding="utf-8") for page in [*PAGES, ROOT / "docs" / "conf.py"])
    for picture in (ROOT / "docs" / "images").iterdir():
        assert picture.stat().st_size < 150_000, picture.name
        assert picture.name in pages, f"no page shows {picture.name}"


def test_quickstart(run, tmp_path):
    printed = run("quickstart.py", tmp_path)
    assert "OPTIMAL" in printed
    one, two, five = (float(v) for v in re.findall(r"same record: (\d+\.\d+) bit \(exact\)", printed))
    assert one < two < five
    claim = f"one release of a record leaks {one:.3f} bit, two leak {two:.3f} and five {five:.3f}"
    assert claim in " ".join(readme().split())
    assert isinstance(pf.load(tmp_path / "mechanism.json"), pf.TableMechanism)


def test_paper_figure(run, tmp_path):
    printed = run("paper_figure.py", tmp_path, "--quick")
    assert (tmp_path / "exact-3x3.png").read_bytes().startswith(b"\x89PNG")
    rows = [numbers(line) for line in printed.splitlines()[1:]]
    assert len(rows) == 8
    for _, proved, *leakages in rows:
        assert all(leakage >= proved for leakage in leakages)


def test_first_picture(run, tmp_path):
    """The sentence under it holds: up to four fifths of the occupation, nothing is told."""
    printed = run("first_picture.py", tmp_path)
    assert (tmp_path / "kept-and-told.png").read_bytes().startswith(b"\x89PNG")
    told = dict(re.findall(r"(\d+) % of .* (\d+\.\d+) bit", printed))
    assert float(told["80"]) == 0.0
    assert float(told["90"]) > 0.0
    assert "Four fifths of the occupation" in readme()


def test_measures(run, tmp_path):
    """Each release is the best, of those for one limit, at what it was asked; the page has the numbers."""
    printed = run("measures.py", tmp_path)
    rows = {line.split(":")[0][4:]: numbers(line) for line in printed.splitlines()}
    assert list(rows) == ["information", "distance", "task", "success"]
    same_limit = [rows[name] for name in ("information", "distance", "task")]
    for at, name in enumerate(("information", "distance", "task")):
        assert rows[name][at] == max(row[at] for row in same_limit)
        assert rows[name][3] <= 0.01
    assert (tmp_path / "measures.png").read_bytes().startswith(b"\x89PNG")
    page = " ".join((ROOT / "docs" / "methods.md").read_text(encoding="utf-8").split())
    task, information, success = (rows[name] for name in ("task", "information", "success"))
    assert f"keeps {task[2]:.0f} % of what can be told about credit" in page
    assert f"the one for information {information[2]:.0f} %" in page
    assert f"as often as the first, {information[4]:.1f} % of the time" in page
    assert f"it tells {success[3]:.3f} bit instead of {information[3]:.3f}" in page


def test_frontier_compare(run, tmp_path):
    printed = run("frontier_compare.py", tmp_path / "plane.png", "--quick")
    assert (tmp_path / "plane.png").exists()
    proved = numbers(next(line for line in printed.splitlines() if line.startswith("proved")))
    for method in ("exact", "dca", "dca-ridge", "greedy", "submodular"):
        leakages = numbers(next(line for line in printed.splitlines() if line.startswith(f"{method} ")))[:3]
        assert all(leakage >= bound for leakage, bound in zip(leakages, proved, strict=True))


def test_own_distribution(run, tmp_path):
    printed = run("own_distribution.py", tmp_path, "--quick")
    assert "OPTIMAL" in printed
    assert "which is proved" in printed
    assert (tmp_path / "own-plane.png").read_bytes().startswith(b"\x89PNG")
    for name in ("own-compare.csv", "own-compare.html"):
        assert (tmp_path / name).stat().st_size > 1000


def test_solver_behaviour(run):
    printed = run("solver_behaviour.py", "--quick").splitlines()
    rises = {line.split(":")[0]: numbers(line)[0] for line in printed if "L rises" in line}
    assert rises["dca"] == 0.0
    assert rises["dca-ridge"] > 10.0
    assert rises["dca-sparse"] > 10.0
    entropies = [numbers(line)[-1] for line in printed if "a row has" in line]
    assert entropies == sorted(entropies)  # more α, flatter rows


def test_local_gaps(run):
    printed = run("local_gaps.py", "--quick")
    above = [float(value) for value in re.findall(r"best +(-?\d\.\d+) bit above", printed)]
    assert len(above) == 14
    assert min(above) >= -1e-5


def test_audit_digits(run, tmp_path):
    printed = run("audit_digits.py", tmp_path, "--quick")
    shares = re.findall(r"(\d+) components, noise +(\S+): .* guesses (\S+)%", printed)
    success = {(width, noise): float(share) for width, noise, share in shares}
    assert len(success) == 4
    for width in ("4", "16"):  # more noise, fewer right guesses
        assert success[width, "0.25"] > success[width, "1.0"] + 20
    assert "Passed: success" in printed
    for name in ("audit.html", "card.md", "card.json", "compare.html", "success-psnr.png", "confusion.png"):
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.usefixtures("data_folder")
def test_adult_and_its_page(run):
    """The page's table of occupations is the one that is printed, and its optima are the ones found."""
    printed = run("adult.py")
    page = (ROOT / "docs" / "adult.md").read_text(encoding="utf-8")
    occupations = [
        line for line in printed.splitlines() if re.fullmatch(r"\| .+ \| 0\.\d{4} \| 0\.\d{3} \|", line)
    ]
    assert len(occupations) == 15
    for line in occupations:
        assert line in page
    found = re.findall(r"utility (\d+\.\d+), leakage (\d+\.\d+) bit", printed)
    utility, leakage = map(float, found[0])
    assert (round(utility, 3), round(leakage, 5)) == (3.0, 0.00259)
    for utility, leakage in found:
        assert f"{float(utility):.4f}" in page
        assert float(leakage) == 0.0 or leakage in page
    for low, high in re.findall(r"95 %: (\S+) to (\S+) bit", printed):
        assert f"{float(low):.5f} to {high}" in page or f"0 to {high}" in page


def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


def without_gap(text):
    """Rounding decides the digits of a gap, and rounding differs from machine to machine."""
    return re.sub(r"gap [0-9.e-]+", "gap", text)


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", readme(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(3))
def test_the_readmes_python_runs_and_prints_what_its_comments_say(number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = blocks("python")[number]
    exec(compile(code, f"README.md, Python block {number}", "exec"), {})
    printed = capsys.readouterr().out
    for solution in re.findall(r"# (Solution\(.*\))", code):
        assert without_gap(solution) in without_gap(printed)
    for value in re.findall(r"# (\d\.\d{4}) bit", code):
        assert value in printed


def test_the_readmes_shell_commands_run(tmp_path):
    """With a file of the reader's own."""
    assert len(blocks("python")) == 3
    people = pf.datasets.load_adult()
    people.iloc[:6000].to_csv(tmp_path / "people.csv", index=False)
    people.iloc[6000:6100].to_csv(tmp_path / "new.csv", index=False)
    (commands,) = blocks("sh")
    assert len(commands.splitlines()) == 3
    for line in commands.splitlines():
        run_line(line, tmp_path)
    for name, records in (("safe.csv", 6000), ("more.csv", 100)):
        header, *rows = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        assert "sex" not in header.split(",")
        assert len(rows) == records
    assert (tmp_path / "card.md").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http") and "gallery/" not in target:  # that is made with the site
            assert (page.parent / target.split("#")[0]).exists(), f"{page.name}: {target}"
