"""How curves of runs are compared, and what a verdict needs."""

from __future__ import annotations

import math
from typing import Any

import pytest

import privacyfunnel as pf
from privacyfunnel.experiments import known
from privacyfunnel.experiments.appendix import _has, _one_more
from privacyfunnel.experiments.base import spread
from privacyfunnel.experiments.learned import compare, erased, groups, levels_table, shared, undominated


def record(method: str, values: dict[str, float], seed: int = 0, **settings: Any) -> dict[str, Any]:
    run = {"method": method, "settings": settings, "seed": seed, "data": None}
    return {"key": "k", "run": run, "values": values, "seconds": 1.0}


def test_comparison_at_equal_gain() -> None:
    first = [record("a", {"g": g, "c": 0.1 * g}, beta=g) for g in (1.0, 2.0, 3.0)]
    second = [record("b", {"g": g, "c": 0.1 * g + 0.2}, beta=g) for g in (1.0, 2.0, 3.0)]
    one, two = (groups({"x": part}) for part in (first, second))
    found = compare(one, two, "g", "c")
    assert found is not None
    assert found.mean == pytest.approx(-0.2)
    assert [difference for _, difference in found.at] == pytest.approx([-0.2] * 9)
    assert [found.at[0][0], found.at[-1][0]] == [1.0, 3.0]
    assert (found.error, found.less, found.nowhere_more) == (None, None, None)  # of one seed
    apart = groups({"x": [record("c", {"g": 9.0, "c": 0.0}), record("c", {"g": 8.0, "c": 0}, beta=2)]})
    assert compare(one, apart, "g", "c") is None
    near = compare(one, apart, "g", "c", same=6.0)
    assert near is not None
    assert [*near.at[0], near.mean] == pytest.approx([6.0, 0.3, 0.3])


def test_a_named_range_is_compared_from_its_begin() -> None:
    """A curve that begins later costs at lower gains what its first setting costs: it loses there."""
    whole = [record("a", {"g": g, "c": g}, beta=g) for g in (1.0, 2.0, 3.0)]
    late = [record("b", {"g": g, "c": g - 0.5}, beta=g) for g in (2.0, 3.0)]
    one, two = (groups({"x": part}) for part in (late, whole))
    found = compare(one, two, "g", "c", (1.0, 4.0))
    assert found is not None
    assert [found.at[0][0], found.at[-1][0]] == [1.0, 3.0]
    assert found.at[0][1] == pytest.approx(0.5)
    assert found.at[-1][1] == pytest.approx(-0.5)
    assert compare(one, two, "g", "c", (3.5, 4.0)) is None


def test_a_curve_that_ends_before_its_rival_within_a_named_range_has_won_nothing() -> None:
    cheap = line({0: -0.5, 1: -0.4})
    rival = line({0: 0.0, 1: 0.001})
    for most, won in ((3.0, True), (2.5, True), (4.0, True)):  # the rival ends at 3, too
        found = compare(cheap, rival, "g", "c", (1.0, most))
        assert found is not None
        assert found.nowhere_more is won
    found = compare([group for group in cheap if group.mean("g") < 3], rival, "g", "c", (1.0, 3.0))
    assert found is not None
    assert (found.at[-1][0], found.nowhere_more) == (2.0, None)


@pytest.mark.parametrize(
    ("seeds", "verdict"),
    [
        ([[0.55, 0.6, 0.58], [0.58, 0.57, 0.6], [0.6, 0.57, 0.56]], True),
        ([[0.31, 0.32, 0.3], [0.3, 0.31, 0.32], [0.31, 0.3, 0.3]], False),
        ([[0.41, 0.5, 0.56], [0.42, 0.45, 0.5], [0.34, 0.35, 0.4]], None),  # too few to tell
        ([[0.3, 0.31]], None),  # of one model
        ([], None),
    ],
)
def test_the_papers_single_number_is_compared_with_single_models(
    seeds: list[list[float]], verdict: bool | None
) -> None:
    assert _has(_one_more(seeds), 0.6) is verdict


def test_one_more_model_lies_where_it_is_said_to() -> None:
    """Of models with a spread of their own, and of epochs within them: 95 of 100 lie inside."""
    import numpy as np

    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(300):
        models = 0.5 + 0.04 * rng.normal(size=4)
        epochs = models[:, None] + 0.02 * rng.normal(size=(4, 5))
        low, high = _one_more(epochs[:3].tolist()) or (0.0, 0.0)
        inside += bool(low <= epochs[3, 0] <= high)
    assert 0.92 <= inside / 300 <= 1.0


