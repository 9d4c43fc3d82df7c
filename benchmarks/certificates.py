"""Certificates on hostile populations: how often they fail, against the level, and how wide they are.

Every population is known, so that each bound can be compared with the truth. The reference Q of P(Y) is
counted in as many other records, as a user would do it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import rel_entr, xlogy

from privacyfunnel import Joint, TableMechanism, held_out_leakage
from privacyfunnel.arrays import FloatArray
from privacyfunnel.certificate import bits_at, leakage_bound, parity_bound, success_bound

from .report import show

REPEATS = 12_500  # simulations of a design; eight designs make 100,000 certificates of each measure
REFERENCES = 5  # guesses of P(Y) for each design
RACE = np.array([0.854, 0.096, 0.0312, 0.0096, 0.0092])


@dataclass(frozen=True, eq=False)
class Design:
    """A population P(X,Y), a channel from X to symbols (none: X is released itself), and a sample size."""

    name: str
    p_xy: FloatArray
    n: int
    channel: FloatArray | None = None

    @property
    def p_zy(self) -> FloatArray:
        return self.p_xy if self.channel is None else self.channel.T @ self.p_xy

    def counts(self, rng: np.random.Generator, repeats: int) -> FloatArray:
        """Counts of n records, so many times; soft ones where there is a channel."""
        drawn = rng.multinomial(self.n, self.p_xy.ravel(), size=repeats).astype(float)
        tables = drawn.reshape(repeats, *self.p_xy.shape)
        return tables if self.channel is None else self.channel.T @ tables

    def reference(self, rng: np.random.Generator) -> FloatArray:
        other = rng.multinomial(self.n, self.p_xy.sum(axis=0)) + 1.0
        return np.asarray(other / other.sum())

    @property
    def truth(self) -> tuple[float, float, float]:
        """I(Z;Y) in bits, the success of the best guess, the largest total variation of two classes."""
        shares = self.p_zy / self.p_zy.sum(axis=0)
        pairs = combinations(range(shares.shape[1]), 2)
        gap = max(float(np.abs(shares[:, i] - shares[:, j]).sum()) / 2 for i, j in pairs)
        return information(self.p_zy), float(self.p_zy.max(axis=1).sum()), gap


def information(p_zy: FloatArray) -> float:
    outer = p_zy.sum(axis=1, keepdims=True) * p_zy.sum(axis=0, keepdims=True)
    return float(rel_entr(p_zy, outer).sum()) / math.log(2)


def designs() -> list[Design]:
    rng = np.random.default_rng(3)
    leaning = rng.beta(30, 30, size=256)
    cells = rng.dirichlet(np.ones(256))
    letters = rng.dirichlet(np.ones(40))
    told = np.where(np.arange(40) < 3, 1.0, rng.beta(20, 20, size=40))
    race = rng.dirichlet(40 * RACE / RACE.sum(), size=12)
    return [
        Design("one rare symbol tells all", np.array([[0.495, 0.495], [0.0, 0.01]]), 100),
        Design("the symbol is the class", np.diag([0.3, 0.7]), 200),
        Design("nothing is told", np.outer(rng.dirichlet(np.ones(64)), [0.33, 0.67]), 1_000),
        Design("256 symbols", cells[:, None] * np.column_stack([leaning, 1 - leaning]), 1_000),
        Design("a rare class is told", np.array([[0.90, 0.0], [0.09, 0.0], [0.0, 0.01]]), 300),
        Design("five classes, two rare", rng.dirichlet(np.ones(12))[:, None] * race, 800),
        Design("ten classes", rng.dirichlet(np.ones(6))[:, None] * rng.dirichlet(np.full(10, 2.0), 6), 500),
        Design(
            "soft counts of a noisy table",
            letters[:, None] * np.column_stack([told, 1 - told]),
            400,
            rng.dirichlet(np.full(6, 0.3), size=40),
        ),
    ]


def failures(design: Design, repeats: int, confidence: float, seed: int) -> dict[str, object]:
    """How often each bound was below the truth, and how far above it was in the middle.

    Whether a bound of bits is below the truth is decided by the plug-in at which it would equal it: the bound
    rises with the plug-in, for each of the references. Of every fiftieth draw all three bounds are computed
    outright, and must agree.
    """
    rng = np.random.default_rng(seed)
    truth = np.array(design.truth)
    need = -math.log1p(-confidence)
    missed, middle, compared = np.zeros(3, dtype=int), [], 0
    begun = time.process_time()
    for _ in range(REFERENCES):
        q = design.reference(rng)
        counts = design.counts(rng, repeats // REFERENCES)
        plug_in, success, parity = _plug_ins(counts, q, need)
        told = plug_in < _threshold(truth[0], q, need / design.n)
        guessed = (success < truth[1]) & (design.n * _coins(success, truth[1]) > need)
        apart = parity < truth[2] - 1e-12
        missed += [int(one.sum()) for one in (told, guessed, apart)]
        for i in range(0, len(counts), 50):
            bounds = _bounds(counts[i], q, confidence)
            flags = (bounds < truth - 1e-12).tolist()
            assert flags == [told[i], guessed[i], apart[i]], (design.name, bounds, truth)
            middle.append(bounds)
            compared += 1
    row: dict[str, object] = {
        "population": design.name,
        "n": design.n,
        "repeats": repeats,
        "outright": compared,
    }
    for i, name in enumerate(("bits", "success", "parity")):
        bound = float(np.median(middle, axis=0)[i])
        row |= {f"{name} missed": int(missed[i]), f"true {name}": truth[i], f"bound {name}": bound}
    return row | {"CPU s": time.process_time() - begun}


def _bounds(counts: FloatArray, q: FloatArray, confidence: float) -> FloatArray:
    return np.array(
        [
            leakage_bound(counts, q, confidence),
            success_bound(counts, confidence),
            parity_bound(counts, confidence),
        ]
    )


def _plug_ins(counts: FloatArray, q: FloatArray, need: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of each table of counts the plug-in of bits in nats and that of success, and the bound of parity."""
    n = counts.sum(axis=(1, 2))
    sizes = np.maximum(counts.sum(axis=2, keepdims=True), 1e-300)
    bits = xlogy(counts, counts / sizes / q).sum(axis=(1, 2)) / n
    success = counts.max(axis=2).sum(axis=1) / n
    classes = counts.sum(axis=1)
    shares = counts / np.maximum(classes, 1e-300)[:, None, :]
    pairs = list(combinations(range(counts.shape[2]), 2))
    parity = np.zeros(len(counts))
    for i, j in pairs:
        gap = np.abs(shares[:, :, i] - shares[:, :, j]).sum(axis=1) / 2
        with np.errstate(divide="ignore"):
            wide = np.sqrt((1 / classes[:, i] + 1 / classes[:, j]) * (need + math.log(len(pairs))) / 2)
        parity = np.maximum(parity, np.minimum(gap + wide, 1.0))
    return np.maximum(bits, 0.0), success, parity


