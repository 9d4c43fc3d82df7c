"""Runs of learned funnels: fit on one part of the records, audit the releases of the other."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attributes import Attribute, read_attributes
from ..errors import InvalidInputError, PrivacyFunnelWarning
from ..estimators import estimator
from .data import Records

#: Settings of a learned run that are not the estimator's: how its releases are audited.
AUDIT = ("adversaries", "effort")
# Of a summary: what says how it came about, and would differ from one computation to the next.
_NOT_KEPT = ("name", "seconds", "published")


def fit_and_audit(method: str, settings: Mapping[str, Any], seed: int, records: Records) -> dict[str, Any]:
    """Fit a learned funnel on the training part; audit its releases of the other part."""
    model = fit(method, {k: v for k, v in settings.items() if k not in AUDIT}, seed, records)
    codes, restored = release(model, records)
    return {
        "status": model.status_.name,
        "n_parameters": sum(p.numel() for p in model.modules_.parameters()),
        **audit_codes(
            codes,
            records,
            seed,
            numeric=settings.get("numeric", ()),
            **{name: settings[name] for name in AUDIT if name in settings},
        ),
        **reconstruction_quality(records.x_test, restored),
    }


def fit(method: str, settings: Mapping[str, Any], seed: int, records: Records) -> Any:
    """The estimator of that name, fitted on the training part."""
    given = {name: tuple(value) if name == "hidden" else value for name, value in settings.items()}
    model = estimator(method)(**given, random_state=seed, release_state=seed, device="cpu", progress=False)
    model.fit(records.x_train, {records.name: records.y_train})
    refuse_interrupted(model.status_)
    return model


def release(model: Any, records: Records) -> tuple[NDArray[Any], NDArray[Any]]:
    """Codes of the test part, and what the decoder makes of them."""
    codes = model.transform(records.x_test)
    more = {"private": records.y_test} if model.decoder_needs_private else {}
    return codes, model.inverse_transform(codes, **more)


def audit_codes(
    codes: NDArray[Any],
    records: Records,
    seed: int,
    adversaries: Sequence[str] | None = None,
    effort: str = "quick",
    numeric: Sequence[str] = (),
) -> dict[str, Any]:
    """What `audit` finds in codes of the test part: its summary, who judged, and on how many records.

    Effort and numeric are those of `audit`, adversaries are names of `chosen_adversaries`.
    """
    from ..auditing import audit

    private = {records.name: records.y_test}
    attributes = read_attributes(private, len(codes), numeric=numeric)
    with warnings.catch_warnings():
        # That the order of the records tells the attribute: nothing is released in this order.
        warnings.simplefilter("ignore", PrivacyFunnelWarning)
        report = audit(
            Z=codes,
            private=private,
            task=None if records.target_test is None else {"target": records.target_test},
            numeric=numeric,
            adversaries=chosen_adversaries(adversaries, attributes, seed),
            effort=effort,
            n_repeats=1,  # of embeddings: a sweep has seeds for that
            random_state=seed,
            n_jobs=1,
            progress=False,
        )
    found = {name: value for name, value in report.summary().items() if name not in _NOT_KEPT}
    judged = [one.n_samples for one in report.find("success", on="Z") if one.n_samples is not None]
    return {
        **{name: value for name, value in found.items() if value is not None},
        "judged_by": ", ".join(report.meta["settings"]["adversaries"]),
        "n_judged": max(judged, default=len(codes)),
    }


def chosen_adversaries(names: Sequence[str] | None, attributes: Sequence[Attribute], seed: int) -> list[Any]:
    """Adversaries by their names, without any a line and trees; those for numbers are for numbers only."""
    from ..auditing import (
        ClusteringAdversary,
        default_adversaries,
        default_numeric_adversaries,
        randomised_trees,
    )

    clustering = ClusteringAdversary(embed=False), ClusteringAdversary(embed=True)
    numeric = default_numeric_adversaries(seed)
    if names is None:
        usual = default_adversaries(seed, max(one.n_classes for one in attributes))
        return [usual[0], usual[2], numeric[0], numeric[2]]
    offered = (*default_adversaries(seed), randomised_trees(seed), *clustering, *numeric)
    known = {one.name: one for one in offered}
    if missing := [name for name in names if name not in known]:
        raise InvalidInputError(f"there is no adversary {missing[0]!r}; choose from {', '.join(known)}.")
    return [known[name] for name in names]


def reconstruction_quality(x: NDArray[Any], restored: NDArray[Any]) -> dict[str, float]:
    """Mean squared error by value, and the peak signal-to-noise ratio in dB, as `audit` has them."""
    from ..auditing.measures.utility import peak_of, psnr, squared_errors

    records = np.asarray(x, np.float64)
    error = float(squared_errors(records, np.asarray(restored, np.float64)).mean())
    return {"mse": error} | ({"psnr": psnr(error, peak_of(records))} if error > 0 else {})


def refuse_interrupted(status: Any) -> None:
    """Ctrl-C makes solvers return the best so far; that is no result of the run."""
    if status.name == "INTERRUPTED":
        raise KeyboardInterrupt
