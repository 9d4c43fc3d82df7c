"""Judging releases of records that no training saw: what adversaries find, and what a new decoder restores.

Every number about adversaries is one of `audit`: whoever has the codes gets it again.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import PrivacyFunnelWarning
from .data import Records

#: Settings of a learned run that are the judge's and not the estimator's.
JUDGING = ("adversaries", "effort", "n_repeats", "decoder_steps")
#: Who judges where nobody else is named: a line and trees; those for numbers judge numbers only.
USUAL = ("logistic regression", "boosted trees", "ridge regression", "boosted regression trees")
#: Clusters are of the first so many records: an embedding of more takes minutes, and papers have no more.
MOST_CLUSTERED = 10_000
# Of a summary: what says how it came about, and would differ from one computation to the next.
_NOT_KEPT = ("name", "seconds", "published")


def judged(
    model: Any,
    records: Records,
    seed: int,
    adversaries: Sequence[str] = USUAL,
    effort: str = "quick",
    n_repeats: int = 1,
    decoder_steps: int = 0,
    numeric: Sequence[str] = (),
) -> dict[str, Any]:
    """What is found in a model's releases of the test part, and what is kept of it.

    Parameters
    ----------
    adversaries, effort, n_repeats, numeric
        As for `audit_codes`.
    decoder_steps : int
        Steps of a new decoder that learns from the release alone, `psnr_fresh`; 0 for none.
    """
    codes, restored = release(model, records)
    encoded = (*model.encode(records.x_test), model.latent)
    nothing = np.broadcast_to(records.x_train.mean(axis=0), records.x_test.shape)
    found = {
        **reconstruction_quality(records.x_test, restored),
        "mse_nothing": reconstruction_quality(records.x_test, nothing)["mse"],
    }
    if decoder_steps:
        from ..learned.fresh import fresh_reconstructions

        # Before the adversaries: an embedding by UMAP leaves OpenMP with more threads than torch was allowed.
        fresh = fresh_reconstructions(model, records.x_train, codes, n_steps=decoder_steps, seed=seed)
        quality = reconstruction_quality(records.x_test, fresh.reshape(records.x_test.shape))
        found |= {f"{name}_fresh": value for name, value in quality.items()}
    return found | audit_codes(codes, records, seed, adversaries, effort, n_repeats, numeric, encoded=encoded)


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
    n_repeats: int = 1,
    numeric: Sequence[str] = (),
    *,
    encoded: tuple[Any, Any, str] | None = None,
) -> dict[str, Any]:
    """What `audit` finds in codes of the test part: its summary, who judged, and on how many records.

    Parameters
    ----------
    adversaries, effort, n_repeats, numeric
        Those of `audit`, adversaries by their names; the repeats are of embeddings.
    encoded : (location, log-scale, latent), optional
        Of the test part, for adversaries that own the encoder.
    """
    from ..auditing import ClusteringAdversary, RedrawingAdversary

    drawing = [] if encoded is None else [RedrawingAdversary(*encoded, random_state=seed)]
    chosen = [next((one for one in drawing if one.name == name), name) for name in adversaries]
    of_clusters = {ClusteringAdversary(embed).name for embed in (False, True)}
    clusters = [one for one in chosen if one in of_clusters]
    others = [one for one in chosen if one not in clusters]
    options: dict[str, Any] = {"numeric": numeric, "effort": effort, "n_repeats": n_repeats, "seed": seed}
    if not clusters or not others or len(codes) <= MOST_CLUSTERED:
        return _audited(codes, records, chosen, **options)
    found = _audited(codes, records, others, **options)
    first = _audited(codes, records, clusters, most=MOST_CLUSTERED, **options)
    return {
        **found,
        **{name: value for name, value in first.items() if name.startswith("clustering")},
        "judged_by": f"{found['judged_by']}, {first['judged_by']}",
        "n_clustered": first["n_judged"],
    }


def _audited(
    codes: NDArray[Any],
    records: Records,
    adversaries: Sequence[Any],
    *,
    numeric: Sequence[str],
    effort: str,
    n_repeats: int,
    seed: int,
    most: int | None = None,
) -> dict[str, Any]:
    from ..auditing import audit

    target = records.target_test
    with warnings.catch_warnings():
        # That the order of the records tells the attribute: nothing is released in this order.
        warnings.simplefilter("ignore", PrivacyFunnelWarning)
        report = audit(
            Z=codes[:most],
            private={records.name: records.y_test[:most]},
            task=None if target is None else {"target": target[:most]},
            numeric=numeric,
            adversaries=adversaries,
            effort=effort,
            n_repeats=n_repeats,
            random_state=seed,
            n_jobs=1,
            progress=False,
        )
    found = {name: value for name, value in report.summary().items() if name not in _NOT_KEPT}
    tried = [one.n_samples for one in report.find("success", on="Z") if one.n_samples is not None]
    return {
        **{name: value for name, value in found.items() if value is not None},
        "judged_by": ", ".join(report.meta["settings"]["adversaries"]),
        "n_judged": max(tried, default=len(codes)),
    }


def reconstruction_quality(x: NDArray[Any], restored: NDArray[Any]) -> dict[str, float]:
    """Mean squared error by value, and the peak signal-to-noise ratio in dB, as `audit` has them."""
    from ..auditing.measures.utility import peak_of, psnr, squared_errors

    records = np.asarray(x, np.float64)
    error = float(squared_errors(records, np.asarray(restored, np.float64)).mean())
    return {"mse": error} | ({"psnr": psnr(error, peak_of(records))} if error > 0 else {})
