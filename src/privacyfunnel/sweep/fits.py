"""Runs of learned funnels: fit on one part of the records, audit the releases of the other."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import PrivacyFunnelWarning
from ..estimators import estimator
from .data import Records

#: Settings of a learned run that are not the estimator's: how its releases are audited.
AUDIT = ("adversaries", "effort")
#: Who judges where nobody else is named: a line and trees; those for numbers judge numbers only.
USUAL = ("logistic regression", "boosted trees", "ridge regression", "boosted regression trees")
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
    adversaries: Sequence[str] = USUAL,
    effort: str = "quick",
    numeric: Sequence[str] = (),
) -> dict[str, Any]:
    """What `audit` finds in codes of the test part: its summary, who judged, and on how many records.

    Adversaries (by name), effort and numeric are those of `audit`.
    """
    from ..auditing import audit

    with warnings.catch_warnings():
        # That the order of the records tells the attribute: nothing is released in this order.
        warnings.simplefilter("ignore", PrivacyFunnelWarning)
        report = audit(
            Z=codes,
            private={records.name: records.y_test},
            task=None if records.target_test is None else {"target": records.target_test},
            numeric=numeric,
            adversaries=adversaries,
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
