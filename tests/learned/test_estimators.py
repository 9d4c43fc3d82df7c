import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone

from privacyfunnel.errors import ConvergenceWarning, FileFormatError, InvalidInputError
from privacyfunnel.learned import Autoencoder, ConditionalFunnel, Funnel, base
from privacyfunnel.learned.steps import AlternatingStep
from privacyfunnel.learned.training import TrainingStatus, ran_away

SMALL = {
    "n_components": 8,
    "hidden": (64, 64),
    "epochs": 15,
    "batch_size": 64,
    "learning_rate": 1e-3,
    "random_state": 0,
}
ESTIMATORS = {
    "funnel": Funnel(leakage_weight=0.2, **SMALL),  # the digit is most of an image
    "dca": Funnel(beta=3.0, alpha=0.02, objective="dca", scale="none", **SMALL),
    "written": Funnel.written(beta=1.0, alpha=0.02, **(SMALL | {"learning_rate": 2e-3})),
    "laplace": Funnel(leakage_weight=0.2, latent="laplace", **SMALL),
    "bernoulli": Funnel(leakage_weight=0.2, likelihood="bernoulli", **SMALL),
    "conv": Funnel(leakage_weight=0.2, architecture="conv", **SMALL),
    "conditional": ConditionalFunnel(gamma=10, **SMALL),
    "autoencoder": Autoencoder(alpha=0.02, **SMALL),
}


def reconstructed(model, x, y):
    z = model.transform(x)
    return (
        model.inverse_transform(z, private=y) if model.decoder_needs_private else model.inverse_transform(z)
    )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_learns(name, digits):
    x, y, x_new, y_new = digits
    model = clone(ESTIMATORS[name]).fit(x, y)
    assert model.status_ is TrainingStatus.FINISHED
    error = ((reconstructed(model, x_new, y_new) - x_new) ** 2).mean()
    assert error < 0.9 * ((x.mean(axis=0) - x_new) ** 2).mean()
    frame = model.history_
    assert len(frame) == 15
    assert set(frame.columns) >= {"epoch", "reconstruction", "divergence"}


def test_the_leakage_term_lowers_the_estimated_leakage(digits):
    x, y, _, _ = digits
    options = SMALL | {"epochs": 15}
    leakage = {}
    for weight in (0.0, 3.0):
        model = Funnel(leakage_weight=weight, **options).fit(x, y)
        leakage[weight] = np.mean([row["leakage"] for row in model.progress_.history[-5:]])
    assert leakage[3.0] < 0.8 * leakage[0.0]


def test_releasing_never_sees_y(digits):
    x, y, x_new, _ = digits
    model = clone(ESTIMATORS["funnel"]).set_params(epochs=1, release_state=3).fit(x, y)
    before = model.transform(x_new)
    model.private_ = None
    model.modules_["classifier"] = torch.nn.Identity()
    np.testing.assert_array_equal(model.transform(x_new), before)


def test_cpf_says_that_its_decoder_needs_the_private_attribute(digits):
    x, y, x_new, y_new = digits
    model = clone(ESTIMATORS["conditional"]).set_params(epochs=1).fit(x, y)
    z = model.transform(x_new)
    with pytest.raises(InvalidInputError, match="needs the private attribute"):
        model.inverse_transform(z)
    other = np.where(y_new == 0, 1, 0)
    assert not np.allclose(
        model.inverse_transform(z, private=y_new), model.inverse_transform(z, private=other)
    )


def test_releases_are_random_unless_seeded(digits):
    x, y, x_new, _ = digits
    model = clone(ESTIMATORS["funnel"]).set_params(epochs=1).fit(x, y)
    assert not np.array_equal(model.transform(x_new), model.transform(x_new))
    model.set_params(release_state=1)
    np.testing.assert_array_equal(model.transform(x_new), model.transform(x_new))
    loc, log_scale = model.encode(x_new)
    standard = (model.set_params(release_state=None).transform(x_new) - loc) / np.exp(log_scale)
    assert abs(standard.mean()) < 0.1
    assert standard.std() == pytest.approx(1, abs=0.1)


