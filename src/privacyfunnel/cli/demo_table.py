"""The table of pfunnel demo: Adult protected, what that costs an attacker, and a picture of it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIVATE, TASK, BITS = "sex", "income-per-year", 0.05
FIGURE, BEFORE, AFTER = "adult.png", "adult.csv", "adult-safe.csv"
CELLS = 80  # what the funnel finds by itself on this table, in half the time
_UNKNOWN = "?"  # of the original: missing, here
SHOWN = ("age", "education", "relationship", "occupation", TASK)
_N_ROWS = 3


@dataclass(frozen=True)
class Protected:
    """What came of the table.

    Attributes
    ----------
    n_records, n_columns, n_certifying : int
    verdict : str
    at_most, chance : float
        How often anybody guesses right with a released row, and without.
    told : dict
        Bits that each column tells about the private one before and after, estimated as `pf.inspect` does;
        those that told most first.
    rows_before, rows_after : lists of rows
        The first rows of both files, in some columns.
    seconds : float
    """

    n_records: int
    n_columns: int
    n_certifying: int
    verdict: str
    at_most: float
    chance: float
    told: dict[str, tuple[float, float]]
    rows_before: list[list[str]]
    rows_after: list[list[str]]
    seconds: float

    def values(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "n_records": self.n_records,
            "n_columns": self.n_columns,
            "max_leakage": BITS,
            "n_certifying": self.n_certifying,
            "success_at_most": self.at_most,
            "chance": self.chance,
            "verdict": self.verdict,
            "column_bits": {name: list(bits) for name, bits in self.told.items()},
        }


def protect_adult(seed: int, folder: str) -> Protected:
    """Protect Adult as `pfunnel protect` would, and write both tables and a picture into the folder."""
    import narwhals as nw
    import numpy as np

    from ..certified import CertifiedFunnel
    from ..datasets import load_adult
    from ..files import write_table
    from ..plotting import save_figure

    begun = time.perf_counter()
    people = nw.from_native(load_adult(), eager_only=True).drop("fnlwgt")  # a weight of the survey
    texts = [name for name, kind in people.schema.items() if kind == nw.String]
    people = people.with_columns(nw.when(nw.col(name) != _UNKNOWN).then(nw.col(name)) for name in texts)
    funnel = CertifiedFunnel(BITS, n_cells=CELLS, random_state=seed)
    funnel.fit(people.to_native(), private=PRIVATE, task=TASK)
    safe = nw.from_native(funnel.release(people.to_native(), rng=seed), eager_only=True)
    before, after = _bits(people), _bits(safe.with_columns(people[PRIVATE]))
    told = {name: (bits, after[name]) for name, bits in before.items()}
    # As protect writes it: the place of a row is not to say whose it is.
    safe = safe[np.random.default_rng(seed).permutation(len(safe)).tolist()]
    for name, frame in ((BEFORE, people), (AFTER, safe)):
        table = frame.to_arrow()
        write_table(os.path.join(folder, name), {one: table[one].to_pylist() for one in frame.columns})
    save_figure(_figure(told), os.path.join(folder, FIGURE))
    verdict = funnel.verdict_
    (guess,) = verdict.guesses
    return Protected(
        len(people),
        len(safe.columns),
        verdict.n,
        str(verdict),
        guess.at_most,
        guess.chance,
        told,
        _first(people),
        _first(safe),
        time.perf_counter() - begun,
    )


def _bits(frame: Any) -> dict[str, float]:
    """What each column tells; plain counts would say more of those with many values, before and after."""
    from ..inspection import inspect

    found = inspect(frame.to_native(), PRIVATE)
    return {one.name: one.bits.value for one in found.columns if one.bits is not None and not one.part}


def _first(frame: Any) -> list[list[str]]:
    rows = frame.select(*SHOWN).head(_N_ROWS).rows()
    return [[str(cell) for cell in row] for row in rows]


def _figure(told: dict[str, tuple[float, float]]) -> Figure:
    """Bars for each column: what it tells before and after, and what a whole row tells at most."""
    from ..plotting import COLOURS, FAINT, INK, legend, new_figure, tidy

    figure, (ax,) = new_figure((6.4, 4.2))
    places = range(len(told))
    ax.barh([i - 0.2 for i in places], [b for b, _ in told.values()], 0.38, color=FAINT, label="before")
    ax.barh([i + 0.2 for i in places], [a for _, a in told.values()], 0.38, color=COLOURS[0], label="after")
    ax.axvline(BITS, color=INK, linewidth=1, linestyle="--")
    ax.annotate(
        "certified: a whole released row\ntells at most this, to anybody",
        (BITS, len(told) - 1.4),
        xytext=(6, 0),
        textcoords="offset points",
        fontsize=8,
        color=INK,
        va="center",
    )
    ax.set_yticks(list(places), list(told))
    ax.invert_yaxis()
    tidy(ax, f"bits that the column tells about {PRIVATE}, estimated", "")
    ax.text(
        0.98,
        0.64,
        "columns are drawn one by one within a kind of people:\n"
        "a single one may tell more than before, all of a row\n"
        "together no more than the dashed line",
        transform=ax.transAxes,
        fontsize=8,
        color=INK,
        ha="right",
        va="center",
    )
    ax.set_title("Adult, 32,561 people, before and after", fontsize=10, loc="left", color=INK)
    legend(ax, loc="center right")
    return figure
