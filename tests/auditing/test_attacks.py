"""Attacks are values: what they find does not depend on their order, nor on who else attacks."""

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing import boosted_trees, logistic_regression
from privacyfunnel.auditing.attacks import Look, View
from privacyfunnel.auditing.plan import Plan
from privacyfunnel.errors import InvalidInputError

N = 240
RNG = np.random.default_rng(4)
Y = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 3)) + Y[:, None]


class Noisy:
    def release(self, x, rng=None):
        return x + 2 * np.random.default_rng(rng).normal(size=x.shape)

    def inverse_transform(self, codes):
        return codes / 2


def run(**options):
    defaults = {
        "private": {"y": Y, "first": X[:, 0]},
        "many_draws": 4,
        "task": {"late": (X[:, 1] > 0).astype(int), "more": X[:, 2]},
        "keep": {"job": RNG.permutation(N) % 3},
        "adversaries": [
            logistic_regression(),
            "boosted trees",
            "KMeans",
            "ridge regression",
            "order of the rows",
        ],
        "n_jobs": 1,
        "progress": False,
    }
    return pf.audit(Noisy(), X, **(defaults | options))


def sorted_findings(report):
    return sorted(
        report.findings, key=lambda one: (one.quantity, one.attribute, one.on, one.source, one.kind)
    )


@pytest.mark.parametrize("what", ["views", "attacks", "kept"])
def test_their_order_changes_nothing_but_the_order(monkeypatch, what):
    original, keep = getattr(Plan, what), {"job": np.arange(N) % 5}
    expected = run(keep=keep)
    assert {one.on for one in expected.find("many-draws difference")} == {"Z × 4"}
    assert len(expected.find("many-draws difference", attribute="y")) == 2  # of each learner
    monkeypatch.setattr(Plan, what, lambda *arguments: original(*arguments)[::-1])
    turned = run(keep=keep)
    assert turned.findings != expected.findings  # the order of the report is that of the attacks
    assert sorted_findings(turned) == sorted_findings(expected)
    assert len(turned.tables) == len(expected.tables)


def test_reading_results_twice_finds_the_same(monkeypatch):
    seen = {}
    original = Plan.attacks

    def attacks(self, *arguments):
        seen["attacks"] = original(self, *arguments)
        return seen["attacks"]

    monkeypatch.setattr(Plan, "attacks", attacks)
    report = run(keep=None)
    results = {
        piece.key: piece.function(*piece.arguments) for one in seen["attacks"] for piece in one.pieces()
    }
    for one in seen["attacks"]:
        found = one.findings(results)[0]
        assert found == one.findings(results)[0]
        assert [part.value for part in found] == [
            part.value
            for finding in found
            for part in report.find(
                finding.quantity,
                attribute=finding.attribute,
                on=finding.on,
                source=finding.source,
                kind=finding.kind,
            )
        ]


def test_every_piece_has_a_key_of_its_own(monkeypatch):
    keys = []
    for what in ("attacks", "kept"):
        original = getattr(Plan, what)

        def noted(self, *arguments, original=original):
            attacks = original(self, *arguments)
            keys.extend(piece.key for one in attacks for piece in one.pieces())
            return attacks

        monkeypatch.setattr(Plan, what, noted)
    run()
    assert len(keys) == len(set(keys)) > 30


@pytest.mark.parametrize(
    ("view", "on"),
    [
        (View(Look.RELEASE, []), "Z"),
        (View(Look.DRAWS, [], n_draws=16), "Z × 16"),
        (View(Look.DRAWS, [], n_draws=1), "Z × 1"),
        (View(Look.RAW, []), "X"),
        (View(Look.RECONSTRUCTION, []), "X_hat"),
        (View(Look.ORDER, []), "order"),
        (View(Look.KEPT, [], columns=("age",)), "age"),
        (View(Look.KEPT, [], columns=("Z × 3",)), "column Z × 3"),
        (View(Look.KEPT, [], columns=("age", "job"), with_z=True), "Z + age + job"),
    ],
)
def test_views_are_called_as_in_files(view, on):
    assert view.on == on


def test_adversaries_may_be_named():
    codes, options = X + RNG.normal(size=X.shape), {"private": Y, "n_jobs": 1, "progress": False}
    named = pf.audit(Z=codes, adversaries=["boosted trees", "logistic regression"], **options)
    given = pf.audit(Z=codes, adversaries=[boosted_trees(0), logistic_regression()], **options)
    assert named.findings == given.findings
    with pytest.raises(
        InvalidInputError, match=r"no adversary 'oracle'; choose from logistic regression, .*UMAP"
    ):
        pf.audit(Z=codes, adversaries=["oracle"], **options)


def test_trees_by_name_are_those_for_so_many_classes():
    y = np.arange(N) % 40
    options = {"private": y, "adversaries": ["boosted trees"], "n_jobs": 1, "progress": False}
    many = pf.audit(Z=X[:, :1] + y[:, None], **options)
    assert many.meta["settings"]["adversaries"] == ["randomised trees"]
    options["adversaries"] = ["boosted trees", "randomised trees"]  # the same trees by two names
    both = pf.audit(Z=X[:, :1] + y[:, None], **options)
    assert both.findings == many.findings
    few = pf.audit(Z=X[:, :1] + y[:, None], **(options | {"private": y % 3}))
    assert few.meta["settings"]["adversaries"] == options["adversaries"]


def test_chosen_adversaries_are_all_that_is_fitted(monkeypatch):
    pieces = []
    original = Plan.attacks

    def attacks(self, *arguments):
        found = original(self, *arguments)
        pieces.extend(piece.text for one in found for piece in one.pieces())
        return found

    monkeypatch.setattr(Plan, "attacks", attacks)
    pf.audit(Z=X, private=Y, adversaries=["logistic regression"], n_jobs=1, progress=False)
    assert set(pieces) == {"logistic regression on Z", "worst-off region"}