def _threshold(truth: float, q: FloatArray, need: float) -> float:
    """The plug-in in nats below which the bound is below the truth."""
    low, high = 0.0, math.log(len(q))
    if bits_at(low, q, need) >= truth:
        return low
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if bits_at(middle, q, need) < truth else (low, middle)
    return high


def _coins(found: FloatArray, q: float) -> FloatArray:
    result: FloatArray = rel_entr(found, q) + rel_entr(1 - found, 1 - q)
    return result


def sequences(repeats: int, confidence: float) -> dict[str, object]:
    """Mechanisms made from other records, certified in order until one fails: how often the limit is broken.

    Cells are merged by what part A says of them, into 1, 2, 4, … groups; the limit is often between two
    candidates, which is where a certificate is tempted to fail.
    """
    rng = np.random.default_rng(29)
    limit, n, broken, kept = 0.01, 5_000, 0, 0
    for _ in range(repeats):
        t = rng.beta(rng.choice([4.0, 40.0]), 4.0, size=32)
        p_xy = rng.dirichlet(np.ones(32))[:, None] * np.column_stack([t, 1 - t])
        first, second = (rng.multinomial(n, p_xy.ravel()).reshape(32, 2).astype(float) for _ in range(2))
        order = np.argsort((first[:, 0] + 1) / (first.sum(axis=1) + 2))
        reference = (first.sum(axis=0) + 1) / (n + 2)
        chosen = np.zeros(32, dtype=int)
        for groups in (2, 4, 8, 16, 32):
            label = np.empty(32, dtype=int)
            # Neighbours in what they tell are mixed with far ones, so that small groups tell less.
            label[order] = np.arange(32) % groups
            merged = np.zeros((groups, 2))
            np.add.at(merged, label, second)
            if leakage_bound(merged, reference, confidence) > limit:
                break
            chosen = label
        released = np.zeros((32, 2))
        np.add.at(released, chosen, p_xy)
        kept += bool(chosen.any())
        broken += information(released) > limit
    return {"limit": limit, "n": n, "repeats": repeats, "certified": kept, "broken": broken}


