"""Other measures than information, two private values: optima against grids, limits, and what bounds mean."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from grids import all_measures, grid, least_on_grid, limits, utilities
from proved import TOL, solve, within
from strategies import random_joint

import privacyfunnel as pf
from privacyfunnel.discrete.exact.reduction import reduce
from privacyfunnel.discrete.exact.release import within_lift
from privacyfunnel.discrete.exact.shares import ENTROPY, KINKED, price_shares
from privacyfunnel.discrete.exact.starting import matched_posteriors
from privacyfunnel.discrete.problem import Problem
from privacyfunnel.errors import InfeasibleError
from privacyfunnel.measures import Distance, Measures, Task, largest_lift

KINDS = ["dense", "zeros", "deterministic", "duplicated", "uniform", "zero-row"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_no_grid_beats_the_optimum_and_none_refutes_the_bound(kind, share):
    """Every utility × leakage × limit on lift; the grid has pairs and posteriors of any support."""
    rng = np.random.default_rng(KINDS.index(kind))
    joint = random_joint(rng, 4, 2, kind)
    here = joint.p_x > 0
    clean = pf.Joint(joint.p_xy[here] / joint.p_xy.sum())
    q = grid(clean, steps=60, random=500)
    for name, measures in all_measures(rng, 4, zeros=kind in ("zeros", "deterministic")):
        for target, value in limits(joint, measures, share).items():
            try:
                solution = solve(joint, measures, **{target: value})
            except InfeasibleError:
                assert measures.max_lift is not None
                assert target == "min_utility"
                continue
            within(solution)
            if here.all() and (joint.p_y > 0).all():
                least = least_on_grid(joint, measures, target, value, q)
                if least is not None:
                    assert solution.lower_bound <= least + 1e-8, (name, target)
                    assert solution.objective <= least + 1e-6, (name, target)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(60))
def test_more_joints_against_finer_grids(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    joint = random_joint(rng, n, 2, KINDS[seed % len(KINDS)])
    proper = (joint.p_x > 0).all() and (joint.p_y > 0).all()
    for name, measures in all_measures(rng, n, zeros=seed % 2 == 1):
        for target, value in limits(joint, measures, rng.choice([0.0, 0.1, 0.3, 0.6, 0.9])).items():
            try:
                solution = solve(joint, measures, **{target: value})
            except InfeasibleError:
                continue
            within(solution)
            least = least_on_grid(joint, measures, target, value) if proper else None
            if least is not None:
                assert solution.lower_bound <= least + 1e-8, (name, target)
                assert solution.objective <= least + 2e-6, (name, target)


@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.ConvergenceWarning")
def test_all_the_utility_there_is():
    """At the very end the curve may be vertical, so that rounding forbids the proof; bounds still hold."""
    rng = np.random.default_rng(36)
    joint = random_joint(rng, 4, 2, "zeros")
    for name, measures in all_measures(rng, 4, zeros=True, lifts=(None,)):
        most = measures.utility_of(joint.p_x, np.eye(4))
        solution = solve(joint, measures, min_utility=most)
        assert solution.utility >= most * (1 - 1e-9) - 1e-12, name
        assert solution.status in (pf.Status.OPTIMAL, pf.Status.NUMERICAL_LIMIT)
        assert solution.lower_bound <= solution.objective <= measures.leakage_of(joint.p_xy, np.eye(4)) + 1e-9


@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.ConvergenceWarning")
@pytest.mark.parametrize(("leakage", "n_y"), [("parity", 2), ("parity", 3), ("success", 3)])
def test_letters_of_next_to_no_probability(leakage, n_y):
    """One may be all there is of a private value: its row is still a distribution, and limits are kept."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        table = 10.0 ** -rng.uniform(20, 300, size=(4, n_y))
        table[rng.integers(4), rng.integers(n_y)] = 1.0
        joint = pf.Joint(table / table.sum())
        utility = Distance(rng.normal(size=(4, 2)))
        for target in ({"beta": 1.0}, {"max_leakage": 0.5 if leakage == "parity" else 1.0}):
            solution = pf.solve(joint, utility=utility, leakage=leakage, method="exact", rng=0, **target)
            assert np.allclose(solution.mechanism.p_z_given_x.sum(axis=1), 1.0), seed
            assert solution.lower_bound <= solution.objective + 1e-12
            assert "beta" in target or solution.leakage <= target["max_leakage"] + 1e-9


