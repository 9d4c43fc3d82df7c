"""The audit of a learned funnel, which it knows by its protocols alone."""

import numpy as np
import pytest

pytest.importorskip("torch")

import privacyfunnel as pf
from privacyfunnel.audit import LocationScaleEncoder, nearest_neighbours
from privacyfunnel.datasets import load_digits
from privacyfunnel.learned import ConditionalFunnel, Funnel


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return data.x_train.reshape(-1, 8, 8).astype(np.float32), data.y_train


def test_a_fitted_funnel_is_audited_whole(digits):
    X, y = digits
    funnel = Funnel(n_components=4, hidden=(16,), epochs=1, random_state=0).fit(X[:200], y[:200])
    assert isinstance(funnel, LocationScaleEncoder)
    options = {"adversaries": [nearest_neighbours()], "n_repeats": 2, "n_jobs": 1}
    report = pf.audit(funnel, X[200:400], y[200:400], **options)
    assert report.findings == pf.audit(funnel, X[200:400], y[200:400], **options).findings
    kinds = {one.kind for one in report.find("utility")}
    assert {"lower bound", "upper bound"} <= kinds
    for quantity in ("mse", "psnr", "ssim", "success", "leakage"):
        assert report.find(quantity)
    assert report.find("success", on="X_hat")
    assert report.meta["name"] == "Funnel"
    error = ((funnel.inverse_transform(funnel.transform(X[200:400])) - X[200:400]) ** 2).mean()
    assert report.find("mse")[0].value == pytest.approx(error, rel=0.2)


def test_a_decoder_that_needs_the_private_attribute_is_not_used(digits):
    X, y = digits
    funnel = ConditionalFunnel(n_components=4, hidden=(16,), epochs=1, random_state=0).fit(X[:100], y[:100])
    report = pf.audit(funnel, X[200:300], y[200:300], adversaries=[nearest_neighbours()], n_jobs=1)
    assert not report.find("mse")
    assert any("Reconstruction" in sentence for sentence in report.meta["not_audited"])
