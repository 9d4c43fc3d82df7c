"""pfunnel fit: learn a release from samples."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataFileError, InvalidInputError
from ..estimators import ESTIMATORS, estimator
from . import options
from .checks import check_columns, check_delimiter, check_folder, enough_memory
from .options import Option, columns
from .settings import SETTINGS, given_settings

if TYPE_CHECKING:
    from ..files import Records
    from ..learned.base import LearnedFunnel
    from ..learned.verdict import Verdict

_MEMORY = "use smaller --hidden layers or fewer records, or train on parts of them in Python with partial_fit"


NAMES = {
    "encoder_output": Option(
        "A folder for the encoder alone, all that 'pfunnel encode' needs: hand this one on.",
        kind=str,
        metavar="FOLDER",
    ),
    "private": columns(
        "The column, or array of an .npz file, that must not be learned (Y). Repeat for several.",
        "y in .npz; the labels of IDX files",
    ),
    "drop": columns("Leave this column out of X. Repeat for several."),
}


@options.with_options(SETTINGS, before="seed")
@options.with_options(NAMES, before="method")
def fit(
    data: options.Samples,
    output: Annotated[
        str,
        options.output(
            "The folder that the whole model is saved into, for its owner: it tells how many records "
            "have each private value.",
            "FOLDER",
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            callback=options.choice(*ESTIMATORS),
            help="What to learn: funnel; for comparison only, written (as the paper writes it), "
            "written-mended and published (as its authors' program computes it); conditional (decoding needs "
            "Y), deep-variational, or autoencoder (no privacy: a reference point).",
        ),
    ] = "funnel",
    seed: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=0, help="Makes training repeatable. Not releases.")
    ] = None,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
    **more: Any,
) -> None:
    """Learn a code Z of the records in DATA that keeps them reconstructible and tells little about Y.

    The folder of --encoder-output, and new records, are all that 'pfunnel encode' needs: releasing never asks
    for the private column. The first line says what the code keeps and what adversaries guess from it, on
    records kept from training. It is no bound for all adversaries: judge a release with 'pfunnel audit'.

    Exit code 1 says that training diverged, or that the budget of --max-leakage was not met.
    """
    from ..files import open_records
    from .output import print_json

    begun = time.perf_counter()
    check_delimiter(delimiter, [data])
    encoder_output, private, drop = options.listed(NAMES, more).values()
    check_columns(data, private, drop)
    check_folder(output, [data])
    if encoder_output is not None:
        check_folder(encoder_output, [data, output], encoder=True)
    from ..learned.inputs import pick_device

    kind = estimator(method)
    given = given_settings({name: more[name] for name in SETTINGS})
    if foreign := [name for name in given if name not in kind().get_params()]:
        raise InvalidInputError(
            f"{foreign[0]} is no setting of --method {method}; leave it out.", names=foreign
        )
    if encoder_output is not None and given.get("align"):
        from ..learned.aligned import REFUSED

        raise InvalidInputError(REFUSED, names=("align",))
    pick_device(given.get("device", "auto"))
    model = kind(**given, random_state=seed)
    with enough_memory(data, _MEMORY):
        _fit(model, data, open_records(data, delimiter=delimiter).records(private, drop))
    model.save(output)
    if encoder_output is not None:
        model.save(encoder_output, part="encoder")
    values = _values(model, data, output, method) | {
        "encoder": encoder_output,
        "seconds": time.perf_counter() - begun,
    }
    if as_json:
        print_json(values)
    else:
        _print(values, model)
    missed = values["budget"] is not None and not values["budget"]["met"]
    if missed or model.status_.name == "DIVERGED":
        raise typer.Exit(1)


def _print(values: dict[str, Any], model: LearnedFunnel) -> None:
    from .output import plural, print_facts
    from .running import in_options

    budget = values["budget"]
    leakage = values["leakage_estimate"]
    facts = [
        ("Private", ", ".join(f"{p['name']} (H = {p['entropy']:.3f} bits)" for p in values["private"]), ""),
        (
            "Code",
            plural(values["n_components"], "component"),
            f"of {plural(values['n_features'], 'feature')}",
        ),
        ("Leakage", f"{leakage:.4f} bits" if leakage is not None else "", "what training's classifier finds"),
        (
            "Budget",
            "" if budget is None else f"{budget['target']:g} bits {'met' if budget['met'] else 'not met'}",
            "" if budget is None else f"fresh adversaries find at most {_bits(budget['upper'])}",
        ),
        ("Status", in_options(values["status"], model.status_.names), ""),
        ("Saved", values["model"], f"{plural(values['epochs'], 'epoch')} in {values['seconds']:.1f} s"),
        ("Encoder", values["encoder"] or "", "to hand on; the model stays with its owner"),
    ]
    learned = f"{plural(values['n_records'], 'record')} learned from"
    verdict = values["verdict"]
    title = f"{values['data']}: {learned}." if verdict is None else f"{verdict} {values['data']}: {learned}."
    print_facts(title, [fact for fact in facts if fact[1]])


def _bits(value: float | None) -> str:
    return "any number of bits" if value is None else f"{value:.4f} bits"


def _fit(model: LearnedFunnel, data: str, records: Records) -> None:
    from ..frames import make_frame

    columns = records.private
    if not columns and model.needs_private:
        raise InvalidInputError(f"{data}: nothing says what is private; name it with --private.")
    for name, values in columns.items():
        if len(values) != len(records):
            raise InvalidInputError(
                f"{data}: the private {name!r} has shape {values.shape} and there are {len(records)} "
                "records; give one value for each."
            )
    given = make_frame(columns) if columns else None
    try:
        model.fit(records.x, private=given)
    except (InvalidInputError, DataFileError) as error:
        raise error.at(data) from None
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{data}: {str(error).splitlines()[0]}") from None
    if model.status_.name == "INTERRUPTED":
        raise KeyboardInterrupt


def _summary(verdict: Verdict) -> dict[str, Any]:
    """The verdict as one flat row, with the keys of `AuditReport.summary`."""
    several = len(verdict.guessed) > 1
    row: dict[str, Any] = {
        "attribute": ", ".join(one.name for one in verdict.guessed) or None,
        "n_records": verdict.n,
        "explained": verdict.explained,
    }
    for one in verdict.guessed:
        before = f"{one.name}: " if several else ""
        row[f"{before}success"], row[f"{before}chance"] = one.success, one.chance
        row[f"{before}leakage"], row[f"{before}leakage_kind"] = one.bits, "lower bound"
    return row


def _values(model: LearnedFunnel, data: str, output: str, method: str) -> dict[str, Any]:
    history = model.progress_.history
    last = history[-1] if history else {}
    columns = () if model.private_ is None else model.private_.columns
    budget = getattr(model, "budget_", None)
    verdict = getattr(model, "verdict_", None)
    return {
        "command": "fit",
        "data": data,
        "model": output,
        "method": method,
        "n_records": model.n_records_,
        "n_features": model.n_features_in_,
        "n_components": model.n_components,
        "private": [
            {
                "name": column.name,
                "n_classes": None if column.classes is None else len(column.classes),
                "entropy": column.entropy / math.log(2),
            }
            for column in columns
        ],
        "epochs": model.progress_.epoch,
        "verdict": None if verdict is None else str(verdict),
        "summary": None if verdict is None else _summary(verdict),
        "status": model.status_.value,
        "finished": model.status_.ok,
        "leakage_estimate": last.get("leakage"),
        "budget": None
        if budget is None
        else {
            "target": budget.target,
            "upper": budget.upper if math.isfinite(budget.upper) else None,
            "used": budget.used if math.isfinite(budget.upper) else None,
            "met": budget.accepted,
            "explained": budget.explained,
            "status": budget.status.value,
        },
        "seed": model.seed_,
    }
