"""pfunnel fit: learn a release from samples."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataFileError, InvalidInputError
from ..estimators import ESTIMATORS, estimator
from . import options

if TYPE_CHECKING:
    from ..learned.base import LearnedFunnel
    from .records import Records

_MEMORY = "use smaller --hidden layers or fewer records, or train on parts of them in Python with partial_fit"


def _choice(*allowed: str) -> Any:
    def check(value: str | None) -> str | None:
        if value is not None and value not in allowed:
            raise typer.BadParameter(f"{value!r} is unknown; choose one of {', '.join(allowed)}")
        return value

    return check


def _setting(help: str, default: str, metavar: str = "NUMBER", **more: Any) -> Any:
    return typer.Option(metavar=metavar, show_default=default, help=help, **more)


def fit(
    data: options.Samples,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="The folder that the whole model is saved into, for its owner: it tells how many records "
            "have each private value.",
        ),
    ],
    encoder_output: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="A folder for the encoder alone, all that 'pfunnel encode' needs: hand this one on.",
        ),
    ] = None,
    private: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            show_default="y in .npz; the labels of IDX files",
            help="The column, or array of an .npz file, that must not be learned (Y). Repeat for several.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave this column out of X. Repeat for several."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            callback=_choice(*ESTIMATORS),
            help="What to learn: funnel, written (the funnel as the paper writes it), conditional (decoding "
            "needs Y), deep-variational, or autoencoder (no privacy: a reference point).",
        ),
    ] = "funnel",
    components: Annotated[
        int, typer.Option("--components", "-d", metavar="NUMBER", min=1, help="Length of the code Z.")
    ] = 64,
    alpha: Annotated[
        float | None, _setting("Weight of the code's noise.", "the method's", callback=options.numbers)
    ] = None,
    beta: Annotated[
        float | None,
        _setting(
            "Weight of the reconstruction, funnel and autoencoder.",
            "1; 0.05 as written",
            callback=options.numbers,
        ),
    ] = None,
    gamma: Annotated[
        float | None, _setting("Weight of the reconstruction, conditional.", "1", callback=options.numbers)
    ] = None,
    max_leakage: Annotated[
        float | None,
        typer.Option(
            metavar="BITS",
            callback=options.numbers,
            help="The most that fresh adversaries may find on records kept from training, funnel. The weight "
            "of the leakage is then found for it; exit code 1 says that the budget was not met.",
        ),
    ] = None,
    leakage_weight: Annotated[
        float | None, _setting("Weight of the leakage, funnel.", "1", callback=options.numbers)
    ] = None,
    objective: Annotated[
        str | None,
        _setting(
            "The plain sum of weights without a unit, or the paper's square (dca), funnel.",
            "lagrangian; dca as written",
            "lagrangian|dca",
            callback=_choice("lagrangian", "dca"),
        ),
    ] = None,
    classifier: Annotated[
        str | None,
        _setting(
            "What stands for the adversary, funnel. The paper's linear one stops linear ones only.",
            "mlp; linear as written",
            "mlp|linear",
            callback=_choice("mlp", "linear"),
        ),
    ] = None,
    classifier_steps: Annotated[
        int | None, _setting("Its steps for each of the encoder, funnel.", "3; 1 as written", min=1)
    ] = None,
    schedule: Annotated[
        str | None,
        _setting(
            "Both steps at once, or the encoder's after the decoder's, which can run away, funnel.",
            "simultaneous; alternating as written",
            "simultaneous|alternating",
            callback=_choice("simultaneous", "alternating"),
        ),
    ] = None,
    scale: Annotated[
        str | None,
        _setting(
            "Scale records column by column, by one common spread, or not at all.",
            "auto for funnel, else none",
            "auto|columns|common|none",
            callback=_choice("auto", "columns", "common", "none"),
        ),
    ] = None,
    validation_fraction: Annotated[
        float | None,
        _setting(
            "Share of the records kept from training for the verdict, funnel.",
            "0.1",
            callback=options.numbers,
        ),
    ] = None,
    numeric: Annotated[
        list[str] | None,
        _setting(
            "A private column of whole numbers that is a number and no class. Repeat for several.",
            "none",
            "COLUMN",
        ),
    ] = None,
    likelihood: Annotated[
        str | None,
        _setting(
            "What the reconstruction error is: gaussian, bernoulli (X in [0, 1]), laplace or exponential.",
            "gaussian",
            "NAME",
            callback=_choice("gaussian", "bernoulli", "laplace", "exponential"),
        ),
    ] = None,
    latent: Annotated[
        str | None,
        _setting("Noise of the code.", "normal", "normal|laplace", callback=_choice("normal", "laplace")),
    ] = None,
    architecture: Annotated[
        str | None,
        _setting(
            "Fully connected networks, or convolutions for square images.",
            "mlp",
            "mlp|conv",
            callback=_choice("mlp", "conv"),
        ),
    ] = None,
    hidden: Annotated[
        list[int] | None,
        _setting("Size of a hidden layer of the encoder, mlp. Repeat for several.", "500, 500", min=1),
    ] = None,
    epochs: Annotated[
        int | None,
        _setting(
            "Passes over the records.",
            "2,000 steps, with --max-leakage until no more is kept; else 100",
            min=1,
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="Records in a step.")] = 256,
    learning_rate: Annotated[
        float | None,
        _setting("Step size of Adam.", "0.001 for funnel, else 0.0003", callback=options.numbers),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=0, help="Makes training repeatable. Not releases.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Save every epoch here; the same command goes on from there."),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Where to train: cpu, cuda or mps; auto takes a GPU if there is one."
        ),
    ] = "auto",
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
) -> None:
    """Learn a code Z of the records in DATA that keeps them reconstructible and tells little about Y.

    The folder of --encoder-output, and new records, are all that 'pfunnel encode' needs: releasing never asks
    for the private column. The first line says what the code keeps and what adversaries guess from it, on
    records kept from training. It is no bound for all adversaries: judge a release with 'pfunnel audit'.

    Exit code 1 says that training diverged, or that the budget of --max-leakage was not met.
    """
    from .output import print_json
    from .records import check_options, enough_memory, read_records

    begun = time.perf_counter()
    check_options(data, delimiter, private or [], drop or [])
    options.check_folder(output, [data])
    if encoder_output is not None:
        options.check_folder(encoder_output, [data, output], encoder=True)
    settings = {
        "alpha": alpha,
        "beta": beta,
        "gamma": gamma,
        "max_leakage": max_leakage,
        "leakage_weight": leakage_weight,
        "objective": objective,
        "classifier": classifier,
        "classifier_steps": classifier_steps,
        "schedule": schedule,
        "scale": scale,
        "validation_fraction": validation_fraction,
        "epochs": epochs,
        "learning_rate": learning_rate,
        "numeric": numeric or None,
        "likelihood": likelihood,
        "latent": latent,
        "architecture": architecture,
        "hidden": tuple(hidden) if hidden else None,
    }
    from ..learned.inputs import pick_device

    kind = estimator(method)
    given = {name: value for name, value in settings.items() if value is not None}
    if foreign := [name for name in given if name not in kind().get_params()]:
        raise InvalidInputError(
            f"--{foreign[0].replace('_', '-')} is no setting of --method {method}; leave it out."
        )
    pick_device(device)
    model = kind(
        components,
        **given,
        batch_size=batch_size,
        random_state=seed,
        checkpoint=checkpoint,
        device=device,
    )
    with enough_memory(data, _MEMORY):
        _fit(model, data, read_records(data, private or [], drop or [], delimiter), private or [])
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
        _print(values)
    missed = values["budget"] is not None and not values["budget"]["met"]
    if missed or model.status_.name == "DIVERGED":
        raise typer.Exit(1)


def _print(values: dict[str, Any]) -> None:
    from .output import plural, print_facts

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
        ("Status", values["status"], ""),
        ("Saved", values["model"], f"{plural(values['epochs'], 'epoch')} in {values['seconds']:.1f} s"),
        ("Encoder", values["encoder"] or "", "to hand on; the model stays with its owner"),
    ]
    learned = f"{plural(values['n_records'], 'record')} learned from"
    verdict = values["verdict"]
    title = f"{values['data']}: {learned}." if verdict is None else f"{verdict} {values['data']}: {learned}."
    print_facts(title, [fact for fact in facts if fact[1]])


def _bits(value: float | None) -> str:
    return "any number of bits" if value is None else f"{value:.4f} bits"


def _fit(model: LearnedFunnel, data: str, records: Records, private: list[str]) -> None:
    from ..frames import make_frame

    columns = records.private
    if missing := [name for name in private if name not in columns]:
        raise InvalidInputError(f"{data}: there is no private {missing[0]!r} in the file; check --private.")
    if not columns and model.needs_private:
        raise InvalidInputError(f"{data}: nothing says what is private; name it with --private.")
    for name, values in columns.items():
        if len(values) != len(records) or values.ndim != 1:
            raise InvalidInputError(
                f"{data}: the private {name!r} has shape {values.shape} and there are {len(records)} "
                "records; give one value for each."
            )
    given = make_frame(columns) if columns else None
    try:
        model.fit(records.x, private=given)
    except (InvalidInputError, DataFileError) as error:
        raise type(error)(f"{data}: {error}") from None
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{data}: {str(error).splitlines()[0]}") from None
    if model.status_.name == "INTERRUPTED":
        raise KeyboardInterrupt


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