def test_the_grid_is_near_the_optimum():
    """So that the tests above could fail: a bound raised by a thousandth would be refuted."""
    rng = np.random.default_rng(3)
    joint = random_joint(rng, 4, 2)
    for name, measures in all_measures(rng, 4, lifts=(None,)):
        for target, value in limits(joint, measures, 0.5).items():
            least = least_on_grid(joint, measures, target, value)
            assert solve(joint, measures, **{target: value}).lower_bound > least - 2e-3, (name, target)


def test_information_with_a_limit_that_does_nothing_is_the_funnel():
    """Another code with the same numbers: to 1e-7, the tolerance of both."""
    for seed in range(4):
        joint = random_joint(np.random.default_rng(seed), 6, 2)
        for target in ({"beta": 0.2}, {"max_leakage": 0.02}, {"min_utility": 1.0}):
            plain = pf.solve(joint, tol=TOL, rng=0, n_jobs=1, **target)
            other = solve(joint, Measures(max_lift=60.0), **target)
            assert other.objective == pytest.approx(plain.objective, abs=2 * TOL)


def test_random_channels_never_beat_a_bound():
    rng = np.random.default_rng(0)
    joint = random_joint(rng, 5, 2)
    channels = [
        rng.dirichlet(np.full(k, a), size=5) for k in (2, 3, 6) for a in (0.1, 1.0) for _ in range(340)
    ]
    for name, measures in all_measures(rng, 5, lifts=(None, 0.6)):
        lines = pf.frontier(
            joint,
            utility=measures.utility,
            leakage=measures.leakage,
            max_lift=measures.max_lift,
            n_points=4,
            rng=0,
            n_jobs=1,
        ).support_lines
        allowed = 0
        for p in channels:
            if measures.max_lift is not None and largest_lift(joint.p_xy, p) > measures.max_lift:
                continue
            allowed += 1
            utility, leakage = measures.utility_of(joint.p_x, p), measures.leakage_of(joint.p_xy, p)
            for beta, value in lines:
                assert leakage >= value + beta * utility - 1e-12, name
        assert allowed > 50


@pytest.mark.parametrize("leakage", ["information", "success", "parity"])
def test_more_allowed_is_never_worse_and_a_limit_never_helps(leakage):
    rng = np.random.default_rng(5)
    joint = random_joint(rng, 5, 2)
    for utility in utilities(rng, 5).values():
        free = Measures(utility, leakage)
        least, top = free.without_release(joint.p_y), free.leakage_of(joint.p_xy, np.eye(5))
        kept = []
        for share in (0.0, 0.2, 0.6, 1.0, 2.0):
            target = {"max_leakage": least + share * (top - least)}
            one = solve(joint, free, **target)
            within(one)
            kept.append(one.utility)
            for lift in (0.0, 0.1, 0.5):
                limited = solve(joint, Measures(utility, leakage, lift), **target)
                within(limited)
                assert limited.utility <= one.utility + 1e-6
                assert limited.utility <= -one.lower_bound + 1e-9
        assert all(a <= b + 1e-6 for a, b in pairwise(kept))
        assert kept[-1] == pytest.approx(free.utility_of(joint.p_x, np.eye(5)))


def test_letters_and_private_values_may_be_renamed():
    rng = np.random.default_rng(9)
    joint = random_joint(rng, 5, 2, "zeros")
    order, swap = rng.permutation(5), [1, 0]
    for _, measures in all_measures(rng, 5, zeros=True, lifts=(None, 0.5)):
        utility = measures.utility
        if isinstance(utility, Distance):
            utility = Distance(utility.table[order], kind=utility.kind)
        elif isinstance(utility, Task):
            utility = Task(utility.p_t_given_x[order])
        renamed = pf.Joint(joint.p_xy[np.ix_(order, swap)])
        value = limits(joint, measures, 0.4)["max_leakage"]
        one = solve(joint, measures, max_leakage=value)
        two = solve(renamed, Measures(utility, measures.leakage, measures.max_lift), max_leakage=value)
        assert one.objective == pytest.approx(two.objective, abs=3e-7)


@pytest.mark.parametrize(
    "p_xy",
    [
        [[0.3, 0.7]],
        [[0.25], [0.75]],
        [[1.0]],
        [[0.2, 0.2], [0.3, 0.3]],
        [[0.5, 0.0], [0.0, 0.5]],
        [[0.3, 0.3], [0.2, 0.2 - 1e-16]],
        [[0.1, 0.4], [0.1, 0.4], [0.0, 0.0]],
        [[0.5, 0.0], [0.2, 0.0], [0.3, 0.0]],
    ],
)
def test_degenerate_joints(p_xy):
    joint = pf.Joint(p_xy)
    rng = np.random.default_rng(1)
    for zeros in (False, True):
        for _, measures in all_measures(rng, joint.n_x, zeros=zeros, lifts=(None, 0.0, 0.3)):
            for target, value in limits(joint, measures, 0.5).items():
                try:
                    solution = solve(joint, measures, **{target: value})
                except InfeasibleError:
                    assert measures.max_lift is not None
                    assert target == "min_utility"
                else:
                    within(solution)


