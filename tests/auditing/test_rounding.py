"""What is published cannot be counted back, stays on the careful side, and names no rare class."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacyfunnel as pf
from privacyfunnel.auditing import AuditReport, ClassTable, Finding, logistic_regression
from privacyfunnel.auditing.findings import ENTROPY, wilson_interval
from privacyfunnel.auditing.published import RARE, in_steps, published, size_step, step_for

#: Records lie sorted here, which an audit warns of.
pytestmark = pytest.mark.filterwarnings("ignore:neighbours among the records")


@given(st.integers(1, 10**7), st.integers(1, 10))
def test_a_step_is_worth_its_records_and_no_smaller_one_is(n, records):
    step = step_for(n, records)
    every = [factor * 10.0**power for power in range(-6, 0) for factor in (1, 2, 5)]
    slow = min((one for one in every if one * n >= records * (1 - 1e-9)), default=0.2)
    assert step == pytest.approx(min(slow, 0.2))


@given(st.floats(-1, 1), st.sampled_from([0.001, 0.02, 0.05]))
def test_steps_go_where_they_are_told(value, step):
    below, near, above = (float(in_steps(value, step, to)) for to in ("below", "nearest", "above"))
    assert below - 1e-7 <= value <= above + 1e-7
    assert abs(near - value) <= step / 2 + 1e-7
    for one in (below, near, above):
        assert one / step == pytest.approx(round(one / step), abs=1e-6)
        assert in_steps(one, step, "below") == in_steps(one, step, "above") == one


@given(
    st.sampled_from(["lower bound", "upper bound", "estimate"]),
    st.sampled_from(["success", "chance", "leakage"]),
    st.floats(0, 1),
    st.floats(0, 0.2),
    st.integers(1, 10**6),
)
def test_bounds_and_ends_move_to_the_careful_side(kind, quantity, value, width, n):
    unit = "bits" if quantity == "leakage" else "share"
    interval = (max(value - width, 0.0), min(value + width, 1.0))
    source = ENTROPY if kind == "upper bound" else "net"
    exact = Finding(quantity, value, kind, unit, source, interval=interval, n_samples=n)
    (shown,) = published([exact])
    assert shown.low <= exact.low + 1e-7
    assert shown.high >= exact.high - 1e-7
    if quantity != "chance" and kind != "estimate":
        assert (shown.value <= value + 1e-7) if kind == "lower bound" else (shown.value >= value - 1e-7)
    assert shown.high <= 1


@pytest.mark.parametrize("n", [100, 300, 800, 5000, 32_561])
def test_no_class_can_be_counted_in_what_follows_from_sizes(n):
    """What is published belongs to several counts of the larger class, all of it together."""

    def shown(count):
        share = count / n
        entropy = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
        low, high = (float(end) for end in wilson_interval(count, n, 0.95))
        findings = [
            Finding("chance", share, "estimate", "share", "class", "", interval=(low, high), n_samples=n),
            Finding(
                "leakage",
                entropy,
                "upper bound",
                "bits",
                ENTROPY,
                interval=(entropy - 0.02, min(entropy + 0.02, 1)),
                n_samples=n,
            ),
        ]
        for i, success in enumerate((0.81234, 0.85678, 0.91357, 0.77777)):
            more = {"source": f"adversary {i}", "n_samples": n}
            ends = (success - 0.03, success + 0.03)
            findings.append(Finding("success", success, "lower bound", "share", interval=ends, **more))
            ends = (ends[0] - share, ends[1] - share)
            findings.append(
                Finding("advantage", success - share, "lower bound", "share", interval=ends, **more)
            )
        return tuple((one.value, one.interval) for one in AuditReport(tuple(findings)).published().findings)

    together = [shown(count) for count in range(int(0.6 * n), int(0.8 * n))]
    assert len(together) / len(set(together)) > 2
    assert len({one[0] for one in together}) > 1  # it still says something


def test_an_advantage_is_the_difference_of_what_stands_beside_it():
    chance = Finding("chance", 0.5, "estimate", "share", "class", "", interval=(0.45, 0.55), n_samples=800)
    success = Finding("success", 0.7004, "lower bound", "share", "net", interval=(0.65, 0.75), n_samples=800)
    gain = Finding("advantage", 0.2004, "lower bound", "share", "net", interval=(0.15, 0.25), n_samples=800)
    shown = published([chance, success, gain])[2]
    assert shown.value == pytest.approx(0.2)
    assert shown.low <= 0.15
    assert shown.high >= 0.25


def test_what_is_of_no_records_or_unbounded_stays():
    exact = Finding("leakage", 1 / 3, "exact", "bits", "all")
    assert published([exact]) == (exact,)
    perfect = Finding(
        "psnr", math.inf, "estimate", "dB", "x", "X_hat", interval=(20.0, math.inf), n_samples=9
    )
    assert published([perfect])[0].interval == (20.0, math.inf)
    (error,) = published([Finding("mse", 0.0123456, "estimate", "", "x", n_samples=9)])
    assert error.value == 0.01235


def test_the_verdict_is_about_what_is_published():
    high = Finding("success", 0.5, "lower bound", "share", "net", interval=(0.4, 0.5999), n_samples=800)
    report = AuditReport((high,))
    assert report.gate(max_success=0.6)[0].value == 0.6
    assert not report.gate(max_success=0.59995)[0].passed
    again = AuditReport.from_dict(report.to_dict())
    assert again.gate(max_success=0.6) == report.gate(max_success=0.6)
    assert again.to_json() == report.to_json()


def table(counts, classes=None):
    confusion = np.array(counts)
    return ClassTable.of_counts(
        "net", "Z", "illness", classes or tuple("abcdefgh"[: len(confusion)]), confusion
    )


def test_rare_classes_stand_together():
    shown = table([[40, 5, 3, 2], [4, 40, 3, 3], [1, 2, 4, 0], [0, 3, 0, 5]])
    assert shown.classes == ("a", "b", RARE)
    # 15 records, in steps worth two of them: 3 + 2 taken for a and b … of 15, 9 for another rare one.
    np.testing.assert_allclose(shown.guessed[2], [0.0, 0.4, 0.6])
    assert shown.success.shape == shown.sizes.shape == (3,)


def test_of_rare_classes_that_are_few_together_nothing_is_told():
    shown = table([[40, 5, 3], [4, 40, 3], [1, 2, 4]])
    assert shown.classes == ("a", "b")
    assert RARE not in str(shown.to_dict())
    assert table([[3, 1], [1, 4]]).classes == ()
    assert ClassTable.from_dict(table([[3, 1], [1, 4]]).to_dict()).classes == ()


def test_one_person_more_or_fewer_does_not_show_in_a_row():
    """Every value of a cell belongs to several counts of people."""
    for size in (10, 30, 100, 1000):
        shown = [float(table([[size - k, k], [0, 5000]]).guessed[0, 1]) for k in range(size + 1)]
        groups = [shown.count(value) for value in dict.fromkeys(shown)]
        assert min(groups[1:-1]) >= 2, size


def test_shares_are_near_the_counts_and_intervals_hold_them():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(2000, np.full(9, 1 / 9)).reshape(3, 3)
    shown = table(counts)
    sizes = counts.sum(axis=1)
    np.testing.assert_allclose(shown.guessed, counts / sizes[:, None], atol=0.0051)
    np.testing.assert_allclose(shown.sizes, sizes / 2000, atol=size_step(2000) / 2 + 1e-9)
    wrong = (counts.sum(axis=0) - np.diag(counts)) / (2000 - sizes)
    np.testing.assert_allclose(shown.false_guesses, wrong, atol=0.0051)
    # Near chance as rough as the sizes of classes, elsewhere not.
    assert shown.right == pytest.approx(np.trace(counts) / 2000, abs=size_step(2000) / 2 + 1e-9)
    found = counts + np.diag([300, 200, 100])
    assert table(found).right == pytest.approx(np.trace(found) / found.sum(), abs=5.1e-4)
    assert (shown.intervals[:, 0] <= np.diag(counts) / sizes).all()
    assert (shown.intervals[:, 1] >= np.diag(counts) / sizes).all()


@pytest.fixture(scope="module")
def clinic():
    """400 people, 3 of whom have an illness that their codes tell outright, 6 another."""
    rng = np.random.default_rng(1)
    y = np.array(["none"] * 391 + ["plague"] * 3 + ["gout"] * 6)
    Z = rng.normal(size=(400, 2)) + 30 * (y == "plague")[:, None] - 30 * (y == "gout")[:, None]
    return pf.audit(Z=Z, private={"illness": y}, adversaries=[logistic_regression()], n_jobs=1)


def test_no_file_names_a_rare_class(clinic, tmp_path):
    clinic.save(tmp_path / "audit.json")
    clinic.save(tmp_path / "audit.html")
    pf.report.save_card(clinic, tmp_path / "card.md")
    assert clinic.table("logistic regression").classes == ("none",)
    assert clinic.meta["attributes"][0]["n_rare"] == 2
    for one in tmp_path.iterdir():
        text = one.read_text(encoding="utf-8")
        assert "none" in text or one.suffix != ".json"
        for name in ("plague", "gout", "391", "3 records", "6 records"):
            assert name not in (text if name != "391" or one.suffix != ".html" else ""), (name, one.name)


def test_edges_of_numbers_have_no_more_digits_than_they_need():
    rng = np.random.default_rng(2)
    income = rng.lognormal(10, 1, 300)
    report = pf.audit(
        Z=rng.normal(size=(300, 2)), private={"income": income}, adversaries=[logistic_regression()], n_jobs=1
    )
    (described,) = report.meta["attributes"]
    edges = {end for one in described["classes"] for end in one.split(" … ")} - {"−∞", "∞"}
    assert len(edges) == 7
    for edge in edges:
        assert len(edge.partition("e")[0].replace(".", "")) <= 2
    close = pf.audit(
        Z=rng.normal(size=(160, 2)),
        private={"income": 1000 + np.arange(160) / 1000},
        adversaries=[logistic_regression()],
        n_jobs=1,
    )
    assert len(set(close.meta["attributes"][0]["classes"])) == 8


@pytest.mark.parametrize("n", [300, 500, 950])
def test_who_always_names_the_largest_class_does_not_tell_its_size(n):
    """A release that tells nothing is the usual case; its report belongs to several counts of the class."""

    def shown(count):
        y = np.zeros(n, dtype=int)
        y[:count] = 1
        y = np.random.default_rng(0).permutation(y)
        report = pf.audit(
            Z=np.random.default_rng(1).normal(size=(n, 1)),
            private=y,
            adversaries=[Constant()],
            n_jobs=1,
        )
        told = [one for one in report.published().findings if one.source == Constant.name]
        (right,) = {one.right for one in report.tables if one.source == Constant.name}
        assert {"success", "lift"} <= {one.quantity for one in told}
        return right, *((one.quantity, one.value, one.interval) for one in told)

    first = int(0.6 * n)
    together = [shown(count) for count in range(first, first + 20)]
    assert len(together) / len(set(together)) > 2.5


class Constant:
    """Names the class that most have, whatever it sees."""

    name = "constant"
    threat_model = "Knows which class is the largest."

    def fit(self, Z, y):
        self.shares = np.bincount(y, minlength=2) / len(y)

    def predict_proba(self, Z):
        return np.tile(self.shares, (len(Z), 1))
