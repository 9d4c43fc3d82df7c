"""One release of a public table, judged on people that nothing was fitted to; workers import it by name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, IntArray
from ..errors import InfeasibleError, InvalidInputError, PrivacyFunnelWarning
from .functions import LEAST_VARIANCE
from .public_tables import TABLES

FRESH = 0.25  # of the people, for judging
MOST_TRAINED = 12_000  # people that a learned funnel is trained on
_NETWORK: dict[str, Any] = {"hidden": (128, 128), "batch_size": 128, "learning_rate": 1e-3}


@dataclass(frozen=True, eq=False)
class People:
    """A part of a table: its frame, its records as numbers, and two attributes as 0 and 1."""

    frame: Any
    points: FloatArray
    private: IntArray
    task: IntArray


@dataclass(frozen=True, eq=False)
class Released:
    """Two parts after a release, as symbols or rows of numbers, and the share of variance that is kept."""

    fit: NDArray[Any]
    fresh: NDArray[Any]
    variance: float


def judged_release(
    *, seed: int, data: Mapping[str, Any], way: str, effort: str = "quick", **settings: Any
) -> dict[str, Any]:
    """What is kept of a table and what is found about its private attribute, on fresh people.

    Parameters
    ----------
    data : mapping
        `name` of a public table, its `private` attribute, and of how many people `n`, drawn by the seed.
    way : "raw", "linear", "leace", "funnel" or "certified"
        The records themselves, less what is linear in the attribute, after LEACE, codes of the learned
        funnel, or symbols of `CertifiedFunnel`.
    effort : str
        Of the audit.
    **settings
        Of the way; "certified" has `leakage` and `limit`.
    """
    fit, fresh = people(str(data["name"]), str(data["private"]), data.get("n"), seed)
    sizes: dict[str, Any] = {"n_fit": len(fit.task), "n_fresh": len(fresh.task)}
    if way == "certified":
        from ..certified import CertifiedFunnel

        limit, leakage = settings["limit"], settings["leakage"]
        funnel = CertifiedFunnel(limit, leakage=leakage, random_state=seed)
        try:
            funnel.fit(fit.frame, private=data["private"], task=TABLES[data["name"]].task)
        except InfeasibleError as error:
            return {**sizes, "refused": str(error)}
        symbols, new = (funnel.transform(part.frame, rng=seed) for part in (fit, fresh))
        typical = _typical(fit.points, symbols, new)
        released = Released(symbols, new, _explained(fresh.points, typical, fit.points))
        sizes |= {"certified": funnel.certificate_.value, "n_symbols": funnel.rule_.n_symbols}
    elif way == "funnel":
        released = _learned(fit, fresh, seed, settings)
    else:
        released = _linear(fit, fresh, way)
    return {
        **sizes,
        "variance": released.variance,
        "bits": found_bits(released.fresh, fresh.private, seed, effort),
        "gap": found_gap(released, fit.private, fresh.private, seed),
        **task_scores(released, fit.task, fresh.task, seed),
        "commonest": float(max(fresh.task.mean(), 1 - fresh.task.mean())),
    }


def people(name: str, private: str, n: int | None, seed: int) -> tuple[People, People]:
    """Those that a release is made from, and those that it is judged on; both drawn by the seed."""
    import narwhals as nw

    from ..certified.readers import FrameReader
    from ..certified.tables import TableSchema

    table = TABLES[name]
    if private not in table.private:
        raise InvalidInputError(f"data: {name} has {', '.join(table.private)} as private; not {private!r}.")
    whole = nw.from_native(_loaded(name), eager_only=True)
    order = np.random.default_rng([seed, 7]).permutation(len(whole))[:n]
    cut = len(order) - round(FRESH * len(order))
    parts = [whole[rows.tolist()] for rows in (order[:cut], order[cut:])]
    reader = FrameReader(TableSchema.read(parts[0].to_native(), drop=[private, table.task]))
    first = min(whole[private].unique().to_list())
    fit, fresh = (
        People(
            part.to_native(),
            reader.points(part.to_native()),
            np.array([value != first for value in part[private].to_list()], dtype=np.intp),
            np.array([value == table.positive for value in part[table.task].to_list()], dtype=np.intp),
        )
        for part in parts
    )
    return fit, fresh


@lru_cache(maxsize=1)
def _loaded(name: str) -> Any:
    return TABLES[name].load()


def _linear(fit: People, fresh: People, way: str) -> Released:
    x, new = fit.points, fresh.points
    if way == "raw":
        return Released(x, new, 1.0)
    if way == "linear":
        # Least squares of each column on the attribute, as fairlearn's CorrelationRemover: whoever releases
        # must know the attribute of each person.
        s, new_s = (part.private - fit.private.mean() for part in (fit, fresh))
        slope = s @ (x - x.mean(axis=0)) / (s @ s)
        kept, new_kept = x - np.outer(s, slope), new - np.outer(new_s, slope)
    elif way == "leace":
        moving = x.var(axis=0) > LEAST_VARIANCE
        both = leace(x[:, moving], fit.private, np.concatenate([x, new])[:, moving])
        restored = np.tile(x.mean(axis=0), (len(new), 1))
        restored[:, moving] = both[len(x) :]
        return Released(both[: len(x)], both[len(x) :], _explained(new, restored, x))
    else:
        raise InvalidInputError(f"way must be raw, linear, leace, funnel or certified; it is {way!r}.")
    return Released(kept, new_kept, _explained(new, new_kept, x))


def leace(x: FloatArray, y: IntArray, new: FloatArray) -> FloatArray:
    """Records without what is linear in an attribute of two values, moved as little as that needs.

    LEACE (Belrose et al. 2023) for one concept: with c = Cov(x, y) and g = Cov(x)⁺ c a record loses
    c gᵀ(x − E x) / gᵀc, after which no linear function of it is correlated with y. The attribute of the
    people who are released is not needed.
    """
    centred = x - x.mean(axis=0)
    c = centred.T @ (y - y.mean()) / len(y)
    g = np.linalg.pinv(centred.T @ centred / len(y), rcond=1e-10, hermitian=True) @ c
    moved: FloatArray = new - np.outer((new - x.mean(axis=0)) @ g, c) / (g @ c)
    return moved


def _learned(fit: People, fresh: People, seed: int, settings: Mapping[str, Any]) -> Released:
    from ..estimators import estimator

    x, new = fit.points.astype(np.float32), fresh.points.astype(np.float32)
    model = estimator("funnel")(
        16, **_NETWORK, **settings, random_state=seed, release_state=seed, device="cpu", progress=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyFunnelWarning)  # that training ended with the last epoch
        model.fit(x[:MOST_TRAINED], fit.private[:MOST_TRAINED])
    # Judges learn from people whom the encoder was not trained on, where there are enough.
    others = x[MOST_TRAINED:] if len(x) >= 2 * MOST_TRAINED else x
    codes, new_codes = model.transform(others), model.transform(new)
    restored = model.inverse_transform(new_codes).astype(np.float64)
    whole = np.zeros((len(x), codes.shape[1]), dtype=codes.dtype)
    whole[len(x) - len(codes) :] = codes
    whole[: len(x) - len(codes)] = np.nan  # not shown to a judge
    return Released(whole, new_codes, _explained(fresh.points, restored, fit.points))


def _typical(points: FloatArray, symbols: IntArray, new: IntArray) -> FloatArray:
    """The mean record of each fresh person's symbol, among the people that the release was made from."""
    n = int(max(symbols.max(), new.max())) + 1
    sums = np.zeros((n, points.shape[1]))
    np.add.at(sums, symbols, points)
    counts = np.bincount(symbols, minlength=n)[:, None]
    means: FloatArray = np.where(counts > 0, sums / np.maximum(counts, 1), points.mean(axis=0))
    return means[new]