def test_success_at_chance_is_not_perfect_privacy():
    """The best guess stays the same for every symbol, and still much may be told."""
    joint = pf.Joint([[0.1, 0.2], [0.05, 0.3], [0.15, 0.2]])
    points = Distance([0.0, 1.0, 3.0])
    held = solve(joint, Measures(points, "success"), max_leakage=joint.p_y.max())
    within(held)
    assert held.leakage == pytest.approx(joint.p_y.max(), abs=1e-15)
    assert held.utility == pytest.approx(Measures(points).utility_of(joint.p_x, np.eye(3)))
    private = pf.perfect_privacy(joint, utility=points)
    assert private.utility < 0.9 * held.utility
    for leakage in ("information", "parity"):
        none = solve(joint, Measures(points, leakage), max_leakage=0.0)
        assert none.utility == pytest.approx(private.utility, abs=1e-9)
        within(none)
    # With equal shares there is no room between the two.
    even = pf.Joint([[0.1, 0.3], [0.3, 0.1], [0.1, 0.1]])
    held = solve(even, Measures(points, "success"), max_leakage=0.5)
    assert held.utility == pytest.approx(pf.perfect_privacy(even, utility=points).utility, abs=1e-7)


def test_perfect_privacy_for_every_utility():
    rng = np.random.default_rng(2)
    for kind in ("dense", "zeros", "duplicated", "low-rank"):
        joint = random_joint(rng, 5, 3, kind)
        for name, utility in utilities(rng, 5, zeros=kind == "zeros").items():
            solution = pf.perfect_privacy(joint, utility=utility)
            assert solution.status is pf.Status.OPTIMAL, name
            assert solution.leakage <= 1e-9
            measures, p_y_given_x = (
                Measures(utility),
                joint.p_xy / np.where(joint.p_x > 0, joint.p_x, 1)[:, None],
            )
            # Directions that no private value sees: P(X) ± such a one is a release of two symbols.
            seen = np.linalg.svd(p_y_given_x.T)
            for direction in seen[2][(seen[1] > 1e-12).sum() :] if (joint.p_x > 0).all() else []:
                step = (joint.p_x / np.maximum(np.abs(direction), 1e-300)).min() * direction
                p = np.stack([joint.p_x + step, joint.p_x - step], axis=1) / (2 * joint.p_x[:, None])
                assert measures.utility_of(joint.p_x, p) <= -solution.lower_bound + 1e-9, name
            assert solution.utility <= measures.utility_of(joint.p_x, np.eye(5)) + 1e-9


def test_tiny_and_huge_units_of_distance():
    joint = random_joint(np.random.default_rng(4), 5, 2)
    points = np.random.default_rng(4).normal(size=(5, 2))
    shares = []
    for unit in (1e-9, 1.0, 1e9):
        measures = Measures(Distance(unit * points + 3 * unit))
        solution = solve(joint, measures, max_leakage=0.02)
        assert solution.status is pf.Status.OPTIMAL
        shares.append(solution.utility / measures.utility_of(joint.p_x, np.eye(5)))
        front = pf.frontier(joint, utility=measures.utility, n_points=5, rng=0, n_jobs=1)
        assert len(front.envelope()) >= 5
    assert shares == pytest.approx([shares[0]] * 3, abs=1e-7)


