import copy
import errno
import hashlib
import json
import math
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from safetensors.torch import save as save_tensors

import privacyfunnel as pf
from privacyfunnel import persistence
from privacyfunnel.auditing.adversaries import LeakageBound
from privacyfunnel.errors import DataFileError, FileFormatError, InvalidInputError
from privacyfunnel.learned import Autoencoder, ConditionalFunnel, DeepVariationalFunnel, Funnel
from privacyfunnel.learned.budget import Audit, Budget, BudgetStatus
from privacyfunnel.learned.manifest import checksum
from privacyfunnel.measured import Interval

TINY = {"n_components": 3, "hidden": (16,), "epochs": 2, "random_state": 4}
KINDS = {
    "funnel": Funnel(**TINY),
    "linear": Funnel(
        classifier="linear", classifier_steps=1, likelihood="bernoulli", latent="laplace", **TINY
    ),
    "conv": Funnel(architecture="conv", learning_rate=0.01, **TINY),  # slower would count as a collapse
    "conditional": ConditionalFunnel(**TINY),
    "deep variational": DeepVariationalFunnel(**TINY),
    "autoencoder": Autoencoder(**TINY),
}


@pytest.fixture(scope="module")
def models(digits):
    """Each kind, fitted on a few digits."""
    torch.set_num_threads(1)
    x, y, _, _ = digits
    return {name: model.fit(x[:200], y[:200]) for name, model in KINDS.items()}


@pytest.fixture
def folder(models, tmp_path):
    """A saved Funnel."""
    models["funnel"].save(tmp_path / "model")
    return tmp_path / "model"


def weights_of(model):
    return {name: tensor.clone() for name, tensor in model.modules_.state_dict().items()}


def assert_same(one, two):
    a, b = weights_of(one), weights_of(two)
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


def is_same(one, two):
    a, b = weights_of(one), weights_of(two)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def change_manifest(folder, change, seal=True):
    """Edit the manifest; with `seal` its checksum is right again."""
    file = folder / "manifest.json"
    document = json.loads(file.read_text())
    change(document)
    if seal:
        content = {key: value for key, value in document["payload"].items() if key != "checksum"}
        document["payload"]["checksum"] = checksum(content)
    file.write_text(json.dumps(document))


@pytest.mark.parametrize("name", KINDS)
def test_a_loaded_model_does_what_the_saved_one_did(name, models, digits, tmp_path):
    _, _, x_new, y_new = digits
    model = models[name]
    model.save(tmp_path / "model")
    loaded = pf.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert_same(loaded, model)
    for state in (model, loaded):
        state.set_params(release_state=3)
    z = loaded.transform(x_new)
    np.testing.assert_array_equal(z, model.transform(x_new))
    private = {"private": y_new} if model.decoder_needs_private else {}
    np.testing.assert_array_equal(
        loaded.inverse_transform(z, **private), model.inverse_transform(z, **private)
    )
    assert loaded.progress_ == model.progress_
    assert getattr(loaded, "budget_", "none of it") == getattr(model, "budget_", "none of it")
    assert loaded.history_.equals(model.history_)
    for attribute in ("seed_", "fingerprint_", "n_records_", "status_", "n_features_in_", "record_shape_"):
        assert getattr(loaded, attribute) == getattr(model, attribute)
    model.set_params(release_state=None)


def test_private_attributes_come_back_to_the_last_bit(digits, tmp_path):
    pandas = pytest.importorskip("pandas")
    x, y, _, _ = digits
    private = pandas.DataFrame(
        {"digit": y, "odd": np.where(y % 2, "odd", "évén"), "ink": x.sum(axis=1) + 0.01}
    )
    model = Funnel(**TINY).fit(x.reshape(-1, 8, 8), private=private)
    model.save(tmp_path)
    loaded = pf.load(tmp_path)
    assert loaded.record_shape_ == (8, 8)
    for one, two in zip(loaded.private_.columns, model.private_.columns, strict=True):
        assert (one.name, one.entropy, one.mean, one.scale) == (two.name, two.entropy, two.mean, two.scale)
        if two.classes is not None:
            np.testing.assert_array_equal(one.classes, two.classes)
            assert one.classes.dtype == two.classes.dtype
        np.testing.assert_array_equal(one.seen, two.seen)


def test_feature_names_come_back(digits, tmp_path):
    pandas = pytest.importorskip("pandas")
    x, y, _, _ = digits
    frame = pandas.DataFrame(x, columns=[f"pixel {i}" for i in range(64)])
    Funnel(**TINY).fit(frame, y).save(tmp_path)
    loaded = pf.load(tmp_path)
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert loaded.transform(frame).shape == (1000, 3)
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame[frame.columns[::-1]])