def test_the_same_seed_gives_the_same_weights(digits):
    x, y, _, _ = digits
    one, two = (clone(ESTIMATORS["funnel"]).set_params(epochs=2).fit(x, y) for _ in range(2))
    for a, b in zip(one.modules_.parameters(), two.modules_.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_killed_run_continues_to_the_same_bits(digits, tmp_path):
    x, y, _, _ = digits
    np.savez(tmp_path / "data.npz", x=x, y=y)
    code = """
import sys, os, numpy as np, torch
from privacyfunnel.learned import Funnel
from privacyfunnel.learned import training
torch.set_num_threads(1)
data = np.load(sys.argv[1] + "/data.npz")
save = training.write_checkpoint
def save_and_die(path, tensors, state, fingerprint):
    save(path, tensors, state, fingerprint)
    if state["epoch"] == 2:
        os.kill(os.getpid(), 9)
training.write_checkpoint = save_and_die
settings = {"hidden": (32, 32), "epochs": 4, "random_state": 5, "validation_fraction": 0}
model = Funnel(8, **settings, checkpoint=sys.argv[1] + "/run")
model.fit(data["x"], data["y"])
"""
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    options = {
        "n_components": 8,
        "hidden": (32, 32),
        "epochs": 4,
        "random_state": 5,
        "validation_fraction": 0,
    }
    resumed = Funnel(**options, checkpoint=str(tmp_path / "run"))
    resumed.fit(x, y)
    assert [row["epoch"] for row in resumed.progress_.history] == [1, 2, 3, 4]
    whole = Funnel(**options).fit(x, y)
    for a, b in zip(resumed.modules_.parameters(), whole.modules_.parameters(), strict=True):
        assert torch.equal(a, b)
    for same in ({"progress": False}, {"release_state": 1}, {"device": "cpu"}):  # nothing left to do
        again = Funnel(**options, **same, checkpoint=tmp_path / "run").fit(x, y)
        assert again.progress_.history == resumed.progress_.history
    with pytest.raises(FileFormatError, match="belongs to another run"):
        Funnel(**options, checkpoint=str(tmp_path / "run")).fit(x[:500], y[:500])
    with pytest.raises(FileFormatError, match="belongs to another run"):
        Funnel(**options, alpha=0.5, checkpoint=str(tmp_path / "run")).fit(x, y)
    (tmp_path / "run" / "checkpoint.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(FileFormatError, match="damaged"):
        Funnel(**options, checkpoint=str(tmp_path / "run")).fit(x, y)


def test_divergence_keeps_the_last_good_weights(digits, monkeypatch):
    x, y, x_new, _ = digits
    from privacyfunnel.learned.steps import AlternatingStep

    calls = []

    def exploding(self, batch, fresh, original=AlternatingStep.__call__):
        terms = original(self, batch, fresh)
        calls.append(1)
        if len(calls) > 20:
            with torch.no_grad():
                for parameter in self.modules["encoder"].parameters():
                    parameter.fill_(float("nan"))
            terms["encoder_loss"] = torch.tensor(float("nan"))
        return terms

    monkeypatch.setattr(AlternatingStep, "__call__", exploding)
    model = clone(ESTIMATORS["funnel"]).set_params(epochs=5)
    with pytest.warns(ConvergenceWarning, match="no longer finite"):
        model.fit(x, y)
    assert model.status_ is TrainingStatus.DIVERGED
    assert model.progress_.epoch == 1
    assert np.isfinite(model.transform(x_new)).all()


def test_collapse_is_noticed(digits):
    x, y, _, _ = digits
    with pytest.warns(ConvergenceWarning, match="hardly depends"):
        model = Funnel(beta=1e-3, alpha=10.0, **SMALL).fit(x, y)
    assert model.status_ is TrainingStatus.COLLAPSED


@pytest.mark.parametrize(
    ("losses", "sentence"),
    [
        ([50, 20, 10, 12, 25, 40], "loss was 10 after epoch 3 and 40 at the end"),
        ([-1, -5, -9, -7, -5, 2], "loss was -9 after epoch 3 and 2 at the end"),
        ([50, 20, 10, 12, 15, 19], None),  # less than twice the lowest
        ([500, 20, 10, 12, 25, 40], None),  # a small part of the way down
        ([50, 20, 10, 40], None),  # too short to tell
        ([], None),
    ],
)
def test_a_loss_that_ran_away_gets_a_sentence(losses, sentence):
    for name in ("encoder_loss", "loss"):
        found = ran_away([{"epoch": i + 1, name: float(loss)} for i, loss in enumerate(losses)])
        assert len(found) == (sentence is not None)
        assert all(sentence in note for note in found)


def test_a_fit_that_ran_away_warns(digits, monkeypatch):
    x, y, _, _ = digits
    monkeypatch.setattr(base, "ran_away", lambda history: [f"worse after {len(history)} epochs"])
    with pytest.warns(ConvergenceWarning, match="Funnel: worse after 2 epochs"):
        model = clone(ESTIMATORS["funnel"]).set_params(epochs=2).fit(x, y)
    assert model.status_ is TrainingStatus.FINISHED


def test_several_and_numeric_private_attributes(digits):
    x, y, x_new, _ = digits
    ink = x.sum(axis=1) + 0.01
    model = clone(ESTIMATORS["funnel"]).set_params(epochs=2)
    model.fit(x, private=np.column_stack([y.astype(float), ink]))
    assert [column.classes is None for column in model.private_.columns] == [False, True]
    assert model.transform(x_new).shape == (400, 8)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array(["b", "a"] * 500), ["a", "b"]),
        (np.array(["b", "a"] * 500, dtype=object), ["a", "b"]),
        (np.array([3, 1] * 500, dtype=object), [1, 3]),
        (np.array([True, False] * 500, dtype=object), [False, True]),
        (["b", "a"] * 500, ["a", "b"]),
    ],
)
def test_labels_of_many_kinds(labels, classes, digits):
    model = clone(ESTIMATORS["funnel"]).set_params(epochs=1).fit(digits[0], labels)
    assert model.private_.columns[0].classes.tolist() == classes
    model.partial_fit(digits[0], labels)
    other = np.full(1000, "1") if isinstance(classes[0], int) else np.full(1000, 1234)
    with pytest.raises(InvalidInputError, match="row 0 was not among the classes"):
        model.partial_fit(digits[0], other)


