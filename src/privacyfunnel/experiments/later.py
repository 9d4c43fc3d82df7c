"""How far the clustering adversary's success moves when training goes on for a few epochs.

Seeds alone do not tell: three models that stop at the same epoch may agree while each of them moves by more
than a tenth from one epoch to the next, at the same PSNR.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..sweep.data import load_records
from ..sweep.fits import fit
from ..sweep.judging import audit_codes, reconstruction_quality, release


def later_epochs(
    *,
    seed: int,
    data: Mapping[str, Any],
    method: str,
    settings: Mapping[str, Any],
    n_more: int,
    adversary: str,
    n_repeats: int,
) -> dict[str, Any]:
    """PSNR and clustering success at the end of training and after each of some more epochs.

    A model that was kept goes on with a new optimiser: only its weights are saved.
    """
    records = load_records(data)
    model = fit(method, settings, seed, records)
    found: dict[str, Any] = {"epoch": [], "psnr": [], "clustering": []}
    codes = []
    for more in range(n_more + 1):
        if more:
            model.partial_fit(records.x_train, private={records.name: records.y_train})
        released, restored = release(model, records)
        codes.append(released)
        found["epoch"].append(settings["epochs"] + more)
        found["psnr"].append(reconstruction_quality(records.x_test, restored)["psnr"])
    # After all training: an embedding by UMAP leaves OpenMP with more threads than torch was allowed.
    for released in codes:
        judged = audit_codes(released, records, seed, [adversary], "default", n_repeats)
        found["clustering"].append(judged["clustering"])
    return found
