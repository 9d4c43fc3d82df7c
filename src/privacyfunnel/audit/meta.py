"""What a report says about itself: what was audited, how, with what, and what was not."""

from __future__ import annotations

import platform
import time
from typing import Any

from ..joint import Joint
from .given import Given

PACKAGES = ("privacyfunnel", "numpy", "scipy", "scikit-learn", "umap-learn")

TRAINED_ON = "Whether the mechanism was trained on these records: audit it on others."
SAME_ORDER = (
    "That codes and private values are of the same people in the same order: of a file in another order, as "
    "a shuffled one is, an audit finds nothing, whatever it tells. Audit the mechanism, or the file before "
    "it is shuffled."
)
NOT_TRIED = "Adversaries that were not tried."
ALWAYS_OPEN = (
    "Knowledge about people that comes from elsewhere.",
    "Several releases of one record, unless many_draws was set.",
    "Records that are distributed in another way than these.",
)


def describe_audit(
    mechanism: Any,
    settings: dict[str, Any],
    *,
    name: str | None,
    begun: float,
    given: Given | None = None,
    joint: Joint | None = None,
    not_audited: list[str] | None = None,
    n_jobs: int = 1,
) -> dict[str, Any]:
    """The `meta` of a report, in JSON types."""
    known = given is None and joint is not None and joint.n_samples is None
    described = repr(mechanism) if given is None else given.release.description
    attributes = [] if given is None else [one.describe() for one in given.attributes]
    meta: dict[str, Any] = {
        "name": name or (type(mechanism).__name__ if mechanism is not None else "released codes"),
        "mechanism": described,
        "n_records": given.n if given is not None else None if joint is None else joint.n_samples,
        "from_joint": given is None,
        "attributes": attributes,
        "tasks": [] if given is None else [one.describe() for one in given.tasks],
        "fingerprint": {} if given is None else dict(given.fingerprints),
        "settings": settings,
        "versions": {"python": platform.python_version(), **_versions()},
        "audited": _audited(given, joint),
        "not_audited": [*(not_audited or []), *([] if known else [TRAINED_ON, NOT_TRIED]), *ALWAYS_OPEN],
        "run": {"seconds": round(time.perf_counter() - begun, 3), "n_jobs": n_jobs},
    }
    if given is not None and mechanism is None:
        meta["not_audited"].insert(0, SAME_ORDER)
    if given is not None and not given.release.seeded:
        meta["not_audited"].append(
            "The mechanism has a randomness of its own: the seed of this audit does not fix its codes."
        )
    return meta


def _audited(given: Given | None, joint: Joint | None) -> list[str]:
    if given is None:
        n = None if joint is None else joint.n_samples
        counted = f"a joint distribution that was counted in {n} records, perhaps those it was made from"
        return [f"A table mechanism on {'a known joint distribution' if n is None else counted}."]
    names = ", ".join(one.name for one in given.attributes)
    return [f"{given.n} records, private: {names}.", f"Released by: {given.release.description}"]


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