def test_missing_labels_of_frames_are_named(digits):
    pandas = pytest.importorskip("pandas")
    y = pandas.Series(digits[1]).astype("Int64")
    y[17] = pandas.NA
    with pytest.raises(InvalidInputError, match="row 17 is missing"):
        clone(ESTIMATORS["funnel"]).fit(digits[0], y)


def test_numeric_attributes_stay_numeric(digits):
    x, _, _, _ = digits
    model = clone(ESTIMATORS["funnel"]).set_params(epochs=1).fit(x, x.sum(axis=1) + 0.01)
    with pytest.raises(InvalidInputError, match="numeric at the first fit"):
        model.partial_fit(x, np.full(1000, "a"))


def test_private_wins_over_y(digits):
    x, y, _, _ = digits
    model = clone(ESTIMATORS["funnel"]).set_params(epochs=1).fit(x, y, private=y % 2)
    assert len(model.private_.columns[0].classes) == 2


def test_partial_fit_learns_from_pieces(digits):
    x, y, x_new, y_new = digits
    model = clone(ESTIMATORS["funnel"])
    for _ in range(24):
        for part in (slice(0, 500), slice(500, 1000)):
            model.partial_fit(x[part], y[part])
    error = ((reconstructed(model, x_new, y_new) - x_new) ** 2).mean()
    assert error < 0.9 * ((x.mean(axis=0) - x_new) ** 2).mean()


