"""What is handed on to whoever releases: the encoder, and nothing that tells of the private attribute."""

import json
import struct

import numpy as np
import pytest
import torch

import privacyfunnel as pf
from privacyfunnel.auditing import logistic_regression
from privacyfunnel.errors import DataFileError, InvalidInputError
from privacyfunnel.learned import ConditionalFunnel, Funnel, FunnelEncoder

TINY = {"n_components": 3, "hidden": (16,), "epochs": 2, "random_state": 918_273_645}
LABELS = {0: "unmistakable", 1: "inconfondibile"}


@pytest.fixture(scope="module")
def records():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(210, 4)), columns=["a", "b", "c", "d"])
    private = pandas.Series([LABELS[int(i < 137)] for i in range(210)], name="condition")
    return frame, private


@pytest.fixture(scope="module")
def model(records):
    torch.set_num_threads(1)
    return Funnel(**TINY).fit(*records)


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "encoder", part="encoder")
    return tmp_path / "encoder"


def tensors_of(data):
    """The header of a safetensors file, read by hand: metadata and names."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    return header.pop("__metadata__"), set(header)


def leaves(value):
    """Every number and text of a JSON document."""
    if isinstance(value, dict):
        return [leaf for key, part in value.items() for leaf in (key, *leaves(part))]
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, list) else [value]


def test_the_folder_holds_what_releasing_needs_and_nothing_else(model, folder):
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert len(files) == 2
    document = json.loads(files.pop("manifest.json"))
    assert set(document) == {"format", "kind", "version", "payload"}
    assert set(document["payload"]) == {
        *("about", "class", "settings", "code_names", "n_features_in", "feature_names_in", "record_shape"),
        *("weights", "versions", "checksum"),
    }
    assert set(document["payload"]["settings"]) == {"n_components", "hidden", "architecture", "latent"}
    (name, data), *_ = files.items()
    metadata, names = tensors_of(data)
    assert metadata == {"format": "privacyfunnel", "kind": "learned-encoder"}
    own = {n for n in model.modules_.state_dict() if n.startswith("encoder.")}
    assert names == own | {"scaling.shift", "scaling.width"}
    assert name.startswith("weights-")


def test_no_file_tells_of_the_private_attribute(model, folder):
    whole = b"".join(file.read_bytes() for file in folder.iterdir())
    (column,) = model.private_.columns
    for secret in (*LABELS.values(), "condition", model.fingerprint_, str(model.seed_), "entropy", "history"):
        assert secret.encode() not in whole, secret
    found = leaves(json.loads((folder / "manifest.json").read_bytes()))
    numbers = [value for value in found if isinstance(value, (int, float))]
    for secret in (137, 73, 210, column.entropy, column.entropy / np.log(2), model.seed_):
        assert not np.isclose(np.array(numbers, dtype=float), float(secret), rtol=1e-9).any(), secret
    # The test can fail: the owner's folder has all of it.
    owner = folder.with_name("owner")
    model.save(owner)
    text = (owner / "manifest.json").read_text()
    for secret in (*LABELS.values(), model.fingerprint_, str(model.seed_), "137"):
        assert secret in text, secret
    assert "for its owner alone" in text


@pytest.mark.filterwarnings("ignore:neighbours among the records")
def test_it_releases_what_the_whole_model_releases(model, records, folder):
    frame, _ = records
    encoder = pf.load(folder)
    assert isinstance(encoder, FunnelEncoder)
    for one, two in zip(encoder.encode(frame), model.encode(frame), strict=True):
        np.testing.assert_array_equal(one, two)
    encoder.set_params(release_state=3)
    codes = encoder.transform(frame)
    assert codes.dtype == np.float32
    np.testing.assert_array_equal(codes, model.set_params(release_state=3).transform(frame))
    model.set_params(release_state=None)
    assert list(encoder.get_feature_names_out()) == list(model.get_feature_names_out())
    assert list(encoder.set_output(transform="pandas").transform(frame).columns) == [
        f"funnel{j}" for j in range(3)
    ]
    report = pf.audit(
        encoder.set_output(transform="default"),
        frame,
        records[1],
        adversaries=[logistic_regression()],
        n_jobs=1,
    )
    assert report.find("success")
    assert not report.find("mse")


@pytest.mark.parametrize("call", ["fit", "partial_fit", "inverse_transform", "fit_transform"])
def test_it_can_do_nothing_else(call, records, folder):
    encoder = pf.load(folder)
    arguments = (np.ones((2, 3)),) if call == "inverse_transform" else records
    with pytest.raises(InvalidInputError, match="this is the encoder alone"):
        getattr(encoder, call)(*arguments)


def test_it_can_be_handed_on_again(records, folder):
    again = folder.with_name("again")
    pf.load(folder).save(again)
    for one, two in zip(pf.load(again).encode(records[0]), pf.load(folder).encode(records[0]), strict=True):
        np.testing.assert_array_equal(one, two)
    contents = [json.loads((one / "manifest.json").read_bytes())["payload"] for one in (folder, again)]
    for content in contents:
        del content["checksum"], content["weights"]["sha256"]
    assert contents[0] == contents[1]


@pytest.mark.parametrize("kind", [ConditionalFunnel, Funnel])
def test_images_and_other_estimators(kind, digits, tmp_path):
    x, y, x_new, _ = digits
    model = kind(**TINY, latent="laplace").fit(x[:200].reshape(-1, 8, 8), y[:200])
    model.save(tmp_path / "encoder", part="encoder")
    encoder = pf.load(tmp_path / "encoder").set_params(release_state=1)
    np.testing.assert_array_equal(
        encoder.transform(x_new.reshape(-1, 8, 8)), model.set_params(release_state=1).transform(x_new)
    )


def test_a_folder_with_anything_else_is_refused(model, tmp_path):
    model.save(tmp_path / "owner")
    with pytest.raises(DataFileError, match="belongs to something else"):
        model.save(tmp_path / "owner", part="encoder")
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "records.csv").write_text("sex\nf\n")
    with pytest.raises(DataFileError, match=r"also holds records\.csv; choose an empty folder"):
        model.save(tmp_path / "mixed", part="encoder")
    model.save(tmp_path / "encoder", part="encoder")
    with pytest.raises(DataFileError, match="belongs to something else"):
        model.save(tmp_path / "encoder")
    model.save(tmp_path / "encoder", part="encoder")  # an older encoder is replaced
    assert len(list((tmp_path / "encoder").iterdir())) == 2
    with pytest.raises(InvalidInputError, match="part must be 'all' or 'encoder'"):
        model.save(tmp_path / "encoder", part="classifier")
