"""report.summary(): one flat row, whose numbers are those of the findings."""

import json

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing import (
    AuditReport,
    ClusteringAdversary,
    Finding,
    boosted_trees,
    logistic_regression,
)

N = 400
RNG = np.random.default_rng(3)
SEX = RNG.integers(2, size=N)
RECORDS = RNG.normal(size=(N, 4)) + SEX[:, None]
AGE = 40 + 9 * RECORDS[:, 0] + RNG.normal(size=N)
CODES = RECORDS + RNG.normal(size=RECORDS.shape)
LEARNERS = (logistic_regression(), boosted_trees(0), ClusteringAdversary(False))


@pytest.fixture(scope="module")
def report():
    return pf.audit(
        Z=CODES,
        X=RECORDS,
        X_hat=CODES / 2,
        private={"sex": SEX},
        task={"late": (AGE > 40).astype(int)},
        adversaries=LEARNERS,
        progress=False,
    )


def find(report, quantity, **fields):
    (found,) = report.find(quantity, **fields)
    return found


def test_its_numbers_are_those_of_the_findings(report):
    row = report.summary()
    best = max((one for one in report.find("success") if one.on not in ("X", "")), key=lambda one: one.value)
    assert (row["success"], row["success_low"], row["success_high"]) == (best.value, *best.interval)
    assert (row["strongest"], row["strongest_on"], row["success_kind"]) == (
        best.source,
        best.on,
        "lower bound",
    )
    assert row["chance"] == find(report, "chance").value
    lower = [one for one in report.find("leakage", kind="lower bound") if one.on in ("Z", "X_hat")]
    assert row["leakage"] == max(one.value for one in lower) > 0
    assert row["leakage_most"] == find(report, "leakage", kind="upper bound").value
    for name in ("logistic regression", "boosted trees"):
        key = name.replace(" ", "_")
        assert row[f"success_{key}"] == find(report, "success", on="Z", source=name).value
        assert row[f"leakage_{key}"] == find(report, "leakage", on="Z", source=name).value
    assert row["clustering"] == row["clustering_KMeans"] == find(report, "matched success", on="Z").value
    assert row["success_KMeans"] == find(report, "success", on="Z", source="KMeans").value
    learners = [one.value for one in report.find("success") if one.on != "X" and one.source != "KMeans"]
    assert row["success_with_labels"] == max(learners)
    assert row["mse"] == find(report, "mse").value
    assert row["psnr_low"] == find(report, "psnr").low
    assert row["task_accuracy"] == find(report, "task accuracy", on="Z").value
    assert row["raw_task_accuracy"] == find(report, "task accuracy", on="X").value
    assert row["task_auc"] == find(report, "task auc", on="Z").value
    assert row["raw_task_auc"] == find(report, "task auc", on="X").value > 0.5
    assert row["lift"] == max(one.value for one in report.find("lift"))
    assert row["smallest_group"] == min(one.value for one in report.find("group size"))
    assert (row["n_records"], row["attribute"], row["confidence"]) == (N, "sex", 0.95)
    assert row["ssim"] is row["utility"] is row["explained_variance"] is None


def test_it_is_flat_json_with_the_same_keys_for_the_same_adversaries(report):
    row = report.summary()
    assert all(value is None or type(value) in (str, float, int, bool) for value in row.values())
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    other = pf.audit(Z=CODES, private=SEX, adversaries=LEARNERS, progress=False, n_repeats=1)
    own = {"success_decoder-aware_network", "leakage_decoder-aware_network"}
    tasks = {key for key in row if "task" in key}
    assert set(other.summary()) == set(row) - own - tasks


def test_rounded_numbers_are_on_request(report):
    exact, rounded = report.summary(), report.published().summary()
    assert (exact["published"], rounded["published"]) == (False, True)
    assert rounded["leakage"] <= exact["leakage"] <= rounded["leakage"] + 0.001
    assert rounded["leakage"] != exact["leakage"]


def test_several_attributes_and_tasks_have_keys_of_their_own():
    both = pf.audit(
        Z=CODES,
        X=RECORDS,
        private={"sex": SEX, "age": AGE},
        task={"first": SEX, "second": AGE},
        effort="quick",
        progress=False,
    )
    row = both.summary()
    assert row["attribute"] == "sex, age"
    assert row["age: explained_variance"] == max(
        one.value for one in both.find("explained variance", attribute="age") if one.on != "X"
    )
    assert row["age: raw_explained_variance"] > row["age: explained_variance"]
    assert row["sex: explained_variance"] is None
    assert row["sex: success"] > row["sex: chance"] > row["age: chance"]
    assert row["first: task_accuracy"] < row["first: raw_task_accuracy"]
    assert row["second: task_explained_variance"] < row["second: raw_task_explained_variance"]
    assert "success" not in row


def test_an_exact_value_comes_before_every_bound():
    joint = pf.Joint([[0.4, 0.1], [0.1, 0.4]])
    row = pf.audit(pf.TableMechanism.identity(joint), joint).summary()
    assert (row["leakage"], row["leakage_kind"]) == (pytest.approx(joint.mutual_information), "exact")
    assert (row["success"], row["chance"], row["success_kind"]) == (
        pytest.approx(0.8),
        pytest.approx(0.5),
        "exact",
    )
    assert row["utility"] == pytest.approx(1.0)
    assert (row["n_records"], row["confidence"]) == (None, None)


def test_what_is_infinite_or_missing_is_none():
    psnr = Finding("psnr", np.inf, "estimate", "dB", "reconstruction", "X_hat", "", (20.0, np.inf))
    row = AuditReport((psnr,)).summary()
    assert (row["psnr"], row["psnr_low"], row["psnr_high"]) == (None, 20.0, None)
    assert row["attribute"] is row["name"] is row["seconds"] is None
