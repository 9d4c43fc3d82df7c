"""Where the lines of a trade-off run in its picture, for the app and for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..tradeoff import Frontier

#: In the units of the picture.
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 560, 320, 62, 44, 12, 14
#: What telling is called beside the axis.
WORDS = {
    "information": "bits told",
    "success": "guessed right",
    "parity": "difference between groups",
}

Points = Sequence[tuple[float, float]]


def plane_chart(
    told: Points,
    at_most: Points,
    proved: Points,
    measure: str,
    words: str,
    told_word: str = "on these records, exact",
) -> dict[str, Any]:
    """The values of the template: points are (kept, told), `at_most` is certified, nothing is below `proved`.

    Parameters
    ----------
    told : what releases tell on their records
    at_most, proved : may be empty
    measure : key of WORDS
    words : what the picture shows, for who does not see it
    told_word : what the line is
    """
    most_kept = max(kept for kept, _ in told) or 1.0
    heights = [height for _, height in (*told, *at_most)]
    low = 0.0 if measure != "success" else max(0.0, min(heights) - 0.02)
    high = max(max(heights), low + 1e-4)
    floor = HEIGHT - BOTTOM

    def x(kept: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * kept / most_kept, 1)

    def y(height: float) -> float:
        share = (min(max(height, low), high) - low) / (high - low)
        return round(floor - (floor - TOP) * share, 1)

    def line(points: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{x(kept)},{y(height)}" for kept, height in points)

    unit = "" if measure == "information" else " %"
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "floor": floor,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "impossible": f"{x(0)},{floor} {line(proved)} {x(most_kept)},{floor}" if proved else "",
        "told": line(told),
        "at_most": line(at_most),
        "here": [(x(kept), y(height)) for kept, height in at_most or told],
        "y_ticks": [(y(tick), text + unit) for tick, text in round_ticks(low, high, 100 if unit else 1)],
        "x_ticks": [(x(most_kept * share), f"{100 * most_kept * share:.0f} %") for share in (0, 0.5, 1)],
        "y_word": WORDS[measure],
        "words": words,
        "told_word": told_word,
    }


def round_ticks(low: float, high: float, times: int = 1) -> list[tuple[float, str]]:
    """Round numbers between two, five of them at most, and how each is written when multiplied by `times`."""
    least = times * (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(least))
    step = next(unit * one for one in (1, 2, 5, 10) if unit * one >= least * (1 - 1e-9))
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    numbers = range(math.ceil(times * low / step - 1e-9), math.floor(times * high / step + 1e-9) + 1)
    return [(step * number / times, f"{step * number:.{digits}f}") for number in numbers]


def proved_points(front: Frontier) -> list[tuple[float, float]]:
    """What must be told at least, for shares of what is kept; empty where a frontier has no proof."""
    most = front.max_utility
    return [(kept / most if most else 0.0, told) for kept, told in front.proved()]
