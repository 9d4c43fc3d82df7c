"""How hard adversaries try: samples of large tables, finite alphabets by counts, and the expected time."""

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing import CountingAdversary, attacks, inputs, logistic_regression, plan
from privacyfunnel.auditing.inputs import Table


def blobs(n):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return 2 * y[:, None] + rng.normal(size=(n, 2)), y


def test_adversaries_learn_from_so_many_records_and_the_report_says_so(monkeypatch):
    monkeypatch.setitem(inputs.EFFORTS, "default", 200)
    monkeypatch.setattr(plan, "MOST_EMBEDDED", 0)
    Z, y = blobs(900)
    report = pf.audit(Z=Z, private=y, X=Z, adversaries=[logistic_regression()], task={"t": y}, n_jobs=1)
    for one in report.find("success"):
        assert one.n_samples == 300
    assert "learnt from 200 other records" in report.find("leakage", kind="lower bound")[0].notes
    assert report.find("chance")[0].n_samples == 900
    whole = pf.audit(
        Z=Z, private=y, adversaries=[logistic_regression()], effort="thorough", n_jobs=1, n_repeats=1
    )
    assert {one.n_samples for one in whole.find("success")} == {900}
    tried = pf.audit(Z=Z, private=y, effort="default", n_jobs=1, n_repeats=1)
    assert any("600 of 900 records" in sentence for sentence in tried.meta["not_audited"])
    assert tried.meta["settings"]["effort"] == "default"


def test_a_class_that_the_sample_hardly_has_counts_as_told(monkeypatch):
    monkeypatch.setitem(inputs.EFFORTS, "quick", 40)
    Z, y = blobs(900)
    y = y.copy()
    y[:30] = 2  # some two of them are in a sample of sixty
    report = pf.audit(Z=Z, private=y, effort="quick", n_jobs=1)
    assert report.find("unmeasured success")[0].value == pytest.approx(30 / 900)


def test_quick_leaves_out_what_costs_most_and_says_so():
    report = pf.audit(Z=blobs(120)[0], private=blobs(120)[1], effort="quick", n_jobs=1)
    tried = set(report.meta["settings"]["adversaries"])
    assert tried == {"logistic regression", "boosted trees", "residues of the codes", "order of the rows"}
    assert any("left out by effort quick" in sentence for sentence in report.meta["not_audited"])


def test_an_embedding_of_a_large_table_is_left_to_thorough(monkeypatch):
    monkeypatch.setattr(plan, "MOST_EMBEDDED", 100)
    Z, y = blobs(150)
    report = pf.audit(Z=Z, private=y, n_jobs=1, n_repeats=1)
    assert "UMAP and KMeans" not in report.meta["settings"]["adversaries"]
    assert any("UMAP" in sentence for sentence in report.meta["not_audited"])


@pytest.mark.parametrize(
    "Z",
    [
        np.array(list("abc"))[np.arange(300) % 3],
        np.arange(300) % 3,
        np.column_stack([np.arange(300) % 3 == 0, np.arange(300) % 3 == 1]).astype(float),
    ],
    ids=["texts", "whole numbers", "rows of few values"],
)
def test_a_finite_alphabet_is_judged_by_counts_of_all_records(Z):
    rng = np.random.default_rng(1)
    truth = np.array([0.9, 0.5, 0.2])
    y = (rng.random(300) < truth[np.arange(300) % 3]).astype(int)
    report = pf.audit(Z=Z, private=y, n_jobs=1)
    assert set(report.meta["settings"]["adversaries"]) == {"counts of symbols", "order of the rows"}
    found = report.find("success", on="Z")[0]
    assert found.low <= (0.9 + 0.5 + 0.8) / 3 <= found.high
    exact = pf.entropy([truth.mean(), 1 - truth.mean()]) - np.mean([pf.entropy([p, 1 - p]) for p in truth])
    estimate = report.find("leakage", source="counts of symbols and classes")[0]
    assert estimate.low <= exact <= estimate.high
    assert report.find("leakage", source="counts of symbols")[0].value <= exact + 0.1


def test_counts_are_shares_among_the_other_folds():
    symbols, y = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    folds = np.array([0, 0, 0, 1, 1, 0])
    q = CountingAdversary().cross_predict(symbols[:, None].astype(float), y, folds, 2)
    prior = np.array([2.5, 2.5]) / 5  # two of each class in the first fold, half a record more of each
    np.testing.assert_allclose(q[3], (np.array([2, 1]) + prior) / 4)
    np.testing.assert_allclose(q.sum(axis=1), 1)


def test_what_seldom_comes_again_is_a_number():
    assert Table.of(np.arange(800), "Z").symbols is None
    assert Table.of(np.arange(800) % 20, "Z").symbols is not None
    assert Table.of(np.random.default_rng(0).normal(size=(5000, 2)), "Z").symbols is None
    signs = Table.of(np.where(np.arange(40) % 2, -0.0, 0.0), "Z").symbols
    assert len(np.unique(signs)) == 2  # told apart bit by bit


def test_long_work_says_how_long_before_it_begins(monkeypatch, capsys):
    Z, y = blobs(90)
    options = {"Z": Z, "private": y, "adversaries": [logistic_regression()], "n_jobs": 1}
    pf.audit(**options)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(plan, "LONG", 0.0)
    pf.audit(**options)
    assert capsys.readouterr().err.startswith("Auditing 90 records: about")
    pf.audit(**options, progress=False)
    assert capsys.readouterr().err == ""


def test_the_expected_time_is_shared_among_cores_and_at_least_the_longest():
    pieces = [attacks.Piece(i, print, (), cost) for i, cost in enumerate((30.0, 6.0, 4.0))]
    assert attacks.expected_seconds(pieces, 1) == 40
    assert attacks.expected_seconds(pieces, 2) == 30
    assert attacks.expected_seconds([], 2) == 0
    slow = [attacks.Piece(i, print, (), 5.0, setup=20.0) for i in range(4)]
    assert attacks.expected_seconds(slow, 2) == 30  # what is compiled once is waited for once