def test_the_manifest_tells_where_a_model_comes_from(folder, models):
    model = models["funnel"]
    document = json.loads((folder / "manifest.json").read_text())
    assert (document["format"], document["kind"], document["version"]) == (
        "privacyfunnel",
        "learned-funnel",
        1,
    )
    payload = document["payload"]
    assert payload["class"] == "Funnel"
    assert payload["settings"]["hidden"] == [16]
    assert payload["seed"] == 4
    assert payload["fingerprint"] == model.fingerprint_
    assert payload["versions"].keys() >= {"privacyfunnel", "torch", "safetensors", "python"}
    assert payload["training"]["status"] == "FINISHED"
    assert payload["training"]["final"] == model.progress_.history[-1]
    assert payload["weights"]["shapes"]["encoder.heads.weight"] == [6, 16]
    (private,) = payload["private"]
    share = np.array(private["counts"]) / 200
    assert share.sum() == 1
    assert private["entropy_bits"] == pytest.approx(-(share * np.log2(share)).sum())
    weights = folder / f"weights-{payload['weights']['sha256']}.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == payload["weights"]["sha256"]


def test_what_belongs_to_a_session_is_not_saved(digits, tmp_path):
    x, y, _, _ = digits
    model = Funnel(**TINY | {"random_state": np.random.default_rng(0)})
    model.set_params(release_state=1, checkpoint=str(tmp_path / "run"), progress=False)
    model.fit(x[:100], y[:100]).save(tmp_path / "model")
    loaded = pf.load(tmp_path / "model")
    assert (loaded.release_state, loaded.checkpoint, loaded.random_state) == (None, None, None)
    assert loaded.seed_ == model.seed_
    assert str(tmp_path) not in (tmp_path / "model" / "manifest.json").read_text()
    assert not np.array_equal(loaded.transform(x), loaded.transform(x))


def test_what_a_budget_reached_comes_back(models, tmp_path):
    interval = Interval(-0.01, 0.04, 0.95, "held-out", 0)
    bound = LeakageBound(0.02, math.inf, interval, 100, 200, "mlp", 0.3, 0.2, 0.5, 1.0)
    audit = Audit(3, 2.0, bound, 0.04, 0.01, 12.5, True)
    budget = Budget(0.05, bound, 0.04, True, 0.3, BudgetStatus.MET, 2.0, (audit, audit))
    model = copy.copy(models["funnel"])
    model.budget_ = budget
    model.save(tmp_path)
    assert pf.load(tmp_path).budget_ == budget
    change_manifest(tmp_path, lambda d: d["payload"]["budget"].update(upper="low"))
    with pytest.raises(FileFormatError, match="'low' is not a float"):
        pf.load(tmp_path)


def test_training_goes_on_after_loading(folder, digits):
    x, y, _, _ = digits
    loaded = pf.load(folder)
    before = weights_of(loaded)
    loaded.partial_fit(x[200:400], y[200:400])
    assert [row["epoch"] for row in loaded.progress_.history] == [1, 2, 3]
    assert not torch.equal(before["encoder.heads.weight"], weights_of(loaded)["encoder.heads.weight"])
    again = pf.load(folder).partial_fit(x[200:400], y[200:400])
    assert_same(again, loaded)
    with pytest.raises(InvalidInputError, match="was not among the classes"):
        loaded.partial_fit(x[:200], np.full(200, 77))


def test_a_new_model_replaces_the_old_one_and_its_weights(folder, models):
    (folder / "notes.txt").write_text("mine")
    models["autoencoder"].save(folder)
    assert_same(pf.load(folder), models["autoencoder"])
    names = sorted(file.name for file in folder.iterdir())
    assert len(names) == 3
    assert names[:2] == ["manifest.json", "notes.txt"]


class Killed(BaseException):
    """Stands for the end of the process: from then on it does nothing at all."""


