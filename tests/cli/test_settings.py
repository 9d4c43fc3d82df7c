"""The options of `pfunnel fit` are the settings of the estimators: none missing, none that says otherwise."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from privacyfunnel.cli.app import command
from privacyfunnel.cli.settings import NO_OPTIONS, SETTINGS, given_settings
from privacyfunnel.estimators import ESTIMATORS, estimator

FIT = {parameter.name: parameter for parameter in command().commands["fit"].params}


def estimators() -> dict[str, Any]:
    """An estimator of each method with its defaults."""
    pytest.importorskip("torch")
    return {method: estimator(method)() for method in ESTIMATORS}


def test_every_setting_is_an_option_and_every_option_a_setting() -> None:
    names = {field.name for model in estimators().values() for field in fields(type(model)) if field.init}
    assert names == {*SETTINGS, *NO_OPTIONS}
    for name, setting in SETTINGS.items():
        assert FIT[name].help == setting.help
        assert len(setting.help) > 10
        assert FIT[name].opts == list(setting.flags or ("--" + name.replace("_", "-"),))


def test_options_have_the_types_of_the_settings() -> None:
    for model in estimators().values():
        hints = get_type_hints(type(model))
        for name in model.get_params():
            if name not in SETTINGS or name == "checkpoint":  # which is a path
                continue
            hint = hints[name]
            several = getattr(hint, "__origin__", None) is Sequence
            kinds = {*(get_args(hint) or (hint,))} - {type(None)}
            assert (SETTINGS[name].several, {SETTINGS[name].kind}) == (several, kinds), name


def test_choices_are_those_that_the_estimators_take() -> None:
    models = estimators()
    from privacyfunnel.learned.families import LATENTS, LIKELIHOODS
    from privacyfunnel.learned.inputs import CHOICES

    chosen = {name: {*setting.choices} for name, setting in SETTINGS.items() if setting.choices}
    expected: dict[str, Sequence[str]] = {**CHOICES, "latent": [*LATENTS], "likelihood": [*LIKELIHOODS]}
    assert chosen == {name: {*values} for name, values in expected.items()}
    for model in models.values():
        for name, value in model.get_params().items():
            assert name not in chosen or value in chosen[name]


def test_shown_defaults_are_the_estimators() -> None:
    models = estimators()
    for name, setting in SETTINGS.items():
        if name in ("alpha", "epochs", "numeric", "checkpoint", "max_leakage", "align"):  # said in words
            continue
        shown = setting.default.replace("500, 500", "(500,500)")
        for method, model in models.items():
            if name not in model.get_params():
                continue
            value = getattr(model, name)
            text = f"{value:g}" if isinstance(value, float) else str(value).replace(" ", "")
            assert text in re.split(r"[ ;,]+(?![^(]*\))", shown), (name, method, text)


def test_only_what_was_given_is_passed_on() -> None:
    nothing: dict[str, Any] = dict.fromkeys(SETTINGS)
    assert given_settings(nothing | {"hidden": [], "numeric": []}) == {}
    assert given_settings(nothing | {"hidden": [4, 2], "alpha": 0.0}) == {"hidden": (4, 2), "alpha": 0.0}


@pytest.mark.parametrize("args", [(), *((name,) for name in command().commands)], ids=str)
def test_help_is_light(args: tuple[str, ...]) -> None:
    """What takes seconds to import is not imported to print a help."""
    heavy = ("torch", "umap", "matplotlib", "numba", "scipy", "sklearn", "pandas", "pyarrow", "highspy")
    code = (
        "import sys\nfrom privacyfunnel.cli.running import run\n"
        f"code = run([*{args!r}, '--help'])\n"
        f"print([m for m in {heavy!r} if m in sys.modules], code, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[] 0"
    assert "Usage: pfunnel" in ended.stdout