def test_inputs_of_many_kinds_give_the_same_model(digits):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    x, y, x_new, _ = digits
    names = [f"pixel {i}" for i in range(64)]
    kinds = {
        "tensor": (torch.from_numpy(x), torch.from_numpy(y)),
        "images": (x.reshape(-1, 8, 8), y),
        "pandas": (pandas.DataFrame(x, columns=names), pandas.Series(y, name="digit")),
        "polars": (polars.DataFrame(x, schema=names), polars.Series("digit", y)),
    }
    plain = clone(ESTIMATORS["funnel"]).set_params(epochs=1, scale="common").fit(x, y)
    for kind, (records, private) in kinds.items():
        model = clone(ESTIMATORS["funnel"]).set_params(epochs=1, scale="common").fit(records, private)
        for a, b in zip(model.modules_.parameters(), plain.modules_.parameters(), strict=True):
            assert torch.equal(a, b), kind
    images = clone(ESTIMATORS["funnel"]).set_params(epochs=1).fit(x.reshape(-1, 8, 8), y)
    assert images.inverse_transform(images.transform(x_new.reshape(-1, 8, 8))).shape == (400, 8, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "needs the private attribute"),
        ({"y": np.zeros(1000)}, "one class only"),
        ({"y": np.zeros(999)}, "private y has 999 values for 1000 records; pass one for each record"),
        ({"y": np.full(1000, np.nan)}, "row 0 is missing"),
        ({"y": np.array(["a", None] * 500, dtype=object)}, "row 1 is missing"),
        ({"y": np.array([["a"], {}] * 500, dtype=object)}, "private y: A label must be hashable"),
        ({"y": np.array(["2020-01-01"] * 1000, dtype="datetime64[D]")}, "one class only"),
        ({"y": np.full(1000, 1j)}, "private y holds values of type complex128"),
        ({"y": np.zeros((1000, 2, 2))}, "one column or a table of them"),
        ({"x": np.full((1000, 64), np.nan, dtype="float32")}, "NaN"),
        ({"x": np.full((1000, 64), "a")}, "could not convert"),
        ({"likelihood": "bernoulli", "x": np.full((1000, 64), 2.0)}, "between 0 and 1"),
        ({"classifier": "tree"}, "classifier must be"),
        ({"objective": "max"}, "objective must be"),
        ({"architecture": "rnn"}, "architecture must be"),
        ({"latent": "cauchy"}, "latent must be"),
    ],
)
def test_bad_input_gets_one_sentence(change, message, digits):
    x, y, _, _ = digits
    data = {"x": x, "y": y} | {key: change[key] for key in ("x", "y") if key in change}
    settings = {key: value for key, value in change.items() if key not in ("x", "y")}
    with pytest.raises(ValueError, match=message):
        clone(ESTIMATORS["funnel"]).set_params(epochs=1, **settings).fit(data["x"], data["y"])


def test_wrong_widths_at_transform(digits):
    x, y, x_new, _ = digits
    model = clone(ESTIMATORS["funnel"]).set_params(epochs=1).fit(x, y)
    with pytest.raises(ValueError, match="64 features"):
        model.transform(x_new[:, :10])
    with pytest.raises(InvalidInputError, match="8 columns"):
        model.inverse_transform(np.zeros((3, 5)))
    with pytest.raises(InvalidInputError, match="was not among the classes"):
        model.partial_fit(x, np.full(1000, 77))


def test_training_data_leave_with_a_failure_too(digits, monkeypatch):
    x, y, _, _ = digits
    model = clone(ESTIMATORS["funnel"]).set_params(epochs=1).fit(x, y)
    with pytest.raises(InvalidInputError):
        model.partial_fit(x, np.full(1000, 77))

    def fail(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(type(model.step_), "__call__", fail)
    with pytest.raises(MemoryError):
        model.partial_fit(x, y)
    held = [value for value in vars(model).values() if isinstance(value, (torch.Tensor, np.ndarray, list))]
    assert not any(len(value) == 1000 for value in held if np.ndim(value))
    assert not hasattr(model, "x_")


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("fitted", [False, True])
def test_a_call_that_fails_in_the_midst_of_training_changes_nothing(call, fitted, digits, monkeypatch):
    x, y, _, _ = digits
    model, records = clone(ESTIMATORS["funnel"]).set_params(epochs=2), x
    if fitted:
        pandas = pytest.importorskip("pandas")
        records = pandas.DataFrame(x, columns=[f"pixel {i}" for i in range(64)])
        model.fit(records, y)

    def state():
        if not fitted:
            return []
        moments = [one.state_dict()["state"] for one in model.step_.optimisers.values()]
        tensors = [value for each in moments for slots in each.values() for value in slots.values()]
        weights = [*model.modules_.state_dict().values(), model.generator_.get_state()]
        return [torch.as_tensor(tensor).clone() for tensor in (*weights, *tensors)]

    before, known, history = state(), dict(vars(model)), len(model.history_) if fitted else 0
    steps = []

    def fail(self, batch, fresh, original=AlternatingStep.__call__):
        steps.append(batch)
        if len(steps) > 3:
            raise MemoryError
        return original(self, batch, fresh)

    monkeypatch.setattr(AlternatingStep, "__call__", fail)
    with pytest.raises(MemoryError):
        getattr(model, call)(records, y)
    assert len(steps) == 4  # weights had moved
    assert vars(model) == known
    assert all(torch.equal(one, two) for one, two in zip(state(), before, strict=True))
    assert (len(model.history_) if fitted else 0) == history