def test_a_process_killed_at_any_moment_leaves_a_whole_model(folder, models, tmp_path, monkeypatch):
    old, new = models["funnel"], models["conditional"]
    # Not close: the system closes what a killed process had open, and so gives its lock back.
    calls = {name: getattr(os, name) for name in ("open", "fsync", "chmod", "replace", "unlink", "listdir")}
    outcomes = []
    for moment in range(100):
        here = tmp_path / f"killed-{moment}"
        shutil.copytree(folder, here)
        left = [moment]
        with monkeypatch.context() as patch:
            for name, call in calls.items():

                def dying(*args, original=call, left=left, **more):
                    left[0] -= 1
                    if left[0] < 0:
                        raise Killed
                    return original(*args, **more)

                patch.setattr(os, name, dying)
            try:
                new.save(here)
                finished = True
            except Killed:
                finished = False
        loaded = pf.load(here)
        outcomes.append(is_same(loaded, new))
        assert outcomes[-1] or is_same(loaded, old)
        persistence._seen.clear()  # another process, which looks for what the killed one left
        new.save(here)  # and it cleans up
        assert len(list(here.iterdir())) == 2
        if finished:
            break
    assert finished
    assert outcomes[0] is False
    assert outcomes == sorted(outcomes)
    assert len(outcomes) > 8


@pytest.mark.parametrize("number", [1, 3])
def test_a_full_disk_loses_nothing(number, folder, models, monkeypatch):
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    left = [number]

    def full(handle, original=os.fsync):
        left[0] -= 1
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataFileError, match="No space left on device"):
            models["conditional"].save(folder)
        with pytest.raises(DataFileError, match="No space left on device"):
            models["conditional"].save(folder.with_name("new"))
    after = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert {name: after.get(name) for name in before} == before
    assert not folder.with_name("new").exists()
    assert_same(pf.load(folder), models["funnel"])


def test_two_savers_in_one_folder(models, tmp_path):
    """Threads stand for processes: a lock belongs to an open folder, and each saver opens its own."""
    target = tmp_path / "both"
    models["funnel"].save(target)

    def save_again_and_again(model):
        for _ in range(25):
            model.save(target)

    with ThreadPoolExecutor(2) as pool:
        ended = [pool.submit(save_again_and_again, models[name]) for name in ("funnel", "conditional")]
        while not all(one.done() for one in ended):
            assert type(pf.load(target)) in (Funnel, ConditionalFunnel)
        for one in ended:
            one.result()
    loaded = pf.load(target)
    assert is_same(loaded, models["funnel"]) or is_same(loaded, models["conditional"])
    assert len(list(target.iterdir())) == 2


def the_weights(folder):
    (file,) = folder.glob("weights-*.safetensors")
    return file


