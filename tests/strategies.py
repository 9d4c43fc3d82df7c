"""Random joints and channels for property tests: `from strategies import joints, channels, random_joint`."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from privacyfunnel.joint import Joint
from privacyfunnel.mechanism import TableMechanism

KINDS = (
    "dense",
    "zeros",
    "zero-row",
    "zero-column",
    "rank1",
    "low-rank",
    "deterministic",
    "duplicated",
    "uniform",
    "tiny",
)


def random_joint(rng: np.random.Generator, n_x: int, n_y: int, kind: str = "dense") -> Joint:
    """A random joint (n_x, n_y) of one of `KINDS`.

    "rank1" is independent, "deterministic" has Y = f(X), "duplicated" repeats a row and a column,
    "zero-row" and "zero-column" have a letter of probability 0, "tiny" goes down to 1e-300.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; it is {kind!r}")
    weights = rng.exponential(size=(n_x, n_y))
    if kind == "zeros":
        weights *= rng.random((n_x, n_y)) < 0.5
    elif kind == "zero-row":
        weights[rng.integers(n_x)] = 0
    elif kind == "zero-column":
        weights[:, rng.integers(n_y)] = 0
    elif kind == "rank1":
        weights = np.outer(rng.dirichlet(np.ones(n_x)), rng.dirichlet(np.ones(n_y)))
    elif kind == "low-rank":
        rank = max(1, min(n_x, n_y) - 1)
        weights = rng.exponential(size=(n_x, rank)) @ rng.exponential(size=(rank, n_y))
    elif kind == "deterministic":
        weights *= np.arange(n_y) == rng.integers(n_y, size=n_x)[:, None]
    elif kind == "duplicated":
        weights[-1] = weights[0] * rng.uniform(0.5, 2)
        weights[:, -1] = weights[:, 0]
    elif kind == "uniform":
        weights[:] = 1
    elif kind == "tiny":
        weights = 10.0 ** -rng.uniform(0, 300, size=(n_x, n_y))
    if weights.sum() == 0:
        weights[rng.integers(n_x), rng.integers(n_y)] = 1
    return Joint(weights / weights.sum())


@st.composite
def joints(draw: st.DrawFn, max_x: int = 6, max_y: int = 6) -> Joint:
    """Joints of every kind and shape from 1 × 1 on, |Y| > |X| included; shrinks to small and dense ones."""
    kind = draw(st.sampled_from(KINDS))
    n_x, n_y = draw(st.integers(1, max_x)), draw(st.integers(1, max_y))
    return random_joint(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), n_x, n_y, kind)


@st.composite
def channels(draw: st.DrawFn, n_x: int, max_z: int = 6) -> np.ndarray:
    """Channels (n_x, n_z), rows sum to 1: dense, with zeros, deterministic, constant, unused symbols."""
    kind = draw(st.sampled_from(("dense", "zeros", "deterministic", "constant", "unused")))
    n_z = draw(st.integers(1, max_z))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.exponential(size=(n_x, n_z))
    picked = np.arange(n_z) == rng.integers(n_z, size=n_x)[:, None]
    if kind == "zeros":
        weights *= picked | (rng.random((n_x, n_z)) < 0.5)
    elif kind == "deterministic":
        weights = picked.astype(np.float64)
    elif kind == "constant":
        weights[:] = weights[0]
    elif kind == "unused" and n_z > 1:
        weights[:, rng.integers(n_z)] = 0
    return weights / weights.sum(axis=1, keepdims=True)


@st.composite
def mechanisms_on_joints(draw: st.DrawFn, count: int = 1) -> tuple[Joint, list[TableMechanism]]:
    joint = draw(joints(max_x=5, max_y=4))
    return joint, [TableMechanism(draw(channels(joint.n_x, 5))) for _ in range(count)]