def test_pairs_against_a_fine_grid_of_shares():
    """What pricing returns: the bound is above every share of every pair, and not by much."""
    rng = np.random.default_rng(0)
    shares = np.linspace(0, 1, 401)
    for trial in range(60):
        n = 3
        joint = random_joint(rng, n, 2, KINDS[trial % 4])
        measures = [m for _, m in all_measures(rng, n, zeros=trial % 2 == 0)][trial % 29]
        reduction = reduce(Problem(joint, measures))
        if reduction.channel.shape[1] != 2 or reduction.n < 2:
            continue
        n, t = reduction.n, np.ascontiguousarray(reduction.channel[:, 1])
        rest = np.ascontiguousarray(reduction.channel[:, 0])
        prices, beta = rng.normal(size=n), float(rng.choice([0.0, 0.3, 1.0, 5.0]))
        letters = np.array(
            [[reduction.noise_of(reduction.channel[x]), reduction.loss_of(_on([x], [1.0]))] for x in range(n)]
        )
        found = np.full(n, -np.inf), np.zeros(n, dtype=np.intp), np.zeros(n)
        low, high = reduction.t_limits
        bound = price_shares(
            0,
            1,
            reduction.pair_kind,
            reduction.leakage_kind,
            t,
            rest,
            reduction.pair_table,
            letters[:, 0].copy(),
            letters[:, 1].copy(),
            prices,
            beta,
            *reduction.kink,
            low,
            high,
            -np.inf,
            1e-9,
            *found,
        )
        assert reduction.leakage_kind in (ENTROPY, KINKED)
        best = -np.inf
        for i in range(n):
            for j in range(i + 1, n):
                for s in shares[1:-1]:
                    at = (1 - s) * t[i] + s * t[j]
                    if low <= at <= high and t[j] > t[i]:
                        noise, lost = reduction.measure(_on([i, j], [1 - s, s]))
                        best = max(best, noise - beta * lost - (1 - s) * prices[i] - s * prices[j])
        single = np.where((t >= low) & (t <= high), letters[:, 0] - beta * letters[:, 1] - prices, -np.inf)
        assert max(bound, single.max() + 1e-12) >= best
        if np.isfinite(found[0].max()) and best > single.max() + 1e-6:
            assert found[0].max() >= best - 1e-9
            assert bound <= found[0].max() + 1e-8 + 5e-12 * (1 + beta)


def _on(letters, shares):
    from privacyfunnel.discrete.exact.reduction import Posterior

    return Posterior(np.array(letters), np.array(shares))


def test_a_task_with_a_value_that_neither_letter_has():
    """A shape test that multiplies by the probability of such a value would call the pair convex."""
    joint = pf.Joint([[0.3, 0.1], [0.1, 0.3], [0.1, 0.1]])
    for task in (np.eye(2)[[0, 0, 1]], np.eye(3)[[0, 0, 1]], np.eye(2)[[0, 0, 0]]):
        measures = Measures(Task(task))
        solution = solve(joint, measures, max_leakage=0.05)
        within(solution)
        assert solution.objective <= least_on_grid(joint, measures, "max_leakage", 0.05) + 1e-6


def test_matched_pairs_tell_nothing_and_mix_to_the_letters():
    rng = np.random.default_rng(6)
    joint = random_joint(rng, 8, 2)
    for utility in utilities(rng, 8).values():
        reduction = reduce(Problem(joint, Measures(utility, "success", 0.5)))
        low, high = reduction.t_limits
        middle = float(reduction.p @ reduction.channel[:, 1])
        places = [one.shares @ reduction.channel[one.letters, 1] for one in matched_posteriors(reduction)]
        assert places
        assert all(low - 1e-15 <= at <= high + 1e-15 for at in places)
        assert any(at == pytest.approx(middle, abs=1e-15) for at in places)


def test_a_frontier_in_other_measures(tmp_path):
    joint = random_joint(np.random.default_rng(7), 4, 2)
    points = Distance(np.random.default_rng(7).normal(size=(4, 2)))
    front = pf.frontier(joint, utility=points, leakage="success", n_points=8, rng=0, n_jobs=1)
    chance = joint.p_y.max()
    assert front.least_leakage == chance
    assert front.envelope()[0].leakage == chance
    assert front.leakage_at(0.0) == chance
    assert front.entropy_x == pytest.approx(Measures(points).utility_of(joint.p_x, np.eye(4)))
    at = 0.95 * front.max_utility
    proved, found = front.lower_bound_at(at) or chance, front.leakage_at(at)
    assert proved <= found + 1e-9
    one = solve(joint, Measures(points, "success"), min_utility=at)
    assert one.lower_bound - 1e-6 <= found
    assert proved <= one.objective + 1e-9
    with pytest.raises(InfeasibleError, match=r"success is 0.1, and without any release it is"):
        front.utility_at(0.1)
    front.save(tmp_path / "front.json")
    again = pf.load(tmp_path / "front.json")
    assert again.scale == front.scale
    assert again.leakage_at(at) == found
    front.to_csv(tmp_path / "front.csv")
    assert "utility_measure,leakage_measure" in (tmp_path / "front.csv").read_text()
    assert "distance against success" in repr(front)
    with pytest.raises(pf.errors.InvalidInputError, match="measured differently"):
        front.merge(pf.Frontier((), front.entropy_x, front.mutual_information))
    lifted = pf.frontier(joint, utility=points, max_lift=0.2, n_points=5, rng=0, n_jobs=1)
    assert lifted.entropy_x is None
    assert all(largest_lift(joint.p_xy, p.mechanism.p_z_given_x) <= 0.2 + 1e-9 for p in lifted.points)
    assert lifted.max_utility < front.max_utility