def cut(folder):
    data = the_weights(folder).read_bytes()
    the_weights(folder).write_bytes(data[: len(data) // 2])


def flip(folder):
    data = bytearray(the_weights(folder).read_bytes())
    data[-1] ^= 1
    the_weights(folder).write_bytes(data)


def other_weights(folder, tensors):
    """Replace the weights by others, with a right hash and a right checksum."""
    data = save_tensors(tensors)
    digest = hashlib.sha256(data).hexdigest()
    the_weights(folder).rename(folder / f"weights-{digest}.safetensors").write_bytes(data)
    change_manifest(folder, lambda d: d["payload"]["weights"].update(sha256=digest))


def setting(name, value):
    return lambda folder: change_manifest(folder, lambda d: d["payload"]["settings"].update({name: value}))


def in_payload(name, value):
    return lambda folder: change_manifest(folder, lambda d: d["payload"].update({name: value}))


DAMAGE = {
    "cut weights": (cut, "damaged or cut short"),
    "flipped bit": (flip, "damaged or cut short"),
    "no weights": (lambda f: the_weights(f).unlink(), "are missing"),
    "empty manifest": (lambda f: (f / "manifest.json").write_text(""), "the file is empty"),
    "cut manifest": (
        lambda f: (f / "manifest.json").write_bytes((f / "manifest.json").read_bytes()[:300]),
        "damaged or was not saved by this library",
    ),
    "binary": (
        lambda f: (f / "manifest.json").write_bytes(b"\x80\x04\x95pickle"),
        "was not saved by this library",
    ),
    "foreign": (
        lambda f: (f / "manifest.json").write_text('{"name": "app"}'),
        "was not saved by this library",
    ),
    "mechanism": (lambda f: change_manifest(f, lambda d: d.update(kind="frontier")), "no learned model"),
    "newer": (
        lambda f: change_manifest(f, lambda d: d.update(version=2)),
        "reads up to 1; install a newer one",
    ),
    "edited": (
        lambda f: change_manifest(f, lambda d: d["payload"]["settings"].update(latent="laplace"), seal=False),
        "changed by hand",
    ),
    "unknown class": (in_payload("class", "os.system"), "no estimator 'os.system'"),
    "other class": (in_payload("class", "Autoencoder"), "does not know the setting 'align'"),
    "path": (in_payload("weights", {"sha256": "../../secret"}), "names no weights"),
    "unknown setting": (
        setting("depth", 3),
        rf"\({pf.__version__}\) does not know the setting 'depth' of Funnel; the model was saved by version "
        rf"{pf.__version__}",
    ),
    "a session's": (setting("release_state", 3), "does not know the setting 'release_state'"),
    "nats": (in_payload("training", {"unit": "nat", "status": "FINISHED"}), "in 'nat' and not in bits"),
    "other size": (setting("n_components", 4), "have shape"),
    "huge size": (setting("n_components", 10**12), "damaged"),
    "bad size": (setting("hidden", ["a"]), "damaged"),
    "bad choice": (setting("classifier", "tree"), "classifier must be"),
    "no private": (in_payload("private", None), "do not fit the class"),
    "bad private": (in_payload("private", [{"name": "y"}]), "entropy_bits"),
    "bad shape": (in_payload("record_shape", [8, 9]), "do not have 64 values"),
    "bad names": (in_payload("feature_names_in", ["a"]), "1 names are given"),
    "bad status": (in_payload("training", {"status": "GREAT"}), "damaged"),
    "missing tensor": (lambda f: other_weights(f, {"a": torch.zeros(2)}), "have shape"),
    "other type": (lambda f: other_weights(f, {"a": torch.zeros(2, dtype=torch.int64)}), "damaged"),
    "not finite": (lambda f: other_weights(f, {"a": torch.full((2,), float("nan"))}), "not finite"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_gets_one_sentence(name, folder):
    damage, message = DAMAGE[name]
    damage(folder)
    with pytest.raises(FileFormatError, match=message) as caught:
        pf.load(folder)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(folder))


def test_a_setting_newer_than_the_file_takes_its_default(folder, models, digits):
    def older(document):
        del document["payload"]["settings"]["classifier_steps"]
        document["payload"]["settings"]["alpha"] = 0.5
        document["payload"]["versions"]["privacyfunnel"] = "0.0.1"

    change_manifest(folder, older)
    loaded = pf.load(folder)
    assert (loaded.classifier_steps, loaded.alpha) == (Funnel().classifier_steps, 0.5)
    assert_same(loaded, models["funnel"])
    loaded.partial_fit(digits[0], digits[1])
    change_manifest(folder, lambda d: d["payload"]["settings"].update(colour="red"))
    with pytest.raises(FileFormatError, match=r"'colour' of Funnel; the model was saved by version 0\.0\.1"):
        pf.load(folder)


def test_classes_must_be_consistent(folder):
    def reverse(document):
        document["payload"]["private"][0]["classes"].reverse()

    change_manifest(folder, reverse)
    with pytest.raises(FileFormatError, match="inconsistent"):
        pf.load(folder)


def test_a_part_of_a_model_is_not_a_model(folder):
    with pytest.raises(FileFormatError, match="load the folder"):
        pf.load(folder / "manifest.json")
    with pytest.raises(DataFileError, match="No such file"):
        pf.load(folder / "none")
    (folder / "manifest.json").unlink()
    with pytest.raises(DataFileError, match=r"cannot read the file manifest.json \(there is none\)"):
        pf.load(folder)


def test_places_that_cannot_hold_a_model(models, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataFileError, match="there is a file of this name"):
        models["funnel"].save(tmp_path / "file")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "manifest.json").write_text('{"name": "app"}')
    with pytest.raises(DataFileError, match="belongs to something else"):
        models["funnel"].save(tmp_path / "app")
    assert (tmp_path / "app" / "manifest.json").read_text() == '{"name": "app"}'
    (tmp_path / "app" / "manifest.json").write_text('{"format": "privacyf')  # cut short
    models["funnel"].save(tmp_path / "app")
    assert_same(pf.load(tmp_path / "app"), models["funnel"])


def test_what_could_not_be_loaded_is_not_saved(digits, tmp_path):
    class Own(Funnel):
        pass

    x, y, _, _ = digits
    model = Funnel(**TINY).fit(x[:100], y[:100])
    with pytest.raises(InvalidInputError, match="no longer fit"):
        model.set_params(n_components=4).save(tmp_path / "a")
    with pytest.raises(InvalidInputError, match="alpha is inf"):
        model.set_params(n_components=3, alpha=float("inf")).save(tmp_path / "b")
    with pytest.raises(InvalidInputError, match="Own is none of them"):
        Own(**TINY).fit(x[:100], y[:100]).save(tmp_path / "c")
    assert list(tmp_path.iterdir()) == []
