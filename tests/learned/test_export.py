import sys

import numpy as np
import pytest
import torch

import privacyfunnel as pf
from privacyfunnel.errors import DataFileError, InvalidInputError, MissingDependencyError
from privacyfunnel.learned import ConditionalFunnel, Funnel
from privacyfunnel.learned.export import export_onnx

TINY = {"n_components": 3, "hidden": (16, 8), "epochs": 1, "random_state": 4}


@pytest.fixture
def onnxruntime():
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    return pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(
    "model",
    [
        Funnel(likelihood="bernoulli", **TINY),
        Funnel(scale="columns", **TINY),
        Funnel(architecture="conv", **TINY),
        ConditionalFunnel(**TINY),
    ],
    ids=["mlp", "scaled", "conv", "conditional"],
)
def test_onnx_computes_what_torch_computes(model, digits, onnxruntime, tmp_path):
    x, y, x_new, y_new = digits
    model.fit(x[:200], y[:200])
    encoder, decoder = (
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        for path in export_onnx(model, tmp_path / "onnx")
    )
    for n in (1, 5, 400):
        loc, scale = encoder.run(["loc", "scale"], {"x": x_new[:n]})
        expected_loc, expected_log_scale = model.encode(x_new[:n])
        np.testing.assert_allclose(loc, expected_loc, atol=1e-5)
        np.testing.assert_allclose(scale, np.exp(expected_log_scale), rtol=1e-4)
        inputs, private = {"z": loc}, {}
        if model.decoder_needs_private:
            inputs["private"] = np.eye(10, dtype=np.float32)[y_new[:n]]
            private = {"private": y_new[:n]}
        (x_hat,) = decoder.run(["x_hat"], inputs)
        np.testing.assert_allclose(x_hat, model.inverse_transform(loc, **private), atol=1e-5)
    assert all(not p.is_meta and p.dtype == torch.float32 for p in model.modules_.parameters())


def test_an_encoder_to_hand_on_holds_nothing_else(digits, onnxruntime, tmp_path):
    import onnx

    x, y, _, _ = digits
    labels = np.where(y[:200] % 2, "unmistakable", "inconfondibile")
    model = Funnel(**TINY).fit(x[:200], labels)
    model.save(tmp_path / "encoder", part="encoder")
    for number, (one, options) in enumerate(
        [(model, {"part": "encoder"}), (pf.load(tmp_path / "encoder"), {})]
    ):
        folder = tmp_path / str(number)
        (path,) = export_onnx(one, folder, **options)
        assert [file.name for file in folder.iterdir()] == ["encoder.onnx"]
        data = path.read_bytes()
        for secret in ("unmistakable", "inconfondibile", "classifier", "decoder", "learned", "site-packages"):
            assert secret.encode() not in data, secret
        sizes = {tuple(tensor.dims) for tensor in onnx.load(path).graph.initializer}
        shapes = {tuple(p.shape) for p in model.modules_["encoder"].parameters()} | {(64,)}
        assert {tuple(sorted(size)) for size in sizes} <= {tuple(sorted(shape)) for shape in shapes} | {
            (),
            (1,),
        }
    with pytest.raises(InvalidInputError, match="part must be"):
        export_onnx(model, tmp_path, part="classifier")


def test_without_onnx_the_extra_is_named(digits, monkeypatch, tmp_path):
    x, y, _, _ = digits
    model = Funnel(**TINY).fit(x[:200], y[:200])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'privacyfunnel\[onnx\]'"):
        export_onnx(model, tmp_path)


def test_a_file_in_the_way(digits, onnxruntime, tmp_path):
    x, y, _, _ = digits
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataFileError, match="choose another name"):
        export_onnx(Funnel(**TINY).fit(x[:200], y[:200]), tmp_path / "file")