def test_a_proof_names_its_prices():
    joint = random_joint(np.random.default_rng(8), 4, 2)
    solution = solve(joint, Measures(Distance([0.0, 1.0, 2.0, 5.0])), max_leakage=0.02)
    proof = solution.proof
    assert proof.kind == "posteriors"
    assert proof.arrays["prices"].shape == (4,)
    assert repr(proof).startswith("Proof(posteriors: leakage ≥ ")
    line = proof.value + proof.beta * solution.utility * Problem(joint, solution.measures).utility_unit
    assert solution.leakage * np.log(2) >= line - 1e-12


#: One person has letter 0; programmes keep rows to a tolerance that is worth more than this person.
ALONE = np.array([[0, 0, 1], [0, 107, 20682], [0, 970, 396], [894, 263, 115]])


@pytest.mark.parametrize("limit", [0.01, 0.3, 1.0])
@pytest.mark.parametrize(
    "asked", [{"max_leakage": 1.0}, {"beta": 0.3}, {"max_leakage": 0.9, "population": 0.95}]
)
def test_nobody_who_is_alone_is_told_beyond_the_lift(limit: float, asked: dict[str, float]) -> None:
    utility = pf.Distance(np.arange(4.0)[:, None], kind="points")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no optimum is claimed
        found = pf.solve(
            pf.Joint.from_counts(ALONE), utility=utility, leakage="parity", max_lift=limit, rng=0, **asked
        )
    assert found.lift <= limit + 1e-8
    posterior = found.mechanism.p_y_given_z(found.joint)
    # With `population` its joint is of the records that were solved for, not of those that certify.
    assert np.abs(np.log2(posterior / found.joint.p_y)).max() <= limit + 1e-8


def test_every_point_of_a_frontier_keeps_the_lift() -> None:
    utility = pf.Distance(np.arange(4.0)[:, None], kind="points")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        front = pf.frontier(
            pf.Joint.from_counts(ALONE), n_points=9, utility=utility, leakage="parity", max_lift=0.3, rng=0
        )
    p_xy = ALONE / ALONE.sum()
    assert max(largest_lift(p_xy, point.mechanism.p_z_given_x) for point in front.points) <= 0.3 + 1e-8


def test_symbols_beyond_the_lift_are_merged_and_the_rest_is_kept() -> None:
    """A symbol of one person in a release that keeps its limit: the others keep what they had."""
    joint = pf.Joint(np.array([[1e-6, 0.0], [0.3, 0.2], [0.2, 0.3 - 1e-6]]))
    problem = Problem(joint, Measures.of(joint, "information", "parity", 0.5))
    outright = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    mended = within_lift(problem, outright)
    assert largest_lift(joint.p_xy, mended) <= 0.5 + 1e-8
    assert problem.evaluate(mended)[0] > 0.999 * problem.evaluate(np.eye(3)[[1, 1, 2]])[0]
    np.testing.assert_allclose(mended.sum(axis=1), 1)
    kept = np.eye(3)[[1, 1, 2]]
    assert within_lift(problem, kept) is kept


@pytest.mark.parametrize("utility", ["information", Distance([[0.0], [1.0], [3.0]], kind="points")])
@pytest.mark.parametrize(
    ("leakage", "asked"),
    [
        ("parity", {"max_leakage": 0.0}),
        ("parity", {"beta": 0.5, "max_lift": 0.0}),
        ("success", {"max_leakage": 1.0, "max_lift": 0.0}),
        ("information", {"beta": 0.5, "max_lift": 0.0}),
    ],
)
@pytest.mark.parametrize("rare", [1e-17, 1e-101, 1e-301])
def test_limits_hold_for_a_private_value_that_next_to_nobody_has(utility, leakage, asked, rare):
    """Posteriors that tell nothing are known to rounding: of such a value they could tell nearly all."""
    p_xy = np.array([[0.27, 3.8], [0.32, 2.4], [0.41, 2.2]]) * [1.0, rare]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no optimum is claimed
        found = pf.solve(pf.Joint(p_xy), utility=utility, leakage=leakage, rng=0, **asked)
    assert found.lift <= asked.get("max_lift", np.inf) + 1e-8
    assert found.leakage <= asked.get("max_leakage", np.inf) + 1e-11
    if "max_lift" in asked:  # in words of its own: what a symbol says of a value beside its share
        p_yz = found.joint.p_xy.T @ found.mechanism.p_z_given_x
        factors = p_yz / p_yz.sum(axis=0) / found.joint.p_y[:, None]
        np.testing.assert_allclose(factors, 1.0, atol=1e-7)
