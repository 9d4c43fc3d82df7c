"""What is handed out: the recipe says what pyproject.toml says, and the tables come with their licences."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, BUILD = WHOLE["project"], WHOLE["tool"]["hatch"]["build"]["targets"]


def part(name: str, text: str) -> list[str]:
    """The list below a heading of the recipe, without a parser of YAML."""
    body = re.search(rf"^( *){name}:\n((?:\1 .*\n|\1- .*\n)+)", text, re.MULTILINE)
    assert body is not None
    return [line.strip().removeprefix("- ") for line in body[2].splitlines()]


def test_the_conda_recipe_has_the_needs_and_the_version_of_the_project() -> None:
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    needs = [re.sub(r"(?=>=)", " ", need, count=1) for need in PROJECT["dependencies"]]
    assert part("run", recipe) == [f"python {PROJECT['requires-python']}", *needs]
    assert f'version: "{PROJECT["version"]}"' in recipe
    assert part("entry_points", recipe) == [f"pfunnel = {PROJECT['scripts']['pfunnel']}"]
    assert PROJECT["description"] in recipe
    assert f"license: {PROJECT['license']}" in recipe


def test_every_table_inside_has_a_note_on_its_licence() -> None:
    inside = files("privacyfunnel.datasets")
    tables = {"german-credit.csv.gz": "german-credit-licence.md", "adult.parquet": "adult-licence.md"}
    shipped = {one.name for one in inside.iterdir() if one.name.endswith((".gz", ".parquet", ".csv"))}
    assert shipped == set(tables)
    for table, note in tables.items():
        text = inside.joinpath(note).read_text(encoding="utf-8")
        assert table in text
        assert "CC BY 4.0" in text
        assert len(inside.joinpath(table).read_bytes()) < 600_000


def test_the_versions_that_are_named_are_those_that_are_tested() -> None:
    named = {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if " :: 3." in name}
    matrix = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    assert named == set(re.findall(r'"(3\.\d+)"', matrix.split("  docs:")[0]))
    assert min(named) == PROJECT["requires-python"].removeprefix(">=")


def test_the_source_distribution_has_every_page_that_the_site_includes() -> None:
    shipped = BUILD["sdist"]["include"]
    assert all((ROOT / name).exists() for name in shipped)
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    included = re.findall(r"\{include\} \.\./(\S+)", pages)
    assert {"CHANGELOG.md", "SECURITY.md"} <= set(included) <= set(shipped)
    assert {path.name for path in ROOT.glob("*.md")} <= set(shipped)


def test_whatever_a_workflow_or_a_page_runs_of_others_is_pinned() -> None:
    for path in [*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob("docs/**/*.md")]:
        for used in re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used), f"{path.name}: {used}"
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "pip install --require-hashes" in release.split("id-token: write")[1]