def interval_failures(design: Design, repeats: int) -> dict[str, object]:
    """How often the held-out interval of the library lies below the truth, for comparison."""
    rng, missed = np.random.default_rng(5), 0
    names = [f"x{i}" for i in range(design.p_xy.shape[0])]
    table = np.eye(len(names)) if design.channel is None else design.channel
    mechanism = TableMechanism(table, x_labels=names)
    for i in range(repeats):
        drawn = rng.multinomial(design.n, design.p_xy.ravel()).reshape(design.p_xy.shape)
        joint = Joint.from_counts(drawn, x_labels=names)
        interval = held_out_leakage(mechanism, joint, rng=i, n_draws=400).interval
        missed += design.truth[0] > interval.high
    return {"population": design.name, "n": design.n, "repeats": repeats, "missed": missed / repeats}


def widths() -> list[dict[str, object]]:
    """Bounds where the plug-in is known: nothing told, race against five classes, digits."""
    rng = np.random.default_rng(0)
    rows = []
    for n_z, n, most in ((64, 10_000, 0.0111), (256, 100_000, 0.0029), (1_024, 100_000, 0.012)):
        counts = rng.multinomial(n, np.full(2 * n_z, 0.5 / n_z)).reshape(n_z, 2).astype(float)
        told = information(counts / n)
        rows.append(_width(f"nothing told, {n_z} symbols", n, told, counts, np.array([0.5, 0.5]), most))
    for name, prior, n, told, most in (
        ("race, 5 classes", RACE / RACE.sum(), 8_000, 0.032, 0.050),
        ("race, 5 classes", RACE / RACE.sum(), 100_000, 0.032, 0.036),
        ("digits, 10 classes", np.full(10, 0.1), 25_000, 0.300, 0.319),
    ):
        rows.append(_width(name, n, told, n * _telling(prior, told), prior, most))
    return rows


def _telling(prior: FloatArray, bits: float) -> FloatArray:
    """A joint of this prior, of 20 symbols, that tells so many bits."""
    posteriors = np.random.default_rng(1).dirichlet(prior * len(prior), size=20)
    posteriors *= prior / posteriors.mean(axis=0)
    whole = posteriors / posteriors.sum()
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        mixed = middle * whole + (1 - middle) * whole.sum(axis=1, keepdims=True) * whole.sum(axis=0)
        low, high = (middle, high) if information(mixed) < bits else (low, middle)
    return mixed


def _width(
    name: str, n: int, told: float, counts: FloatArray, prior: FloatArray, most: float
) -> dict[str, object]:
    begun = time.process_time()
    bound = leakage_bound(counts, counts.sum(axis=0) / counts.sum())
    seconds = time.process_time() - begun
    return {"case": name, "n": n, "plug-in": told, "bound": bound, "aimed at": most, "CPU s": seconds}


def main() -> None:
    show("Certificate widths: bits where the counts are known", widths())
    found = [failures(one, REPEATS, 0.95, i) for i, one in enumerate(designs())]
    show("Certificates: misses at 95 %, of which 5 % are allowed", found)
    found = [failures(one, REPEATS, 0.5, 50 + i) for i, one in enumerate(designs())]
    show("Certificates at a loose level: misses at 50 %, of which half are allowed", found)
    show("Certified limits: broken at 80 %, of which a fifth is allowed", [sequences(1_000, 0.8)])
    show(
        "Held-out intervals: misses above, where 2.5 % are meant",
        [interval_failures(one, 300) for one in (designs()[0], designs()[2])],
    )


if __name__ == "__main__":
    main()
