"""Certificates checked from scratch in interval arithmetic (python-flint's arb), without any solver.

A check takes the joint and the measures as they were given, the target, the lower bound that is claimed, and
the multipliers of the proof. Floating-point numbers are rational numbers here, and every comparison is one
that holds for whole intervals. The joint is scaled to sum to 1. What a check relies on is in docs/exact.md:
the certificate line, the support theorem (as many letters as rank(T), pairs for a binary Y), data processing
for merged private values, and what finite actions bound.

With c = leakage − β · utility and any prices λ, every release has

    c ≥ A(p) − β V(p) − λ·p − M ,   M ≥ A(Tq) − β V(q) − λ·q for every posterior q that is allowed,

where V is the loss that utility takes off and −A the leakage of one posterior, up to a constant. So a claimed
bound asks for an M, and the check is that no posterior exceeds it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from flint import arb, ctx, fmpq, fmpq_mat

from privacyfunnel.measures import Distance, Task

BITS = 128
NARROWEST = 2.0**-44  # of an interval of shares that is still split
MOST_PIECES = 200_000  # of simplices that are looked at together
NOTHING = 1e-12  # utility of X itself where there is nothing to choose


class Refuted(AssertionError):
    """A certificate that does not prove what it claims."""


def rational(x) -> fmpq:
    exact = Fraction(float(x))
    return fmpq(exact.numerator, exact.denominator)


def nats(p) -> arb:
    """−p log p"""
    if isinstance(p, fmpq):
        p = arb(p)
    if p == 0:
        return arb(0)
    if p.lower() <= 0:  # a ball around a small number: −p log p rises up to 1/e
        top = arb(p.upper())
        if top <= 0:
            return arb(0)
        assert top < arb(1) / 3
        return arb(0).union(-top * top.log())
    return -p * p.log()


class Given:
    """A joint and measures, exactly."""

    def __init__(self, joint, measures, groups=None):
        """With groups, of the private values of one group as one."""
        ctx.prec = BITS
        rows, columns = np.flatnonzero(joint.p_x > 0), np.flatnonzero(joint.p_y > 0)
        table = [[rational(v) for v in row] for row in joint.p_xy[np.ix_(rows, columns)]]
        if groups is not None:
            of = np.unique(groups[columns], return_inverse=True)[1]
            members = [np.flatnonzero(of == group) for group in range(of.max() + 1)]
            table = [[sum((row[y] for y in group), fmpq(0)) for group in members] for row in table]
        total = sum((sum(row, fmpq(0)) for row in table), fmpq(0))
        self.p_xy = [[v / total for v in row] for row in table]
        self.p = [sum(row, fmpq(0)) for row in self.p_xy]
        self.p_y = [sum(column, fmpq(0)) for column in zip(*self.p_xy, strict=True)]
        self.t = [[v / p for v in row] for row, p in zip(self.p_xy, self.p, strict=True)]  # P(y|x)
        self.n, self.n_y = len(self.p), len(self.p_y)
        self.measures, utility = measures, measures.utility
        self.rows, self.columns = rows, columns
        self.kind = measures.scale.utility
        self.table = None
        if isinstance(utility, Distance):
            self.table = [[rational(v) for v in row] for row in utility.table[rows]]
        elif isinstance(utility, Task):
            exact = [[rational(v) for v in row] for row in utility.p_t_given_x[rows]]
            self.table = [[v / sum(row, fmpq(0)) for v in row] for row in exact]
        if self.kind == "cost":  # what no release takes away does not matter
            self.table = [[v - min(row) for v in row] for row in self.table]
        self.bit = arb(2).log()
        self.utility_unit = self.bit if self.kind in ("information", "task") else arb(1)
        self.leakage_unit = self.bit if measures.leakage == "information" and not measures.budgets else arb(1)

    def loss(self, q) -> arb:
        """V of a posterior {letter: share}: nats, or the unit of the distance."""
        if self.kind == "information":
            return sum((nats(s) for s in q.values()), arb(0))
        width = range(len(self.table[0]))
        if self.kind == "task":
            told = [sum((s * self.table[x][k] for x, s in q.items()), arb(0)) for k in width]
            return sum((nats(v) for v in told), arb(0))
        if self.kind == "cost":
            costs = [sum((s * self.table[x][k] for x, s in q.items()), arb(0)) for k in width]
            least = costs[0]
            for cost in costs[1:]:
                least = least.min(cost)
            return least
        total = arb(0)
        for (x, s), (y, r) in combinations(q.items(), 2):
            far = sum(((self.table[x][k] - self.table[y][k]) ** 2 for k in width), fmpq(0))
            total += s * r * far
        return total

    def whole(self) -> arb:
        """The loss of nothing released: all that a release can take away."""
        return self.loss({x: arb(p) for x, p in enumerate(self.p)})

    def most(self) -> arb:
        """The utility of X itself."""
        return self.whole() - sum((p * self.loss({x: arb(1)}) for x, p in enumerate(self.p)), arb(0))

    def left(self, t) -> arb:
        """A of a posterior on Y: what it leaves open, or minus the leakage of a share."""
        leakage = self.measures.leakage
        if leakage == "information":
            return sum((nats(v) for v in t), arb(0))
        if leakage == "success":
            return -(t[0].max(t[1]))
        return -abs(t[1] - self.p_y[1]) / (2 * self.p_y[0] * self.p_y[1])

    def asked_m(self, beta, prices, target, lower_bound) -> arb:
        """The M that a claimed bound asks for; beta and prices in nats or shares a unit of the loss."""
        claimed, value = arb(float(lower_bound)), arb(float(target.value))
        if target.kind == "beta":
            line = claimed * self.leakage_unit
            # The line has the β that was asked for, but for rounding: times all there is, it moves by that.
            asked = value * self.leakage_unit / self.utility_unit
            line += abs(asked - beta) * self.most()
        elif target.kind == "min_utility":
            line = claimed * self.leakage_unit - beta * value * self.utility_unit
        else:
            line = value * self.leakage_unit + beta * claimed * self.utility_unit
        of_nothing = (
            self.left([arb(v) for v in self.p_y]) if self.measures.leakage == "information" else arb(0)
        )
        paid = sum((p * price for p, price in zip(self.p, prices, strict=True)), arb(0))
        return of_nothing - beta * self.whole() - paid - line


def inner_beta(given, proof) -> arb:
    """β in nats or shares a unit of the loss; a distance counts as a share of the whole inside a proof."""
    beta = arb(float(proof.beta))
    if given.kind in ("information", "task"):
        return beta
    # Where there is nothing to lose every β proves the same line, and a large one says that nothing is won.
    return beta / given.most() if given.most() != 0 else arb(10) ** 40


def check_posteriors(solution) -> int:
    """No posterior exceeds the M that the claimed bound asks for, on as many letters as it takes at most."""
    proof = solution.proof
    # What a release tells of merged values is never more than what it tells of all.
    groups = proof.arrays["groups"] if proof.kind == "merged" else None
    given = Given(solution.joint, solution.measures, groups)
    beta = inner_beta(given, proof)
    prices = [rational(v) for v in proof.arrays["prices"]]
    m = given.asked_m(beta, prices, solution.target, solution.lower_bound)
    measures = given.measures
    if (measures.utility, measures.leakage, measures.max_lift) == ("information", "information", None):
        return _check_faces(given, beta, prices, m)
    assert given.n_y == 2, "pairs are for two private values"
    low, high = _allowed(given)
    looked = 0
    for x in range(given.n):
        if given.t[x][1] < low or given.t[x][1] > high:
            continue
        _below(_value(given, beta, prices, x, x, arb(0)), m, f"letter {x}")
    for i, j in combinations(sorted(range(given.n), key=lambda x: given.t[x][1]), 2):
        if given.t[i][1] < given.t[j][1]:
            looked += _check_pair(given, beta, prices, i, j, low, high, m)
    return looked


def _check_faces(given, beta, prices, m) -> int:
    """Information: every set of rank(T) letters, cut into simplices until each is proved to be below m.

    Floating-point numbers say where to cut; that a piece is below m is proved in intervals. Corners of pieces
    are dyadic numbers, so that they are what they seem.
    """
    faces = np.array([*combinations(range(given.n), fmpq_mat(given.t).rank())])
    t = np.array([[float(arb(v)) for v in row] for row in given.t])
    paid, beta_, m_ = np.array([float(arb(v)) for v in prices]), float(beta), float(m)
    pieces, looked, corners = np.repeat(np.eye(faces.shape[1])[None], len(faces), axis=0), 0, {}
    while len(pieces):
        own_t, own_paid, middles = t[faces], paid[faces], pieces.mean(axis=1)
        centres = np.einsum("pk,pky->py", middles, own_t)
        values = _entropies(centres) - beta_ * _entropies(middles) - (middles * own_paid).sum(axis=1)
        if values.max() > m_ + NOTHING:
            worst = values.argmax()
            raise Refuted(f"letters {faces[worst]} with shares {middles[worst]}: more than {m}")
        centres = np.maximum(centres, 1e-30)  # a c for Gibbs' inequality, piece by piece
        slopes = -np.log(centres / centres.sum(axis=1, keepdims=True))
        linear = np.einsum("pky,py->pk", own_t, slopes) - own_paid
        bounds = np.einsum("pck,pk->pc", pieces, linear) - beta_ * _entropies(pieces)
        done = bounds.max(axis=1) <= m_
        for k in np.flatnonzero(done):
            letters = tuple(faces[k].tolist())
            done[k] = _piece_is_below(given, beta, prices, letters, pieces[k], centres[k], m, corners)
        looked += len(pieces)
        if len(pieces) > MOST_PIECES:
            raise Refuted(f"letters {faces[0]}, and others, are not proved to be below {m}")
        pieces, faces = _halved(pieces[~done], faces[~done], own_t[~done], beta_)
    return looked


def _entropies(p):
    return -(p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=-1)


def _piece_is_below(given, beta, prices, letters, piece, centre, m, corners) -> bool:
    """Of H(Tq), concave, a tangent; of −βH(q), convex, what its corners say: the sum is largest at one."""
    slopes = [-arb(float(v)).log() for v in centre]
    whole = sum((arb(float(v)) for v in centre), arb(0)).log()
    for corner in piece.tolist():
        q = {x: share for x, share in zip(letters, corner, strict=True) if share > 0.0}
        key = tuple(q.items())
        if key not in corners:
            q = {x: arb(share) for x, share in q.items()}
            told = [sum((s * given.t[x][y] for x, s in q.items()), arb(0)) for y in range(given.n_y)]
            paid = sum((s * prices[x] for x, s in q.items()), arb(0))
            corners[key] = told, -beta * given.loss(q) - paid
        told, rest = corners[key]
        if not sum((v * w for v, w in zip(told, slopes, strict=True)), whole) + rest <= m:
            return False
    return True


def _halved(pieces, faces, t, beta):
    """Each simplex cut in two across the edge along which H(Tq) and βH(q) bend most."""
    if not len(pieces):
        return pieces, faces
    edges = np.array([*combinations(range(pieces.shape[1]), 2)])
    if not edges.size:
        raise Refuted(f"letter {faces[0]} is not proved to be below")
    first, second = pieces[:, edges[:, 0]], pieces[:, edges[:, 1]]
    middles, bent = 0.5 * (first + second), 0.0
    for weight, at in ((1.0, t), (beta, None)):
        ends = [q if at is None else np.einsum("pek,pky->pey", q, at) for q in (first, second, middles)]
        of = [_entropies(end) for end in ends]
        bent = bent + weight * (of[2] - 0.5 * (of[0] + of[1]))
    which, rows = bent.argmax(axis=1), np.arange(len(pieces))
    narrow = np.abs(first - second).max(axis=2)[rows, which]
    if narrow.min() < NARROWEST:
        raise Refuted(f"letters {faces[narrow.argmin()]} are not proved to be below, however close one looks")
    halves = np.concatenate([pieces, pieces])
    halves[rows, edges[which, 0]] = halves[len(pieces) + rows, edges[which, 1]] = middles[rows, which]
    return halves, np.concatenate([faces, faces])


def _allowed(given) -> tuple[arb, arb]:
    """Between which P(y₁|z) lies where no symbol tells more than the limit on lift."""
    lift = given.measures.max_lift
    if lift is None:
        return arb(0), arb(1)
    most = arb(2) ** arb(float(lift))
    rest, at = given.p_y
    return (at / most).max(1 - rest * most), (at * most).min(1 - rest / most)


def _value(given, beta, prices, i, j, s) -> arb:
    q = {i: arb(1)} if i == j else {i: 1 - s, j: s}
    t = [sum((share * given.t[x][y] for x, share in q.items()), arb(0)) for y in range(2)]
    paid = sum((share * prices[x] for x, share in q.items()), arb(0))
    return given.left(t) - beta * given.loss(q) - paid


def _below(value, m, where) -> None:
    if not value <= m:
        raise Refuted(f"{where}: {value} is not proved to be at most {m}")


def _check_pair(given, beta, prices, i, j, low, high, m) -> int:
    """Split the shares of j until every part is proved to be below m."""
    t_i, t_j = given.t[i][1], given.t[j][1]
    delta = t_j - t_i
    begin, end = ((low - t_i) / delta).max(arb(0)), ((high - t_i) / delta).min(arb(1))
    if begin > end:
        return 0
    if given.measures.leakage != "information":
        # Convex on both sides of the kink: largest at an end or there.
        kink = fmpq(1, 2) if given.measures.leakage == "success" else given.p_y[1]
        for s in (begin, end, arb((kink - t_i) / delta)):
            if not (s < begin or s > end):
                _below(_value(given, beta, prices, i, j, s), m, f"pair {i}, {j} at {s}")
        return 1
    parts, looked = [(max(0.0, float(begin.lower())), min(1.0, float(end.upper())))], 0
    while parts:
        a, b = parts.pop()
        looked += 1
        if _bound(given, beta, prices, i, j, a, b) <= m:
            continue
        middle = 0.5 * (a + b)
        if b - a < NARROWEST or _value(given, beta, prices, i, j, arb(middle)) > m:
            raise Refuted(f"pair {i}, {j} between shares {a} and {b} is not proved to be below {m}")
        parts += [(a, middle), (middle, b)]
    return looked


def _bound(given, beta, prices, i, j, a, b) -> arb:
    """Of A, concave, its tangent in the middle; of −βV, convex, its chord: the sum is largest at an end."""
    middle = arb(0.5 * (a + b))
    t = [(1 - middle) * given.t[i][y] + middle * given.t[j][y] for y in range(2)]
    slopes = [-(v.log()) if v > 0 else arb(0) for v in t]  # Gibbs: H(t') ≤ −Σ t' log t
    best = None
    for s in (arb(a), arb(b)):
        shares = [(1 - s) * given.t[i][y] + s * given.t[j][y] for y in range(2)]
        told = sum((v * w for v, w in zip(shares, slopes, strict=True)), arb(0))
        value = told - beta * given.loss({i: 1 - s, j: s}) - (1 - s) * prices[i] - s * prices[j]
        best = value if best is None else best.max(value)
    return best


def check_actions(solution) -> int:
    """Finite actions: the bound of docs/exact.md, section 11, from the multipliers of the proof."""
    given, proof = Given(solution.joint, solution.measures), solution.proof
    costs = _costs(given, proof)
    prices = [arb(float(v)) for v in proof.arrays["prices"]]
    assert all(v >= 0 for v in prices)
    parts = _parts(given)
    # E d + Σ_k μ_k L_k ≥ b, and L_k ≤ least_k + room_k · leakage.
    told = _told_by_information if proof.kind == "actions" else _told_by_forms
    gains, prices = told(given, proof, parts, prices)
    unit = arb(1) if given.kind == "task" else 1 / given.most()
    bound = arb(0)
    for x in range(given.n):
        least = None
        for a in range(len(costs[0])):
            value = costs[x][a] * unit + sum((given.t[x][y] * gains[a][y] for y in range(given.n_y)), arb(0))
            least = value if least is None else least.min(value)
        bound += given.p[x] * least
    room = sum((price * part.room for price, part in zip(prices, parts, strict=True)), arb(0))
    fixed = sum((price * part.least for price, part in zip(prices, parts, strict=True)), arb(0))
    nothing = given.whole() * unit
    claimed, value = arb(float(solution.lower_bound)), arb(float(solution.target.value))
    in_utility = given.utility_unit * unit
    # leakage · room ≥ b − V + utility − fixed, for every release over these answers.
    kind = solution.target.kind
    if kind == "max_leakage":
        proved = value * room - bound + nothing + fixed  # utility is at most that
        _below(proved, -claimed * in_utility, "utility")
    elif kind == "min_utility":
        proved = bound - nothing + value * in_utility - fixed
        _below(claimed * room, proved, "leakage")
    else:
        proved = (
            bound - nothing - fixed
        )  # leakage · room − utility ≥ that, with β · room = 1 but for rounding
        off = abs(value * room - in_utility) / in_utility * nothing
        _below(claimed * room, proved - off, "leakage − β utility")
    return given.n * len(costs[0])


def _costs(given, proof) -> list[list[arb]]:
    """What each answer costs for each letter, from the answers themselves."""
    if given.kind == "cost":
        return [[arb(v) for v in row] for row in given.table]
    answers = [[rational(v) for v in row] for row in proof.arrays["answers"]]
    if given.kind == "task":
        costs = []
        for answer in answers:
            # A prediction: it may not promise more than 1 in all.
            total = sum(answer, fmpq(0))
            costs.append([None if v == 0 else -(arb(v / total).log()) for v in answer])
        return [
            [sum((v * c for v, c in zip(row, one, strict=True) if v != 0), arb(0)) for one in costs]
            for row in given.table
        ]
    return [
        [arb(sum(((v - w) ** 2 for v, w in zip(row, answer, strict=True)), fmpq(0))) for answer in answers]
        for row in given.table
    ]


class _Part:
    """One of the leakages of which the largest counts: which values of Y it tells apart, its limit."""

    def __init__(self, groups, room, least, pair=None):
        self.groups, self.room, self.least, self.pair = groups, room, least, pair


def _parts(given) -> list[_Part]:
    measures = given.measures
    wholes = [(one.groups[given.columns], one) for one in measures.budgets] or [(np.arange(given.n_y), None)]
    parts = []
    for groups, budget in wholes:
        groups = np.unique(groups, return_inverse=True)[1]
        shares = [fmpq(0)] * (groups.max() + 1)
        for y, group in enumerate(groups):
            shares[group] += given.p_y[y]
        room, least = arb(1), arb(0)
        if measures.leakage == "information":
            room = given.bit if budget is None else arb(float(budget.limit)) * given.bit
        elif measures.leakage == "success" and budget is not None:
            least = arb(max(shares))
            room = arb(float(budget.limit)) - least
        elif budget is not None:
            room = arb(float(budget.limit))
        if measures.leakage == "parity":
            for i, j in combinations(range(len(shares)), 2):
                parts.append(_Part(groups, room, least, (i, j, shares)))
        else:
            parts.append(_Part(groups, room, least))
    return parts


def _told_by_information(given, proof, parts, prices):
    """Σ_k μ_k log r_ka(y)/P_k(y) for each answer: D(·‖P) lies above its tangents."""
    rows = proof.arrays["posteriors"]  # (n_a, values of all parts side by side)
    gains = [[arb(0)] * given.n_y for _ in rows]
    at = 0
    for part, price in zip(parts, prices, strict=True):
        width = part.groups.max() + 1
        shares = [fmpq(0)] * width
        for y, group in enumerate(part.groups):
            shares[group] += given.p_y[y]
        for a, row in enumerate(rows):
            exact = [rational(v) for v in row[at : at + width]]
            total = sum(exact, fmpq(0))
            for y, group in enumerate(part.groups):
                gains[a][y] = gains[a][y] + price * arb(exact[group] / total / shares[group]).log()
        at += width
    return gains, prices


def _told_by_forms(given, proof, parts, prices):
    """Σ π f + Σ ν c for each answer, and prices μ_k that are no less than any sum of its multipliers π."""
    weights = proof.arrays["weights"]
    gains = [[arb(0)] * given.n_y for _ in weights]
    at, used = 0, []
    for part, largest in zip(parts, prices, strict=True):
        forms = []
        if part.pair is None:  # success: one form a value
            for group in range(part.groups.max() + 1):
                forms.append([fmpq(int(g == group)) for g in part.groups])
        else:
            i, j, shares = part.pair
            forms.append(
                [(fmpq(int(g == i)) / shares[i] - fmpq(int(g == j)) / shares[j]) for g in part.groups]
            )
        for a in range(len(weights)):
            own = [rational(v) for v in weights[a, at : at + len(forms)]]
            assert all(v >= 0 for v in own)
            largest = largest.max(arb(sum(own, fmpq(0))))
            for form, weight in zip(forms, own, strict=True):
                for y in range(given.n_y):
                    gains[a][y] = gains[a][y] + weight * form[y]
        used.append(largest)
        at += len(forms)
    if given.measures.max_lift is not None:
        most = arb(2) ** arb(float(given.measures.max_lift))
        for a in range(len(weights)):
            for k in range(given.n_y):
                above, below = (rational(v) for v in (weights[a, at + k], weights[a, at + given.n_y + k]))
                assert above >= 0
                assert below >= 0
                for y in range(given.n_y):
                    own = fmpq(int(y == k))
                    gains[a][y] = gains[a][y] + above * (own - most * given.p_y[k])
                    gains[a][y] = gains[a][y] + below * (given.p_y[k] / most - own)
        at += 2 * given.n_y
    assert at == weights.shape[1]
    return gains, used


def check_private(solution) -> int:
    """Perfect privacy: all vertices of {q ≥ 0, Tq = P(Y)}, in rational numbers."""
    given, proof = Given(solution.joint, solution.measures), solution.proof
    assert proof.kind == "private"
    if not given.most() > NOTHING:
        _below(given.most(), -arb(float(solution.lower_bound)) * given.utility_unit + NOTHING, "utility")
        return 0
    unit = arb(1) if given.kind in ("information", "task") else 1 / given.most()
    prices = [rational(v) for v in proof.arrays["prices"]]
    paid = sum((p * price for p, price in zip(given.p, prices, strict=True)), arb(0))
    # utility ≤ V(p) + λ·p + M with M ≥ −V(q) − λ·q
    m = -arb(float(solution.lower_bound)) * given.utility_unit * unit - given.whole() * unit - paid
    looked = 0
    rank = fmpq_mat(given.t).rank()
    for letters in combinations(range(given.n), rank):
        system = fmpq_mat([[given.t[x][y] for x in letters] + [given.p_y[y]] for y in range(given.n_y)])
        reduced, found = system.rref()
        if found > rank or any(reduced[k, k] != 1 for k in range(rank)):
            continue  # dependent letters, or no solution on them
        q = {x: reduced[k, rank] for k, x in enumerate(letters)}
        if min(q.values()) < 0:
            continue
        looked += 1
        shares = {x: arb(s) for x, s in q.items() if s > 0}
        value = -given.loss(shares) * unit - sum((s * prices[x] for x, s in q.items()), fmpq(0))
        _below(value, m, f"letters {letters}")
    assert looked
    return looked


CHECKS = {
    "posteriors": check_posteriors,
    "merged": check_posteriors,
    "actions": check_actions,
    "programme": check_actions,
    "private": check_private,
}


def check(solution) -> int:
    """Raise Refuted unless the claimed lower bound is proved; how many parts were looked at."""
    return CHECKS[solution.proof.kind](solution)
