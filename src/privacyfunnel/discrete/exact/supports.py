"""Certified pricing for any private alphabet: branch and bound over partial supports.

The reduced value of a posterior q with Tq = P(Y|z) is G(q) = H(Tq) − β H(q) − λ·q. Some maximiser has at most
rank(T) letters. A node says which are the largest of them, in falling order of their shares, and between
which limits these shares are; the rest of the mass is on other letters, or the node is closed and there is
none. So one bound covers all supports that begin alike. Proofs of what follows, and of the rounding, are in
docs/exact.md, sections 6, 7 and 10.

Bound. H(Tq) ≤ −Σ_y (Tq)_y log c_y for any distribution c (Gibbs); s log s lies below its chord between the
limits of a share, and below s log u for the rest, whose shares are at most u. What remains is linear: a
programme with one equation, which is solved by filling up the best letters first. Its solution moves c
(Frank–Wolfe).

Dropping what cannot hold a maximum. Shares of two letters have bounded ratios (ratios.py), which narrow the
limits, and on the letters of a node the Hessian must leave room for a maximum.

The search goes by rounds with falling rungs: nodes with a bound below the rung wait for the next round, as
leaves. An interrupted search has thus looked at the worst nodes first, and the bound of what is left is worth
something.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...arrays import FloatArray
from .nodes import Nodes, empty_nodes, put
from .ratios import HAIR

SLACK = 1e-12  # limits of shares are moved outwards by this much
TINY = 1e-16  # no entry of c, and no share that is a limit, counts as less: logarithms stay small
LOG_TINY = float(np.log(TINY))
UNIT = 1e-15  # what an operation may cost in rounding, with much to spare
WIDTH = 0.1  # limits further apart are halved before another letter is chosen
NARROWEST = 1e-9  # limits that are not halved any more
N_CENTRES = 10  # tried for each node
MOST_APART = 4  # letters of the rest that are told apart in a bound
LOOK_UP = 256  # nodes between two looks at the caller's request to stop


@njit(nogil=True, cache=True)
def _narrow(
    letters: NDArray[np.int32],
    low: FloatArray,
    high: FloatArray,
    size: int,
    spare: int,
    least: FloatArray,
    most: FloatArray,
    rest: FloatArray,
) -> bool:
    """Narrow the limits of the shares, and those of the rest's mass, rest[0] and rest[1], by what shares are
    in proportion and in sum; whether anything is left. `spare`: how many more letters there may be."""
    for _ in range(3):
        for i in range(size):
            for j in range(i + 1, size):
                a, b = least[letters[i], letters[j]], most[letters[i], letters[j]]
                low[j] = max(low[j], low[i] * a * (1.0 - SLACK))
                high[j] = min(high[j], high[i] * b * (1.0 + SLACK))
                low[i] = max(low[i], low[j] / b * (1.0 - SLACK))
                if a > 0.0:
                    high[i] = min(high[i], high[j] / a * (1.0 + SLACK))
        lows, highs = 0.0, 0.0
        for j in range(size):
            lows += low[j]
            highs += high[j]
        if spare > 0:
            rest[0] = max(rest[0], 1.0 - highs - SLACK)
            rest[1] = min(rest[1], min(1.0 - lows, spare * high[size - 1]) + SLACK)
            low[size - 1] = max(low[size - 1], (1.0 - highs - SLACK) / spare)
        if rest[0] > rest[1] or lows + rest[0] > 1.0 + SLACK or highs + rest[1] < 1.0 - SLACK:
            return False
        for j in range(size):
            high[j] = min(high[j], 1.0 - rest[0] - (lows - low[j]) + SLACK)
            low[j] = max(low[j], 1.0 - rest[1] - (highs - high[j]) - SLACK)
            if low[j] > high[j]:
                return False
    return True


@njit(nogil=True, cache=True)
def _no_maximum(
    letters: NDArray[np.int32],
    low: FloatArray,
    high: FloatArray,
    size: int,
    channel: FloatArray,
    beta: float,
    matrix: FloatArray,
    t: FloatArray,
) -> bool:
    """Whether Σ_y (Td)²/(Tq)_y < β Σ d²/q for some d on the chosen letters, wherever q is within the limits.

    Else the matrix Σ_y T_yi T_yj / t_y − β δ_ij / high_i, with t the least Tq, is positive semi-definite, and
    a little more on its diagonal makes Cholesky's factors real despite rounding.
    """
    n_y = channel.shape[1]
    for y in range(n_y):
        t[y] = 0.0
        for j in range(size):
            t[y] += low[j] * channel[letters[j], y]
        for j in range(size):
            if t[y] <= 0.0 and channel[letters[j], y] > 0.0:
                return False
    for i in range(size):
        for j in range(i + 1):
            value = 0.0
            for y in range(n_y):
                if t[y] > 0.0:
                    value += channel[letters[i], y] * channel[letters[j], y] / t[y]
            matrix[i, j] = value
    for i in range(size):
        matrix[i, i] = matrix[i, i] * (1.0 + HAIR) - beta / high[i]
    for i in range(size):
        for j in range(i):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value / matrix[j, j]
        value = matrix[i, i]
        for k in range(i):
            value -= matrix[i, k] * matrix[i, k]
        if value <= 0.0:
            return True
        matrix[i, i] = np.sqrt(value)
    return False


@njit(nogil=True, cache=True)
def _fill(
    size: int,
    slope: FloatArray,
    room: FloatArray,
    order: NDArray[np.int32],
    n_rest: int,
    rest_slope: FloatArray,
    rest_room: FloatArray,
    mass: float,
    rest_low: float,
    rest_high: float,
    share: FloatArray,
    rest_share: FloatArray,
) -> float:
    """The largest Σ slope · share for a total of `mass`, between rest_low and rest_high of it on the rest;
    slopes fall along `order`, and along the rest. −∞ where the mass does not fit.

    share and rest_share become the parts.
    """
    value, at = 0.0, 0
    for j in range(size):
        share[j] = 0.0
    for e in range(n_rest):
        rest_share[e] = 0.0
    needed, left = rest_low, mass - rest_low
    while needed > 0.0 and at < n_rest:
        part = min(rest_room[at] - rest_share[at], needed)
        rest_share[at] += part
        value += rest_slope[at] * part
        needed -= part
        if needed > 0.0:
            at += 1
    if needed > SLACK:
        return -np.inf
    spare, i = rest_high - rest_low, 0
    while left > 0.0:
        open_rest = spare > 0.0 and at < n_rest
        if i < size and (not open_rest or slope[order[i]] >= rest_slope[at]):
            j = order[i]
            part = min(room[j], left)
            share[j] += part
            value += slope[j] * part
            left -= part
            i += 1
        elif open_rest:
            part = min(min(rest_room[at] - rest_share[at], spare), left)
            rest_share[at] += part
            value += rest_slope[at] * part
            left -= part
            spare -= part
            at += 1
        else:
            break
    if left > 4.0 * SLACK:
        return -np.inf
    return value


@njit(nogil=True, cache=True)
def search(
    roots: Nodes,
    first: int,
    last: int,
    channel: FloatArray,
    prices: FloatArray,
    beta: float,
    rank: int,
    least: FloatArray,
    most: FloatArray,
    log_most: FloatArray,
    threshold: float,
    rung: float,
    max_nodes: int,
    stop: NDArray[np.int8],
    leaves: Nodes,
    found: FloatArray,
    found_letters: NDArray[np.int32],
) -> tuple[float, int, int, int, bool]:
    """Search what the roots first … last cover for G > threshold.

    Nodes with a bound between threshold and rung become leaves, as long as there is room for them. Returns
    an upper bound on G over maximisers in all that is not in leaves, the nodes looked at, how many leaves and
    posteriors were found, and whether a limit stopped the search: max_nodes, or another thread setting
    stop[0].
    """
    n, n_y = channel.shape
    stack = empty_nodes(2 * n * rank + 64 * rank + 64, rank, n_y)
    letters = np.zeros(rank, dtype=np.int32)
    low, high, rest = np.zeros(rank), np.zeros(rank), np.zeros(2)
    matrix, t = np.zeros((rank, rank)), np.zeros(n_y)
    linear, bend, slope, room = np.zeros(rank), np.zeros(rank), np.zeros(rank), np.zeros(rank)
    share = np.zeros(rank)
    order = np.zeros(rank, dtype=np.int32)
    rest_letter, rest_which = np.zeros(MOST_APART, dtype=np.int32), np.zeros(MOST_APART, dtype=np.int32)
    rest_slope, rest_bend, rest_room = np.zeros(MOST_APART), np.zeros(MOST_APART), np.zeros(MOST_APART)
    rest_share = np.zeros(MOST_APART)
    candidate = np.zeros(n, dtype=np.int32)
    candidate_price, candidate_bend, candidate_channel = np.zeros(n), np.zeros(n), np.zeros((n_y, n))
    own_low, own_high, own_log, value = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    centre, best_centre, log_c = np.zeros(n_y), np.zeros(n_y), np.zeros(n_y)
    n_leaves, n_found, nodes = 0, 0, 0
    largest_price = np.abs(prices).max()
    bound = -np.inf
    limited = False
    next_root = first
    top = 0
    while top > 0 or next_root < last:
        if top == 0:
            r = next_root
            start = roots.letters[r], roots.low[r], roots.high[r], roots.centre[r]
            put(stack, 0, *start, roots.upper[r], roots.size[r], roots.closed[r])
            next_root += 1
            top = 1
        if nodes >= max_nodes or (nodes % LOOK_UP == 0 and stop[0] != 0):
            limited = True
            break
        nodes += 1
        top -= 1
        size, closed, above = stack.size[top], stack.closed[top], stack.upper[top]
        for j in range(size):
            letters[j] = stack.letters[top, j]
            low[j], high[j] = stack.low[top, j], stack.high[top, j]
        spare = 0 if closed else rank - size
        rest[0], rest[1] = 0.0, 0.0 if closed else 1.0
        if not _narrow(letters, low, high, size, spare, least, most, rest):
            continue
        if size > 1 and _no_maximum(letters, low, high, size, channel, beta, matrix, t):
            continue
        # Who can be in the rest, and with what share.
        n_candidates = 0
        if not closed:
            for x in range(n):
                own_low[x], own_high[x] = 0.0, min(high[size - 1], rest[1])
            common = np.log(max(min(high[size - 1], rest[1]), TINY)) + 2.0 * SLACK
            for x in range(n):
                own_log[x] = common
            for j in range(size):
                x, log_high = letters[j], np.log(max(high[j], TINY)) + 2.0 * SLACK
                for other in range(n):
                    own_low[other] = max(own_low[other], low[j] * least[x, other] * (1.0 - SLACK))
                    own_high[other] = min(own_high[other], high[j] * most[x, other] * (1.0 + SLACK))
                    own_log[other] = min(own_log[other], log_high + log_most[x, other])
            for j in range(size):
                own_high[letters[j]] = -1.0
            smallest = 1.0
            for x in range(n):
                if own_low[x] <= own_high[x]:
                    candidate[n_candidates] = x
                    n_candidates += 1
                    smallest = min(smallest, own_low[x])
            if n_candidates == 0:
                continue
            for e in range(n_candidates):  # side by side, for what follows to be quick
                x = candidate[e]
                candidate_price[e], candidate_bend[e] = prices[x], beta * max(own_log[x], LOG_TINY)
                for y in range(n_y):
                    candidate_channel[y, e] = channel[x, y]
            rest[0] = max(rest[0], smallest)
            if rest[0] > rest[1]:
                continue
        # Chords of β s log s between the limits.
        fixed, fixed_bend, mass = 0.0, 0.0, 1.0
        for j in range(size):
            high[j] = max(high[j], TINY)
            mass -= low[j]
            at_low = low[j] * np.log(low[j]) if low[j] > 0.0 else 0.0
            at_high = high[j] * np.log(high[j])
            room[j] = max(high[j] - low[j], 0.0)
            bend[j] = beta * (at_high - at_low) / room[j] if room[j] > SLACK else 0.0
            fixed_bend += beta * (at_low if room[j] > SLACK else max(at_low, at_high))
        total = 0.0
        for y in range(n_y):
            centre[y] = 0.0
        for j in range(size):
            middle = 0.5 * (low[j] + high[j])
            total += middle
            for y in range(n_y):
                centre[y] += middle * channel[letters[j], y]
        for y in range(n_y):
            centre[y] /= total
            if not closed:
                centre[y] = 0.3 * centre[y] + 0.7 * stack.centre[top, y]
            best_centre[y] = centre[y]
        n_rest = 0
        apart = min(spare, MOST_APART)
        for attempt in range(N_CENTRES):
            for y in range(n_y):
                log_c[y] = np.log(max(centre[y], TINY))
            for j in range(size):
                x = letters[j]
                linear[j] = -prices[x]
                for y in range(n_y):
                    linear[j] -= channel[x, y] * log_c[y]
                slope[j] = linear[j] + bend[j]
            for e in range(n_candidates):
                value[e] = -candidate_price[e]
            for y in range(n_y):
                weight = log_c[y]
                for e in range(n_candidates):
                    value[e] -= candidate_channel[y, e] * weight
            n_rest = 0
            for e in range(n_candidates):
                here = value[e] + candidate_bend[e]
                if n_rest < apart or here > rest_slope[apart - 1]:
                    at = min(n_rest, apart - 1)
                    n_rest = at + 1
                    while at > 0 and rest_slope[at - 1] < here:
                        rest_slope[at], rest_which[at] = rest_slope[at - 1], rest_which[at - 1]
                        at -= 1
                    rest_slope[at], rest_which[at] = here, e
            for at in range(n_rest):
                e = rest_which[at]
                rest_letter[at], rest_bend[at] = candidate[e], candidate_bend[e]
                rest_room[at] = max(own_high[candidate[e]], TINY)
            if n_rest == apart and n_rest > 0 and n_candidates > apart:
                rest_room[n_rest - 1] = 1.0  # in place of all that are not told apart
            for i in range(size):
                order[i] = i
            for i in range(1, size):
                j, at = order[i], i
                while at > 0 and slope[order[at - 1]] < slope[j]:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = j
            filled = _fill(
                size,
                slope,
                room,
                order,
                n_rest,
                rest_slope,
                rest_room,
                mass,
                rest[0],
                rest[1],
                share,
                rest_share,
            )
            if filled == -np.inf:
                above = -np.inf
                break
            bent = fixed_bend
            fixed = fixed_bend
            for j in range(size):
                fixed += linear[j] * low[j]
                bent += bend[j] * share[j]
                share[j] += low[j]
            for e in range(n_rest):
                bent += rest_bend[e] * rest_share[e]
            here = fixed + filled
            here += UNIT * (n_y + 2 * rank + 16) * (10.0 + abs(here) + 2.0 * (largest_price + abs(bent)))
            if here < above:
                above = here
                for y in range(n_y):
                    best_centre[y] = centre[y]
            if above <= threshold:
                break
            for y in range(n_y):
                t[y] = 0.0
                for j in range(size):
                    t[y] += share[j] * channel[letters[j], y]
                for e in range(n_rest):
                    t[y] += rest_share[e] * channel[rest_letter[e], y]
            step = 0.8 / (attempt + 2)
            for y in range(n_y):
                centre[y] = (1.0 - step) * centre[y] + step * t[y]
        if above <= threshold:
            bound = max(bound, above)
            continue
        # The solution of the programme is a posterior: is it a column?
        here = 0.0
        for y in range(n_y):
            if t[y] > 0.0:
                here -= t[y] * np.log(t[y])
        for j in range(size):
            here += share[j] * (beta * np.log(max(share[j], TINY)) - prices[letters[j]])
        for e in range(n_rest):
            if rest_share[e] > 0.0:
                here += rest_share[e] * (beta * np.log(rest_share[e]) - prices[rest_letter[e]])
        if here > threshold and n_found < found.shape[0]:
            found[n_found] = 0.0
            for j in range(size):
                found[n_found, j], found_letters[n_found, j] = share[j], letters[j]
            for e in range(n_rest):
                found[n_found, rank + e], found_letters[n_found, rank + e] = rest_share[e], rest_letter[e]
            n_found += 1
            bound = max(bound, above)
            if n_found == found.shape[0]:
                limited = True
                break
            continue
        if above <= rung and n_leaves < leaves.upper.size:
            put(leaves, n_leaves, letters, low, high, best_centre, above, size, closed)
            n_leaves += 1
            continue
        # Branch: halve the widest limits, of closed nodes those whose chord is furthest off, or choose the
        # next letter.
        widest, which = -1.0, 0
        for j in range(size):
            off = room[j]
            if closed and room[j] > NARROWEST:
                at_low = low[j] * np.log(low[j]) if low[j] > 0.0 else 0.0
                off = 1.0 + at_low - share[j] * np.log(max(share[j], TINY))
                off += bend[j] / beta * (share[j] - low[j]) + 1e-3 * room[j]
            if off > widest:
                widest, which = off, j
        if closed and widest < NARROWEST:
            limited = True
            bound = max(bound, above)
            continue
        if closed or (size > 1 and widest > WIDTH):
            middle = 0.5 * (low[which] + high[which])
            for half in range(2):
                put(stack, top, letters, low, high, best_centre, above, size, closed)
                if half == 0:
                    stack.high[top, which] = middle
                else:
                    stack.low[top, which] = middle
                top += 1
            continue
        highs = 0.0
        for j in range(size):
            highs += high[j]
        for e in range(n_candidates):
            x = candidate[e]
            forced = max(own_low[x], rest[0] / spare)
            if forced > own_high[x]:
                continue
            filled = _fill(
                size,
                slope,
                room,
                order,
                n_rest,
                rest_slope,
                rest_room,
                mass - forced,
                max(rest[0] - forced, 0.0),
                max(rest[1] - forced, 0.0),
                share,
                rest_share,
            )
            if filled == -np.inf:
                continue
            guess = fixed + forced * (value[e] + candidate_bend[e]) + filled
            guess += UNIT * (n_y + 2 * rank + 16) * (10.0 + abs(guess) + 2.0 * (largest_price + 100.0 * beta))
            if guess <= threshold:
                bound = max(bound, guess)
                continue
            guess = min(guess, above)
            for kind in range(2):
                if kind == 0 and (size + 1 == rank):
                    continue
                if kind == 1 and highs + own_high[x] < 1.0 - SLACK:
                    continue
                put(stack, top, letters, low, high, best_centre, guess, size + 1, kind == 1)
                stack.letters[top, size] = x
                stack.low[top, size] = forced * (1.0 - SLACK)
                stack.high[top, size] = own_high[x]
                top += 1
    # What was not looked at.
    for at in range(top):
        bound = max(bound, stack.upper[at])
    for at in range(next_root, last):
        bound = max(bound, roots.upper[at])
    return bound, nodes, n_leaves, n_found, limited
