"""The slider: stops along a frontier whose bounds hold together, each with what it means in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import FloatArray
from ..joint import Joint
from ..mechanism import TableMechanism
from ..tradeoff import Frontier

if TYPE_CHECKING:  # the server shows a first screen before this is imported
    from ..certified.choice import CertifiedFrontier, CertifiedPoint
    from ..certified.problem import CellProblem

#: Steps of the slider.
STEPS = 40
#: Corners of the frontier of columns that are certified together, at most: each costs confidence.
MOST_CORNERS = 9
#: Records that say what symbols stand for.
MOST_DESCRIBED = 5_000
#: Symbols of a stop that are shown.
SHOWN_SYMBOLS = 12


@dataclass(frozen=True)
class Stop:
    """One place of the slider.

    Attributes
    ----------
    kept : float
        Of all that can be kept, on the records that the rule was made from.
    told : float
        The leakage on these records, exact for columns; of kinds an estimate, which moves rare ones towards
        the average. `at_most` is what nobody exceeds on new people.
    guess : dict of float
        How often anybody can be right about each attribute, at most.
    right : float
        How often an attacker who knows the rule is right, on records that had no part in it.
    n_symbols : int
    symbols : tuple of (share, words)
        The commonest.
    worst : sentence
    columns : dict of float
        The share of the variance of each column that is kept; empty where letters are released.
    """

    kept: float
    told: float
    at_most: float
    guess: dict[str, float]
    right: float
    n_symbols: int
    symbols: tuple[tuple[float, str], ...]
    worst: str
    columns: dict[str, float]


@dataclass(frozen=True, eq=False)
class Choice:
    """A frontier that was computed once, with all that the slider shows.

    Attributes
    ----------
    way : "columns" or "table"
    private : str
        What is protected, in words.
    measure : "information", "success" or "parity"
    frontier : CertifiedFrontier
    stops : tuple of Stop
    without, raw : float
        How often an attacker is right without a release, and with what is released from itself.
    n_held_out : int
    confidence : float
    proved : tuple of (kept, least that must be told)
        Nothing is possible below, on the records that solve; empty where nothing was proved.
    notes : sentences
    caveat : what the guarantee does not allow for, where more than one frontier was computed
    funnel : CertifiedFunnel, for a table
    joint : Joint, for columns
        Of all records.
    """

    way: str
    private: str
    measure: str
    frontier: CertifiedFrontier
    stops: tuple[Stop, ...]
    without: float
    raw: float
    n_held_out: int
    confidence: float
    proved: tuple[tuple[float, float], ...] = ()
    notes: tuple[str, ...] = ()
    caveat: str = ""
    funnel: Any = None
    joint: Joint | None = None

    def point(self, at: int) -> CertifiedPoint:
        """The release of a stop."""
        return points_along(self.frontier)[at]


def points_along(front: CertifiedFrontier) -> list[CertifiedPoint]:
    """The least telling point, or mixture of two, for each of equal steps of what is kept."""
    from ..certified.choice import mixture

    hull = _hull(front.points)
    most = hull[-1].utility
    found = []
    for step in range(STEPS + 1):
        kept = most * step / STEPS
        at = next((i for i, one in enumerate(hull) if one.utility >= kept - 1e-12), len(hull) - 1)
        right = hull[at]
        if at == 0 or abs(right.utility - kept) <= 1e-12:
            found.append(right)
            continue
        left = hull[at - 1]
        found.append(mixture(left, right, (kept - left.utility) / (right.utility - left.utility)))
    return found


def _hull(points: Sequence[CertifiedPoint]) -> list[CertifiedPoint]:
    """The corners of what these points and their mixtures reach: least bound for what is kept."""
    hull: list[CertifiedPoint] = []
    for point in sorted(points, key=lambda one: (one.utility, one.bound.value)):
        if hull and point.utility - hull[-1].utility <= 1e-12:
            continue
        while len(hull) >= 2 and _above(hull[-2], hull[-1], point):
            hull.pop()
        if len(hull) == 1 and hull[0].bound.value >= point.bound.value:
            hull.pop()  # more is kept and no more is told
        hull.append(point)
    return hull


def _above(left: CertifiedPoint, middle: CertifiedPoint, right: CertifiedPoint) -> bool:
    share = (middle.utility - left.utility) / (right.utility - left.utility)
    chord = (1 - share) * left.bound.value + share * right.bound.value
    return middle.bound.value >= chord


def certified_corners(front: Frontier, problem: CellProblem) -> CertifiedFrontier:
    """The corners of a frontier, certified together by records that had no part in it."""
    from ..certified.choice import CertifiedFrontier, CertifiedPoint

    corners = [one for one in front.envelope() if one.mechanism is not None]
    if len(corners) > MOST_CORNERS:
        places = np.linspace(0, len(corners) - 1, MOST_CORNERS).round().astype(int)
        corners = [corners[i] for i in dict.fromkeys(places.tolist())]
    whole = max(one.utility for one in corners) or 1.0
    certifier = problem.certifier(len(corners))
    points = []
    for one in corners:
        assert one.mechanism is not None
        table = one.mechanism.p_z_given_x
        bound, guess = certifier.bound(table), problem.guess_bounds(table, len(corners))
        if one.mechanism.n_z == 1 and problem.leakage != "success":  # one symbol tells nothing
            bound = replace(bound, value=0.0, interval=None)
        points.append(CertifiedPoint(one.mechanism, one.utility / whole, bound, guess))
    return CertifiedFrontier(tuple(points))


def make_stops(problem: CellProblem, front: CertifiedFrontier, words: Any, columns: Any) -> tuple[Stop, ...]:
    """All stops; `words(mechanism)` says what symbols stand for, `columns(table)` what is kept of each."""
    stops = []
    for point in points_along(front):
        table = point.mechanism.p_z_given_x
        stops.append(
            Stop(
                point.utility,
                problem.measures.leakage_of(problem.joint.p_xy, table),
                point.bound.value,
                dict(point.guess),
                right_on_others(problem, table),
                point.mechanism.n_z,
                tuple(words(point.mechanism)[:SHOWN_SYMBOLS]),
                worst_off(problem.joint, point.mechanism),
                columns(table),
            )
        )
    return tuple(stops)


def right_on_others(problem: CellProblem, table: FloatArray) -> float:
    """How often the best guess by the records that solve is right on those that certify."""
    seen = problem.joint.p_xy.T @ table
    # A symbol that none of them had tells nothing: the guess is what is most frequent of all.
    guess = np.where(seen.any(axis=0), seen, problem.joint.p_y[:, None]).argmax(axis=0)
    others = problem.held_out.T @ table
    return float(others[guess, np.arange(table.shape[1])].sum() / others.sum())


def worst_off(joint: Joint, mechanism: TableMechanism) -> str:
    """Whom the release tells most about, without saying what."""
    p_yz = joint.p_xy.T @ mechanism.p_z_given_x
    p_z = p_yz.sum(axis=0)
    used = p_z > 1e-12
    p_y = joint.p_y[:, None]
    lift = np.where(used & (p_y > 0), p_yz / np.where(used, p_z, 1.0) / np.where(p_y > 0, p_y, 1.0), 0.0)
    y, z = np.unravel_index(int(lift.argmax()), lift.shape)
    times = float(lift[y, z])
    if times < 1.005:
        return "Nobody is worse off than others: no symbol makes any private value more likely."
    return (
        f"Worst off are {_percent(p_z[z])} of the people, who get the most telling symbol: one private value "
        f"is {times:.2f} times as likely for them as for all, {_percent(p_yz[y, z] / p_z[z])} instead of "
        f"{_percent(joint.p_y[y])}."
    )


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %" if value >= 0.0005 else "less than 0.1 %"


def kinds_in_words(funnel: Any) -> Any:
    """What symbols stand for where records go through kinds: their usual values, from some of the records."""
    from ..certified.readers import taken
    from ..certified.tables import ColumnTables

    people, p_cells = funnel.people_, funnel.rule_.p_cells
    rows = np.sort(np.random.default_rng(0).permutation(len(people.cells))[:MOST_DESCRIBED])
    frame, cells = taken(people.frame, rows), people.cells[rows]

    def words(mechanism: TableMechanism) -> list[tuple[float, str]]:
        table = mechanism.p_z_given_x
        shares = p_cells @ table
        common = np.argsort(-shares, kind="stable")[:SHOWN_SYMBOLS]
        # All others stand for one, so that what is common is told apart from all records.
        others = np.delete(table, common, axis=1).sum(axis=1, keepdims=True)
        weights = np.hstack([table[:, common], others])[cells]
        said = ColumnTables.count(people.schema, frame, weights).labels()
        return list(zip(shares[common].tolist(), said, strict=False))

    return words
