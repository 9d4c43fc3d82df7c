"""Finite actions: the best release of actions when usefulness is a cost, for any number of private classes.

Z is an action a of a finite set, and d(x, a) what it costs that the record was x: a squared distance, or any
other number. With p(x) and P(y|x) known, for one private attribute or several, each with a price,

    minimise  F(P) = E d(X, A) + Σ_k μ_k I(A;Y_k)   over channels P(a|x)

is convex, unlike the funnel with I(Z;X): the expected cost is linear in P, and I(A;Y) is convex in it (after
Calmon and Fawaz 2012). For any positive posteriors r_ka of Y_k

    F(P) ≥ Σ_x p(x) min_a [ d(x, a) + Σ_k μ_k Σ_y P(y|x) log r_ka(y)/P(y) ]   for every channel P,

because D(·‖P_Y) lies above its tangents: with r_ka of the present channel this is the proof, and the gap
closes. Two ways there:

- I(A;Y) is 1-smooth relative to Σ p(x) D(P(·|x) ‖ ·), so with μ = Σ_k μ_k the step

      P(a|x) ← P(a|x) · exp( −g(x, a)/μ ) / normaliser

  along the gradient g, the bracket above, never raises F and converges to the global minimum: quickly at
  first, slowly at the end.
- Newton's method on the central path, where P(a|x) times its multiplier is the same number τ p(x)
  everywhere. In an action the Hessian of I(A;Y) has rank |Y|, so that a step takes a system of |X| equations
  only; some twenty steps end at rounding.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray

SMALLEST = 1e-290  # of a probability whose logarithm is taken
LONGEST = 64.0  # of a step, in units of the one that cannot raise F
ROUNDING = 1e-13  # relative, of every sum that a bound is made of
FLOOR = 1e-9  # of a start: what is 0 there would take long to come back
FIRST_STEPS = 400  # of the first way
CENTRES = 60  # of the second


@dataclass(frozen=True, eq=False)
class Priced:
    """A channel for one price of leakage: F in the cost's unit, and what no channel stays below."""

    p: FloatArray  # (n_x, n_a)
    cost: float
    leakage: FloatArray  # (k,) nats
    objective: float
    lower_bound: float
    posteriors: tuple[FloatArray, ...]  # (n_y, n_a) each, r of the bound
    n_steps: int


def least_priced(
    p_x: FloatArray,
    channels: Sequence[FloatArray],
    cost: FloatArray,
    prices: Sequence[float] | FloatArray,
    *,
    tol: float,
    max_steps: int = 20_000,
    start: FloatArray | None = None,
    deadline: float = np.inf,
) -> Priced:
    """The channel that minimises E d + Σ prices · I(A;Y), proved to `tol` unless steps or time end.

    Parameters
    ----------
    p_x : (n_x,) array, positive
    channels : of (n_x, n_y) arrays
        P(y|x) of each private attribute; every class occurs.
    cost : (n_x, n_a) array
    prices : floats, one a channel
        Of a nat of leakage, in the unit of the cost; none negative, and one more than 0.
    max_steps : int
        Of the first way; the second takes over after `FIRST_STEPS` of them.
    start : (n_x, n_a) array, optional
        A channel to begin from; zeros in it are kept from being final.
    deadline : float
        Of time.perf_counter.
    """
    search = _Search(p_x, channels, cost, np.asarray(prices, dtype=np.float64), deadline)
    n_a = cost.shape[1]
    first = np.full(cost.shape, 1.0 / n_a) if start is None else np.maximum(start, FLOOR / n_a)
    search.descend(np.log(first), tol, min(max_steps, FIRST_STEPS))
    if search.gap > tol and max_steps > FIRST_STEPS:
        search.centre(tol)
    if search.gap > tol and max_steps > FIRST_STEPS:
        search.descend(np.log(np.maximum(search.p, 1e-30)), tol, max_steps - search.n_steps)
    return search.found()


