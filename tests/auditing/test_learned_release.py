"""The audit of a learned funnel, which it knows by its protocols alone."""

import numpy as np
import pytest

pytest.importorskip("torch")

import privacyfunnel as pf
from privacyfunnel.auditing import LocationScaleEncoder, nearest_neighbours
from privacyfunnel.datasets import load_digits
from privacyfunnel.errors import TrainingRecordsWarning
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


def test_an_audit_of_training_records_is_noticed(digits, tmp_path):
    X, y = digits
    X = X + np.random.default_rng(0).normal(scale=1e-3, size=X.shape).astype(np.float32)  # nobody twice
    funnel = Funnel(n_components=2, hidden=(8,), epochs=1, random_state=0).fit(X[:200], y[:200])
    funnel.save(tmp_path / "model")
    funnel.save(tmp_path / "encoder", part="encoder")
    options = {"adversaries": [nearest_neighbours()], "n_repeats": 1, "n_jobs": 1}
    order = np.random.default_rng(1).permutation(200)
    open_question = "Whether the mechanism was trained on these records: audit it on others."
    for mechanism in (funnel, pf.load(tmp_path / "model")):
        for rows, share in ((order[:60], 100), (np.arange(100, 300), 50)):
            sentence = f"The mechanism was trained on about {share} % of these records"
            with pytest.warns(TrainingRecordsWarning, match=sentence):
                report = pf.audit(mechanism, X[rows], y[rows], **options)
            assert any(line.startswith(sentence) for line in report.meta["audited"])
            assert open_question not in report.meta["not_audited"]
        report = pf.audit(mechanism, X[200:300], y[200:300], **options)  # a warning would be an error here
        assert not any("trained on" in line for line in report.meta["audited"])
        assert open_question not in report.meta["not_audited"]
    # The encoder that was handed on cannot tell, and nothing in its folder could.
    encoder = pf.load(tmp_path / "encoder")
    report = pf.audit(encoder, X[:60], y[:60], **options)
    assert open_question in report.meta["not_audited"]
    handed_on = b"".join(path.read_bytes() for path in (tmp_path / "encoder").iterdir())
    whole = (tmp_path / "model" / "manifest.json").read_bytes()
    for secret in (funnel.marks_.key.hex(), funnel.fingerprint_, *map(str, funnel.marks_.marks.tolist())):
        assert secret.encode() in whole
        assert secret.encode() not in handed_on
    assert b"marks" not in handed_on
    assert b"fingerprint" not in handed_on