def test_curves_that_are_equal_are_seldom_told_apart() -> None:
    """Two equal curves with two seeds each, several hundred times: few verdicts either way."""
    import numpy as np

    rng = np.random.default_rng(0)

    def drawn(name: str) -> Any:
        values = [
            record(name, {"g": g, "leakage": g + 0.05 * rng.normal(), "leakage_most": 3.3}, seed, beta=g)
            for g in (1.0, 2.0, 3.0, 4.0, 5.0)
            for seed in (0, 1)
        ]
        return groups({name: values})

    found = [compare(drawn("a"), drawn("b"), "g", "leakage", (1.0, 5.0)) for _ in range(400)]
    told = [one.nowhere_more for one in found if one is not None]
    assert len(told) == 400
    assert told.count(True) <= 8
    assert told.count(False) <= 24
    assert [one.less for one in found if one is not None].count(True) <= 20


def line(costs: dict[int, float], name: str = "x") -> Any:
    """A curve of gains 1, 2, 3 whose cost is the gain's plus what its seed has more."""
    return groups(
        {
            name: [
                record("a", {"g": g, "c": g + more}, seed, beta=g)
                for seed, more in costs.items()
                for g in (1.0, 2.0, 3.0)
            ]
        }
    )


@pytest.mark.parametrize(
    ("first", "less", "nowhere_more"),
    [
        ({0: -0.5, 1: -0.4}, True, True),
        ({0: -0.5, 1: 0.4}, None, None),  # the seeds differ by more than the curves
        ({0: 0.5, 1: 0.6}, False, False),
        ({0: 0.001, 1: -0.001}, False, None),  # no difference to speak of
    ],
)
def test_a_verdict_needs_more_than_chance_makes(
    first: dict[int, float], less: bool | None, nowhere_more: bool | None
) -> None:
    found = compare(line(first), line({0: 0.0, 1: 0.001}), "g", "c")
    assert found is not None
    assert found.error is not None
    assert (found.less, found.nowhere_more) == (less, nowhere_more)
    twin = math.sqrt(((first[0] - first[1]) ** 2 / 2 + 0.001**2 / 2) / 2)
    assert found.error == pytest.approx(twin)
    assert f"± {found.error:.3f}" in str(found)


def test_a_small_difference_that_is_there_is_called_small() -> None:
    small = compare(line({0: -0.02, 1: -0.0201}), line({0: 0.0, 1: 0.0001}), "g", "c")
    large = compare(line({0: -0.5, 1: -0.4}), line({0: 0.0, 1: 0.001}), "g", "c")
    assert small is not None
    assert large is not None
    assert (small.less, large.less) == (True, True)
    assert small.remark == " The difference is there, and smaller than 0.03."
    assert large.remark == ""


def test_records_count_where_seeds_agree() -> None:
    """Two seeds on the same 400 records agree on 0.5: the difference of such shares is still not known."""

    def curve(share: float) -> Any:
        values = {"g": 1.0, "success_with_labels": share, "n_judged": 400}
        return groups({"x": [record("a", values, seed) for seed in (0, 1)]})

    found = compare(curve(0.46), curve(0.5), "g", "success_with_labels")
    assert found is not None
    assert found.error == pytest.approx(math.sqrt((0.46 * 0.54 + 0.25) / 400))
    assert found.less is None
    clear = compare(curve(0.2), curve(0.5), "g", "success_with_labels")
    assert clear is not None
    assert clear.less is True


def test_levels_are_read_off_the_lines() -> None:
    table = levels_table({"x": line({0: 0.0, 1: 0.2})}, "g", "c", [0.5, 1.5, 2.0])
    assert table["g"] == [0.5, 1.5, 2.0]
    assert table["x"] == [None, pytest.approx(1.6), pytest.approx(2.1)]
    # What is large varies by more than what is small.
    share = (0.1 / 1.6) ** 2 / 2 + (0.1 / 2.1) ** 2 / 2
    assert table["x ±"] == [None, pytest.approx(0.1), pytest.approx(2.1 * share**0.5)]


