"""Runs of the experiments that are neither a solve nor a fit with its audit; workers import them by name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InvalidInputError, MissingDependencyError
from ..estimators import estimator
from ..sweep.data import load_records
from ..sweep.fits import fit
from ..sweep.judging import audit_codes, reconstruction_quality, release
from ..transport import no_leakage_mse

N_IMAGES = 64
# Of columns that LEACE may keep: that of a category which three records in a thousand have.
LEAST_VARIANCE = 0.003


def parameters(*, seed: int, n_components: int, n_features: int, n_classes: int) -> dict[str, Any]:
    """How many numbers the paper's networks have: they are built, and trained on nothing that matters."""
    rng = np.random.default_rng(seed)
    x = rng.random((2 * n_classes, n_features), dtype=np.float32)
    y = np.arange(2 * n_classes) % n_classes
    model = estimator("written")(n_components, epochs=1, random_state=seed, progress=False).fit(x, y)
    return {"n_parameters": sum(p.numel() for p in model.modules_.parameters())}


def pictures(
    *, seed: int, data: Mapping[str, Any], settings: Mapping[str, Any], n_points: int
) -> dict[str, Any]:
    """The first test images, their reconstructions by the published program, and embeddings of X and Z."""
    from ..auditing.adversaries.clustering import umap_embedding

    records = load_records(data)
    codes, restored = release(fit("published", settings, seed, records), records)
    found: dict[str, Any] = dict(reconstruction_quality(records.x_test, restored))
    side = records.x_test.shape[1:]
    for name, images in (("images", records.x_test), ("reconstructions", restored)):
        pixels = np.clip(np.rint(255 * images[:N_IMAGES].reshape(-1, *side)), 0, 255)
        found[name] = pixels.astype(np.uint8).tolist()
    if n_points:
        raw = records.x_test[:n_points].reshape(n_points, -1).astype(np.float64)
        for name, points in (("embedded_x", raw), ("embedded_z", codes[:n_points].astype(np.float64))):
            found[name] = np.round(umap_embedding(points, seed), 3).tolist()
        found["classes"] = records.y_test[:n_points].tolist()
    return found


def no_leakage(*, seed: int, data: Mapping[str, Any]) -> dict[str, Any]:
    """The most that any release without leakage can keep of the training records, from below by transport."""
    from ..auditing.measures.utility import peak_of, psnr

    records = load_records(data)
    x = records.x_train.reshape(len(records.x_train), -1)
    mse = no_leakage_mse(x, records.y_train) / x.shape[1]
    return {"mse_bound": mse, "psnr_bound": psnr(mse, peak_of(x.astype(np.float64)))}


def raw_records(
    *, seed: int, data: Mapping[str, Any], adversaries: list[str], effort: str, erase: bool = False
) -> dict[str, Any]:
    """What adversaries find in the records themselves; with `erase`, after LEACE has removed the attribute.

    LEACE (Belrose et al. 2023) makes every linear adversary useless; others are what is measured here.
    """
    records = load_records(data)
    train = records.x_train.reshape(len(records.x_train), -1).astype(np.float64)
    test = records.x_test.reshape(len(records.x_test), -1).astype(np.float64)
    released = test
    if erase:
        # Where a column hardly varies, an adversary's records may hold one value of it alone; what erasure
        # adds to such a column is then all that moves in it, and scaling it tells the attribute.
        moving = train.var(axis=0) > LEAST_VARIANCE
        train, test = train[:, moving], test[:, moving]
        released = _leace(train, records.y_train, test)
    return {
        **audit_codes(released, records, seed, adversaries, effort),
        **reconstruction_quality(test, released),
    }


def erased_codes(
    *,
    seed: int,
    data: Mapping[str, Any],
    settings: Mapping[str, Any],
    share: float,
    adversaries: list[str],
    effort: str,
) -> dict[str, Any]:
    """What adversaries find in an autoencoder's codes that are released with a probability, else nothing."""
    records = load_records(data)
    codes, _ = release(fit("autoencoder", settings, seed, records), records)
    kept = np.random.default_rng(seed).random(len(codes)) < share
    released = np.column_stack([np.where(kept[:, None], codes, 0), kept])
    return audit_codes(released, records, seed, adversaries, effort)


def _leace(train: Any, y: Any, test: Any) -> Any:
    try:
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of torch, about how the package uses it
            from concept_erasure import LeaceEraser
    except ImportError as error:
        raise MissingDependencyError(
            f"LEACE needs {error.name}: pip install 'privacyfunnel[erasure]'; other methods run without it."
        ) from None
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError("LEACE needs at least two classes of the private attribute.")
    # A column for each class: numbers would stand for one ordered concept.
    eraser = LeaceEraser.fit(torch.from_numpy(train), torch.eye(len(classes), dtype=torch.float64)[numbers])
    return eraser(torch.from_numpy(test)).numpy()