def _explained(points: FloatArray, restored: FloatArray, fit: FloatArray) -> float:
    return 1 - float(np.square(points - restored).sum() / np.square(points - fit.mean(axis=0)).sum())


def found_bits(codes: NDArray[Any], private: IntArray, seed: int, effort: str) -> float:
    """The largest lower bound on the leakage that an audit of fresh releases proves."""
    from ..auditing import audit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyFunnelWarning)
        report = audit(
            Z=codes, private={"y": private}, effort=effort, random_state=seed, n_jobs=1, progress=False
        )
    return max(float(report.summary()["leakage"] or 0.0), 0.0)


def found_gap(released: Released, y: IntArray, new_y: IntArray, seed: int) -> float:
    """How differently a decision that is made to differ treats the two private classes, on fresh people.

    It is chosen on the people that the release was made from, so that it is no larger by chance.
    """
    if released.fit.ndim == 1:
        rates = _shares(released.fit, y, max(released.fit.max(), released.fresh.max()) + 1)
        decided = rates[released.fresh] > y.mean()
    else:
        decided = _trees(released, y, seed, balanced=True) > 0.5
    return max(float(decided[new_y == 1].mean() - decided[new_y == 0].mean()), 0.0)


def task_scores(released: Released, task: IntArray, new_task: IntArray, seed: int) -> dict[str, float]:
    """How well the task is told: learnt from releases with true labels, tested on fresh releases."""
    from sklearn.metrics import roc_auc_score

    if released.fit.ndim == 1:
        rates = _shares(released.fit, task, max(released.fit.max(), released.fresh.max()) + 1)
        score = rates[released.fresh]
    else:
        score = _trees(released, task, seed)
    return {
        "auc": float(roc_auc_score(new_task, score)),
        "accuracy": float(((score > 0.5) == new_task).mean()),
    }


def _shares(symbols: IntArray, y: IntArray, n: int) -> FloatArray:
    """The share of ones for each symbol, drawn to the overall share by one pseudo-record."""
    counts = np.bincount(symbols, minlength=n)
    shares: FloatArray = (np.bincount(symbols, y, n) + y.mean()) / (counts + 1)
    return shares


def _trees(released: Released, y: IntArray, seed: int, *, balanced: bool = False) -> FloatArray:
    from sklearn.ensemble import HistGradientBoostingClassifier

    shown = ~np.isnan(released.fit[:, 0])
    model = HistGradientBoostingClassifier(
        max_leaf_nodes=8, class_weight="balanced" if balanced else None, random_state=seed
    )
    score: FloatArray = model.fit(released.fit[shown], y[shown]).predict_proba(released.fresh)[:, 1]
    return score
