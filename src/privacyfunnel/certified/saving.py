"""Rules and fitted funnels as folders: what releases in rule.json, what is for the owner in funnel.json.

Everything is JSON, and nothing is executed when it is read. A rule holds cells, P(symbol | cell),
distributions of columns by symbol and the certificate: no private value, no label of one, no count. A funnel
holds counts of private values by cell besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from ..errors import FileFormatError, InvalidInputError, shortened
from ..joint import Joint
from ..measured import Interval, Kind, Measured
from ..measures import Distance, Task
from ..mechanism import TableMechanism
from ..persistence import (
    CERTIFIED_FILES,
    VERSIONS,
    Path_,
    decode_labels,
    encode_labels,
    load,
    load_json,
    made_folder,
    require,
    require_number,
    save_json,
)
from .cells import Cells
from .held_out import HeldOut
from .making import Made, shrunk
from .problem import CellProblem
from .readers import ArrayReader, FrameReader, Reader
from .rule import CertifiedRule
from .stored import numbers_from, numbers_to
from .tables import ColumnTables
from .verdict import Guess, Verdict

if TYPE_CHECKING:
    from .funnel import CertifiedFunnel

RULE, FUNNEL = CERTIFIED_FILES
ENCODER = "encoder"
ABOUT_RULE = "What releases records, and nothing that tells a private value; privacyfunnel.load reads it."
ABOUT_FUNNEL = (
    "The whole fitted funnel, for its owner alone: it tells how many records have each private value. To "
    "hand on what releases, use save(folder, part='release')."
)


def save_rule(rule: CertifiedRule, path: Path_) -> None:
    """Write a rule into a folder, which is created if needed."""
    _write(Path(path), RULE, "certified-rule", {"about": ABOUT_RULE, **rule_to_dict(rule)}, rule)


def save_funnel(funnel: CertifiedFunnel, path: Path_) -> None:
    """Write a fitted funnel into a folder: for its owner alone."""
    made, problem, held_out = funnel.made_, funnel.made_.problem, funnel.held_out_
    settings = {name: value for name, value in funnel.get_params().items() if name != "random_state"}
    if callable(settings["max_leakage"]):
        limits = {name: one.value for name, one in funnel.certificates_.items()}
        settings["max_leakage"] = limits if len(limits) > 1 else funnel.certificate_.value
    if not isinstance(settings["cells"], str):
        settings["cells"] = "kmeans"
    settings = {k: value.item() if isinstance(value, np.generic) else value for k, value in settings.items()}
    tasks = {"solved": made.tasks, "held_out": held_out.tasks}
    payload = {
        "about": ABOUT_FUNNEL,
        "settings": settings,
        "rule": rule_to_dict(funnel.rule_),
        "utility": funnel.utility_,
        "leakage": problem.leakage,
        "confidence": problem.confidence,
        "p_xy": numbers_to(problem.joint.p_xy),
        "n_samples": problem.joint.n_samples,
        "y_labels": encode_labels(problem.joint.y_labels, "private labels"),
        "y_names": list(problem.joint.y_names),
        "counts": numbers_to(held_out.counts),
        "sums": numbers_to(held_out.sums),
        "square": numbers_to(held_out.square),
        "total": numbers_to(held_out.total),
        "tasks": {name: None if table is None else numbers_to(table) for name, table in tasks.items()},
        "task_name": funnel.task_name_,
        "score_before": funnel.score_before_,
        "verdict": asdict(funnel.verdict_),
        "certificates": {name: _measured_to(one) for name, one in funnel.certificates_.items()},
        "notes": list(funnel.notes_),
    }
    _write(Path(path), FUNNEL, "certified-funnel", payload, funnel.rule_)


def load_certified(path: Path_) -> Any:
    """What `save` wrote into a folder: a CertifiedFunnel, or a CertifiedRule."""
    folder = Path(path)
    name = FUNNEL if (folder / FUNNEL).is_file() else RULE
    kind, version, payload = load_json(folder / name)
    wanted = "certified-funnel" if name == FUNNEL else "certified-rule"
    if kind != wanted or version > VERSIONS[wanted]:
        raise FileFormatError(
            f"{folder / name}: this is a {kind!r} of version {version}, and this library reads a {wanted!r} "
            f"up to {VERSIONS[wanted]}; install a newer one."
        )
    try:
        return (_read_funnel if name == FUNNEL else rule_from_dict)(payload, folder)
    except (FileFormatError, InvalidInputError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise FileFormatError(f"{folder / name}: the file is damaged: {error} Save it again.") from None


def rule_to_dict(rule: CertifiedRule) -> dict[str, Any]:
    """JSON types."""
    return {
        "reader": rule.reader.to_dict(),
        "cells": rule.cells.to_dict(),
        "mechanism": rule.mechanism.to_dict(),
        "p_cells": numbers_to(rule.p_cells),
        "cell_points": numbers_to(rule.cell_points),
        "private_names": list(rule.private_names),
        "certificate": _measured_to(rule.certificate),
        "tables": None if rule.tables is None else rule.tables.to_dict(),
    }


def rule_from_dict(values: Mapping[str, Any], folder: Path) -> CertifiedRule:
    """The inverse of `rule_to_dict`; an encoder lies in the folder."""
    given = require(values, "reader", dict)
    reader: Reader = (FrameReader if given["kind"] == "frame" else ArrayReader).from_dict(given)
    written = require(values, "cells", dict)
    encoder = load(folder / ENCODER) if written["encoder"] else None
    cells = Cells.from_dict(written, reader.n_features, encoder)
    tables = None if values["tables"] is None else ColumnTables.from_dict(values["tables"])
    rule = CertifiedRule(
        reader,
        cells,
        TableMechanism.from_dict(require(values, "mechanism", dict)),
        numbers_from(values, "p_cells"),
        numbers_from(values, "cell_points"),
        tuple(map(str, require(values, "private_names", list))),
        _measured_from(require(values, "certificate", dict)),
        tables,
    )
    fits = rule.mechanism.n_x == cells.n_cells == len(rule.p_cells) == len(rule.cell_points)
    fits = fits and rule.cell_points.shape[1:] == (reader.n_features,)
    if not fits or (tables is not None and tables.n_symbols != rule.n_symbols):
        raise FileFormatError("cells, mechanism and tables do not fit each other.")
    if rule.mechanism.z_labels != tuple(range(rule.n_symbols)):
        raise FileFormatError("the symbols are not numbered.")
    return rule


def _read_funnel(values: Mapping[str, Any], folder: Path) -> CertifiedFunnel:
    from .funnel import CertifiedFunnel

    funnel = CertifiedFunnel(**require(values, "settings", dict))
    rule = rule_from_dict(require(values, "rule", dict), folder)
    tables = require(values, "tasks", dict)
    solved, other = (
        None if tables[name] is None else numbers_from(tables, name) for name in ("solved", "held_out")
    )
    joint = Joint(
        numbers_from(values, "p_xy"),
        y_labels=decode_labels(require(values, "y_labels", list)),
        y_names=[str(name) for name in require(values, "y_names", list)],
        n_samples=require(values, "n_samples", int),
        x_names=("cell",),
    )
    utility: str | Distance | Task = "information"
    if values["utility"] == "distance":
        utility = Distance(rule.cell_points, kind="points")
    elif values["utility"] == "task" and solved is not None:
        utility = Task(shrunk(solved))
    counts = numbers_from(values, "counts")
    problem = CellProblem(joint, utility, str(values["leakage"]), counts, float(values["confidence"]))
    funnel.made_ = Made(problem, rule.cell_points, solved)
    sums, square, total = (numbers_from(values, name) for name in ("sums", "square", "total"))
    funnel.held_out_ = HeldOut(counts, sums, square, total, other)
    funnel.n_features_in_ = rule.reader.n_features
    funnel.utility_, funnel.task_name_ = str(values["utility"]), values["task_name"]
    funnel.score_before_, funnel.notes_ = values["score_before"], tuple(values["notes"])
    verdict = dict(require(values, "verdict", dict))
    verdict["guesses"] = tuple(Guess(**one) for one in verdict["guesses"])
    funnel.verdict_ = Verdict(**verdict)
    funnel.certificate_, funnel.rule_, funnel.solution_ = rule.certificate, rule, None
    certificates = require(values, "certificates", dict)
    funnel.certificates_ = {name: _measured_from(one) for name, one in certificates.items()}
    funnel.people_ = None
    return funnel


def _measured_to(number: Measured) -> dict[str, Any]:
    return asdict(number)


def _measured_from(values: Mapping[str, Any]) -> Measured:
    interval = values["interval"]
    require_number(values, "value")
    for key in () if interval is None else ("low", "high", "level"):
        require_number(interval, key)
    if values["kind"] not in get_args(Kind):
        raise FileFormatError(f"there is no kind {shortened(values['kind'])} of a number.")
    for key in ("note", "unit"):
        require(values, key, str)
    return Measured(**{**values, "interval": None if interval is None else Interval(**interval)})


def _write(folder: Path, name: str, kind: str, payload: Mapping[str, Any], rule: CertifiedRule) -> None:
    other = FUNNEL if name == RULE else RULE
    if (folder / other).exists():
        raise InvalidInputError(
            f"save: {folder} holds {other}, so that what is for the owner and what is handed on would lie in "
            "one folder; name another."
        )
    with made_folder(folder):
        if rule.cells.space.encoder is not None:
            rule.cells.space.encoder.save(folder / ENCODER, part=ENCODER)
        save_json(folder / name, kind, VERSIONS[kind], payload)