class _Search:
    """The best channel and the best bound so far, of one problem."""

    def __init__(
        self,
        p_x: FloatArray,
        channels: Sequence[FloatArray],
        cost: FloatArray,
        prices: FloatArray,
        deadline: float,
    ) -> None:
        self.p_x, self.channels, self.cost, self.prices = p_x, channels, cost, prices
        self.deadline, self.total = deadline, float(prices.sum())
        self.p_y = [p_x @ channel for channel in channels]
        self.backward = [
            (p_x[:, None] * channel / p_y).T for channel, p_y in zip(channels, self.p_y, strict=True)
        ]
        self.scale, self.steepest = float(np.abs(cost).max()) + 1.0, 0.0
        self.p = np.zeros_like(cost)
        self.objective, self.bound, self.n_steps = np.inf, -np.inf, 0
        self.posteriors: tuple[FloatArray, ...] = ()
        self.tangents: FloatArray | None = None  # the best gradient of each action so far
        self.tangent_posteriors: list[FloatArray] = []

    @property
    def gap(self) -> float:
        return self.objective - self.bound

    def look(self, p: FloatArray, *, closely: bool = False) -> tuple[FloatArray, float]:
        """The gradient of F and F of a channel; keeps both channel and bound if they are the best.

        `closely`: with the best posteriors so far of each action. Those of an action that is hardly used move
        about to the end, and any of them will do.
        """
        by_class = [np.maximum(backward @ p, SMALLEST) for backward in self.backward]  # P(a|y)
        gradient, steepest = self.cost.copy(), 0.0
        posteriors = []
        for channel, p_y, table, price in zip(
            self.channels, self.p_y, by_class, self.prices.tolist(), strict=True
        ):
            p_a = p_y @ table
            posteriors.append(p_y[:, None] * table / p_a)
            excess = np.log(table) - np.log(p_a)
            if price > 0.0:
                gradient += price * (channel @ excess)
                steepest += price * float(np.abs(excess).max())
        objective = float(self.p_x @ (p * gradient).sum(axis=1))
        tangents = gradient
        self.steepest = max(self.steepest, steepest)
        if closely:
            tangents, posteriors = self._best_tangents(p, gradient, posteriors)
        bound = float(self.p_x @ tangents.min(axis=1)) - ROUNDING * (self.scale + self.steepest)
        if objective < self.objective:
            self.p, self.objective = p, objective
        if bound > self.bound:
            self.bound, self.posteriors = bound, tuple(posteriors)
        return gradient, objective

    def _best_tangents(
        self, p: FloatArray, gradient: FloatArray, posteriors: list[FloatArray]
    ) -> tuple[FloatArray, list[FloatArray]]:
        value = (p * gradient).sum(axis=1, keepdims=True)  # of each letter; no action should be below it
        if self.tangents is None:
            self.tangents, self.tangent_posteriors = gradient, posteriors
            return gradient, posteriors
        better = (gradient - value).min(axis=0) > (self.tangents - value).min(axis=0)
        self.tangents = np.where(better, gradient, self.tangents)
        pairs = zip(posteriors, self.tangent_posteriors, strict=True)
        self.tangent_posteriors = [np.where(better, new, old) for new, old in pairs]
        return self.tangents, self.tangent_posteriors

    def descend(self, log_p: FloatArray, tol: float, n_steps: int) -> None:
        """Steps that cannot raise F, and longer ones as long as they do not."""
        length, before, kept = 1.0, np.inf, log_p
        for _ in range(max(n_steps, 1)):
            self.n_steps += 1
            gradient, objective = self.look(_normalised(log_p))
            if objective > before + ROUNDING * self.scale and length > 1.0:
                # Too far: back to the last channel, with the step that is proved to descend.
                log_p, length, before = kept, 1.0, np.inf
                continue
            if self.gap <= tol or time.perf_counter() > self.deadline:
                return
            kept, before = log_p, objective
            log_p = log_p - (length / self.total) * gradient
            log_p -= log_p.max(axis=1, keepdims=True)
            length = min(1.3 * length, LONGEST)

    def centre(self, tol: float) -> None:
        """Newton's steps along the central path, for masses m(x, a) = p(x) P(a|x)."""
        n_a = self.cost.shape[1]
        m = self.p_x[:, None] * (0.5 * self.p + 0.5 / n_a)
        gradient, objective = self.look(m / self.p_x[:, None])
        lowest = gradient.min(axis=1)
        # Products of masses and multipliers alike from the start, as they are on the path.
        slack = (objective - float(self.p_x @ lowest)) / (n_a * m / self.p_x[:, None])
        lowest = lowest - slack.min(axis=1)
        shrink = 0.3
        for _ in range(CENTRES):
            if self.gap <= tol or time.perf_counter() > self.deadline:
                return
            self.n_steps += 1
            weights = np.broadcast_to(self.p_x[:, None], m.shape)
            tau = float((m * slack).sum()) / n_a * weights
            step = self._newton(m, slack, gradient, lowest, shrink * tau)
            if step is None:
                return
            move, rise, change = step
            share = min(1.0, 0.95 * _room(m, move), 0.95 * _room(slack, change))
            if share < 1e-6:
                return
            m = m + share * move
            m *= (self.p_x / m.sum(axis=1))[:, None]
            lowest, slack = lowest + share * rise, slack + share * change
            gradient, _ = self.look(m / self.p_x[:, None], closely=True)
            shrink = 0.1 if share > 0.9 else 0.3 if share > 0.3 else 0.7

    def _newton(
        self, m: FloatArray, slack: FloatArray, gradient: FloatArray, lowest: FloatArray, tau: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Changes of m, of the multipliers of Σ_a m = p(x), and of those of m ≥ 0.

        With D = m/slack, T all channels side by side and Q_a the Hessian in v_a = Tᵀ m_a:
        (D_a⁻¹ + T Q_a Tᵀ) Δm_a = Δλ + e_a and Σ_a Δm_a = 0. Q = R Rᵀ with R = √μ V^{-½} (1 − uuᵀ),
        u = √(v/w). By Woodbury the bracket has the inverse D − D T W Tᵀ D, W = R (1 + Rᵀ Tᵀ D T R)⁻¹ Rᵀ.
        """
        from scipy.linalg import LinAlgError, cho_factor, cho_solve  # slow to import

        n_x, n_a = m.shape
        table = np.hstack(self.channels)
        d = m / slack
        roots = np.zeros((n_a, table.shape[1], table.shape[1]))
        at = 0
        for channel, price in zip(self.channels, self.prices.tolist(), strict=True):
            n_y = channel.shape[1]
            v = np.maximum(m.T @ channel, SMALLEST)
            unit = np.sqrt(v / v.sum(axis=1, keepdims=True))
            project = np.eye(n_y) - unit[:, :, None] * unit[:, None, :]
            roots[:, at : at + n_y, at : at + n_y] = np.sqrt(price / v)[:, :, None] * project
            at += n_y
        seen = table[:, None, :] * d[:, :, None]  # D T, (n_x, n_a, n)
        gram = np.einsum("xy,xaz->ayz", table, seen, optimize=True)
        inner = np.eye(table.shape[1]) + np.swapaxes(roots, 1, 2) @ gram @ roots
        try:
            lower = np.linalg.cholesky(inner)
            half: FloatArray = np.asarray(  # W = halfᵀ half
                np.linalg.solve(lower, np.swapaxes(roots, 1, 2)), dtype=np.float64
            )
        except np.linalg.LinAlgError:
            return None
        wide = np.einsum("xay,azy->xaz", seen, half, optimize=True).reshape(n_x, -1)
        schur = np.diag(d.sum(axis=1)) - wide @ wide.T
        error = tau / m - (gradient - lowest[:, None])
        right = d * error
        plain = right - _through(right, d, table, half)
        try:
            with np.errstate(all="ignore"):
                factor = cho_factor(schur + 1e-15 * np.trace(schur) / n_x * np.eye(n_x))
                rise = cho_solve(factor, -plain.sum(axis=1))
        except (LinAlgError, ValueError):
            return None
        right = d * (rise[:, None] + error)
        move = right - _through(right, d, table, half)
        change = tau / m - slack - slack / m * move
        if not (np.isfinite(move).all() and np.isfinite(change).all()):
            return None
        return move, rise, change

    def found(self) -> Priced:
        leakage = []
        for backward, p_y in zip(self.backward, self.p_y, strict=True):
            table = np.maximum(backward @ self.p, SMALLEST)
            told = p_y @ (table * (np.log(table) - np.log(p_y @ table))).sum(axis=1)
            leakage.append(max(float(told), 0.0))
        spent = float(self.p_x @ (self.p * self.cost).sum(axis=1))
        return Priced(
            self.p, spent, np.array(leakage), self.objective, self.bound, self.posteriors, self.n_steps
        )


def _through(right: FloatArray, d: FloatArray, table: FloatArray, half: FloatArray) -> FloatArray:
    """D T W Tᵀ applied to the columns of `right`, action by action."""
    told = np.einsum("xy,xa->ay", table, right, optimize=True)  # Tᵀ right
    told = np.einsum("azy,ay->az", half, told, optimize=True)
    told = np.einsum("azy,az->ay", half, told, optimize=True)
    back: FloatArray = d * (table @ told.T)
    return back


def _room(values: FloatArray, change: FloatArray) -> float:
    """How far along a change all values stay positive."""
    falling = change < 0.0
    return float((values[falling] / -change[falling]).min()) if falling.any() else np.inf


def _normalised(log_p: FloatArray) -> FloatArray:
    p: FloatArray = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p