def test_random_erasure_mixes_errors_and_bits() -> None:
    values = {
        "mse_fresh": 0.01,
        "mse_nothing": 0.09,
        "psnr_fresh": 20.0,
        "leakage": 2.0,
        "chance": 0.1,
        "clustering": 0.5,
        "success_with_labels": 0.9,
    }
    nothing, half, whole = erased([record("autoencoder", values)], [0.0, 0.5, 1.0])
    assert whole["values"]["psnr_fresh"] == pytest.approx(20.0)
    assert half["values"]["psnr_fresh"] == pytest.approx(-10 * math.log10(0.05))
    assert half["values"]["leakage"] == 1.0
    assert half["values"]["success_with_labels"] == pytest.approx(0.5)
    assert (nothing["values"]["leakage"], nothing["values"]["clustering"]) == (0.0, pytest.approx(0.1))
    assert [one["run"]["settings"]["share"] for one in (nothing, whole)] == [0.0, 1.0]


def test_time_sharing_finds_the_least_of_each_cost_between_two_runs_of_a_seed() -> None:
    def run(seed: int, mse: float, bits: float, success: float) -> dict[str, Any]:
        values = {"mse_fresh": mse, "psnr_fresh": -10 * math.log10(mse), "leakage": bits}
        return record("a", {**values, "leakage_low": bits - 0.1, "success_with_labels": success}, seed)

    level = -10 * math.log10(0.04)
    runs = [run(0, 0.05, 1.0, 0.3), run(0, 0.01, 3.0, 0.9), run(0, 0.03, 2.5, 0.4), run(1, 0.02, 1.0, 0.2)]
    (found,) = shared(runs, [level, 30.0])  # nothing lies beyond the best run, and seed 1 is alone
    values = found["values"]
    assert (found["run"]["seed"], values["psnr_fresh"]) == (0, level)
    # Bits: a quarter of the last beside the first; guesses: half of the middle one beside the first.
    assert values["leakage"] == pytest.approx(1.5)
    assert values["leakage_low"] == pytest.approx(1.4)
    assert values["success_with_labels"] == pytest.approx(0.35)


def test_curves_are_compared_along_their_undominated_lines() -> None:
    points = {1.0: 0.0, 2.0: 0.4, 2.5: 0.5, 3.0: 0.3, 4.0: 0.9}  # 2.0 and 2.5 cost more than 3.0
    (curve,) = [groups({"x": [record("a", {"g": g, "c": c}, beta=g) for g, c in points.items()]})]
    assert [group.mean("g") for group in undominated(curve, "g", "c")] == [1.0, 3.0, 4.0]
    # The same line with settings elsewhere on it is neither better nor worse.
    same = {1.0: 0.0, 1.5: 0.075, 3.0: 0.3, 3.5: 0.6}
    other = groups({"x": [record("b", {"g": g, "c": c}, beta=g) for g, c in same.items()]})
    found = compare(curve, other, "g", "c")
    assert found is not None
    assert [difference for _, difference in found.at] == pytest.approx([0.0] * 9, abs=1e-12)
    assert [found.at[0][0], found.at[-1][0]] == [1.0, 3.5]


def test_seeds_are_put_together() -> None:
    parts = [record("a", {"c": v}, seed, beta=1) for seed, v in enumerate((1.0, 2.0, 6.0))]
    (group,) = groups({"x": parts})
    assert group.mean("c") == 3.0
    assert group.deviation("c") == pytest.approx(math.sqrt(7))
    assert spread([1.0, 2.0, 6.0]) == "3 ± 2.6"
    assert spread([1.5]) == "1.5"


def test_claims_can_fail() -> None:
    """Sparse points that cover submodular and lie below it make the first claim hold; without them, not."""
    solved = pf.datasets.paper_joint()
    base = []
    for method in ("dca-ridge", "dca", "greedy", "splitting", "exact", "dca-sparse", "submodular"):
        values = {"utility": 0.5, "leakage": 0.1271, "lower_bound": 0.0, "status": "CONVERGED", "n_steps": 5}
        base.append(record(method, values, beta=0.2))
    proved = dict.fromkeys(known.UTILITIES, 0.0)

    def first(records: list[dict[str, Any]]) -> bool | None:
        return known.claims(records, known.frontiers(records), proved)[0].holds

    assert solved.entropy_x > 0.5
    assert first(base) is False
    better = {"utility": 0.5, "leakage": 0.1, "lower_bound": None, "status": "CONVERGED", "n_steps": 5}
    assert first([*base, record("dca-sparse", better, beta=0.3)]) is True
