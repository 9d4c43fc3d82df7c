"""partial_fit: data in parts, classes named at the first, H(Y) of everything seen."""

import numpy as np
import pytest
import torch

import privacyfunnel as pf
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.learned import Autoencoder, ConditionalFunnel, DeepVariationalFunnel, Funnel

TINY = {"n_components": 3, "hidden": (16,), "random_state": 0, "batch_size": 50}
KINDS = [Funnel, ConditionalFunnel, DeepVariationalFunnel]


def entropy(labels):
    """In nats, the slow way."""
    shares = [np.mean(np.asarray(labels) == label) for label in set(np.asarray(labels).tolist())]
    return -sum(share * np.log(share) for share in shares)


@pytest.mark.parametrize("kind", KINDS)
def test_the_entropy_is_that_of_all_parts_seen(kind, digits):
    x, y, _, _ = digits
    order = np.argsort(y, kind="stable")  # the first part has the digits 0 and 1 alone
    x, y = x[order], y[order]
    model = kind(**TINY)
    for end in (150, 500, 1000):
        begin = {150: 0, 500: 150, 1000: 500}[end]
        model.partial_fit(x[begin:end], y[begin:end], classes=range(10))
        (column,) = model.private_.columns
        assert column.entropy == pytest.approx(entropy(y[:end]), abs=1e-12)
        assert model.step_.private is model.private_  # what training takes H(Y) from
    assert column.classes.tolist() == list(range(10))
    assert model.n_records_ == 1000


def test_parts_give_the_entropy_that_the_whole_gives(digits):
    x, y, _, _ = digits
    whole = Funnel(**TINY, epochs=1).fit(x, y)
    parts = Funnel(**TINY)
    for part in np.array_split(np.arange(1000), 7):
        parts.partial_fit(x[part], y[part], classes=np.arange(10))
    assert parts.private_.columns[0].entropy == whole.private_.columns[0].entropy


def test_the_leakage_is_measured_against_the_running_entropy(digits):
    x, y, _, _ = digits
    model = Funnel(**TINY | {"hidden": (64,)}, leakage_weight=0.0, objective="lagrangian", learning_rate=1e-2)
    model.partial_fit(x[y == 3][:60], y[y == 3][:60], classes=range(10))
    assert model.history_["leakage"].iloc[-1] == 0  # H(Y) = 0: nothing can leak
    for _ in range(6):
        model.partial_fit(x, y)
    row = model.history_.iloc[-1]
    bits = model.private_.columns[0].entropy / np.log(2)
    assert row["leakage"] == pytest.approx(bits - row["cross_entropy"], abs=0.1)
    assert row["leakage"] > 0.2


def test_numeric_attributes_keep_their_scale_and_widen_their_entropy(digits):
    x, _, _, _ = digits
    rng = np.random.default_rng(0)
    first, second = rng.normal(5, 2, 500), rng.normal(9, 4, 500)
    model = Funnel(**TINY).partial_fit(x[:500], first)
    (before,) = model.private_.columns
    model.partial_fit(x[500:], second)
    (after,) = model.private_.columns
    assert (after.mean, after.scale) == (before.mean, before.scale) == (first.mean(), first.std())
    variance = np.concatenate([first, second]).var() / first.var()
    assert after.entropy == pytest.approx(0.5 * np.log(2 * np.pi * np.e * variance), abs=1e-5)


def test_several_attributes_name_their_classes_in_a_mapping(digits):
    pandas = pytest.importorskip("pandas")
    x, y, _, _ = digits
    frame = pandas.DataFrame({"digit": y, "odd": np.where(y % 2, "odd", "even"), "ink": x.sum(1) + 0.01})
    few = (y < 3).nonzero()[0]
    model = Funnel(**TINY)
    model.partial_fit(x[few], private=frame.iloc[few], classes={"digit": range(10)})
    assert [None if c.classes is None else len(c.classes) for c in model.private_.columns] == [10, 2, None]
    model.partial_fit(x, private=frame)
    with pytest.raises(InvalidInputError, match="must be a mapping from attribute to its classes"):
        Funnel(**TINY).partial_fit(x, private=frame, classes=range(10))
    with pytest.raises(InvalidInputError, match="names 'hue', which is no private attribute; they are digit"):
        Funnel(**TINY).partial_fit(x, private=frame, classes={"hue": ["red"]})


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([0, 1], "the value 2 in row 2 was not among the classes at the first fit; name all of them there"),
        ([4], r"one class only \(4\)"),
        ([], "no class"),
        (["0", "1"], "the value 0 in row 0 was not among the classes"),
        ([0, None], "row 1 is missing"),
    ],
)
def test_classes_that_cannot_be(classes, message, digits):
    x, y, _, _ = digits
    with pytest.raises(InvalidInputError, match=message):
        Funnel(**TINY).partial_fit(x, y, classes=np.array(classes, dtype=object if None in classes else None))


def test_what_later_calls_must_agree_with(digits):
    x, y, _, _ = digits
    model = Funnel(**TINY).partial_fit(x, y % 3, classes=range(4))
    weights = [p.clone() for p in model.modules_.parameters()]
    seen = model.private_.columns[0].seen.copy()
    for labels, classes, message in (
        (y, None, "the value 4 in row 4 was not among the classes at the first fit.*classes="),
        (y % 3, range(3), "classes of private y are not those of the first call"),
        (np.column_stack([y % 3, y % 2]), None, "private has 2 columns; the first fit saw 1"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            model.partial_fit(x, labels, classes=classes)
    assert all(torch.equal(a, b) for a, b in zip(weights, model.modules_.parameters(), strict=True))
    np.testing.assert_array_equal(model.private_.columns[0].seen, seen)
    model.partial_fit(x, y % 4, classes=[3, 2, 1, 0])  # the same, in another order


def test_columns_go_by_name_and_not_by_position(digits):
    pandas = pytest.importorskip("pandas")
    x, y, _, _ = digits
    frame = pandas.DataFrame({"low": y % 2, "high": y // 5})
    model = ConditionalFunnel(**TINY, epochs=1).fit(x, private=frame)
    z = np.zeros((1000, 3), dtype=np.float32)
    straight = model.inverse_transform(z, private=frame)
    np.testing.assert_array_equal(model.inverse_transform(z, private=frame[["high", "low"]]), straight)
    np.testing.assert_array_equal(model.inverse_transform(z, private=frame.to_numpy()), straight)
    with pytest.raises(InvalidInputError, match="the columns low, other; the first fit saw low, high"):
        model.inverse_transform(z, private=frame.rename(columns={"high": "other"}))
    model.partial_fit(x, private=frame[["high", "low"]])
    assert model.private_.columns[0].seen.tolist() == (2 * np.bincount(y % 2)).tolist()


def test_later_parts_must_be_in_range_too(digits):
    x, y, _, _ = digits
    model = Funnel(**TINY, likelihood="bernoulli").partial_fit(x, y)
    with pytest.raises(InvalidInputError, match="between 0 and 1 for likelihood='bernoulli'"):
        model.partial_fit(2 * x, y)
    assert model.progress_.epoch == 1
    model.transform(2 * x)  # releasing needs no density


def test_a_loaded_model_goes_on_counting(digits, tmp_path):
    x, y, _, _ = digits
    model = Funnel(**TINY).partial_fit(x[:300], y[:300], classes=range(12))
    model.save(tmp_path)
    loaded = pf.load(tmp_path)
    assert loaded.private_.columns[0].seen[10:].tolist() == [0, 0]
    loaded.partial_fit(x[300:], y[300:])
    assert loaded.private_.columns[0].entropy == pytest.approx(entropy(y), abs=1e-12)
    assert loaded.n_records_ == 1000


def test_the_fingerprint_is_of_all_parts_in_their_order(digits):
    x, y, _, _ = digits
    parts = [(x[:500], y[:500]), (x[500:], y[500:])]

    def fingerprint(order):
        model = Autoencoder(**TINY)
        for i in order:
            model.partial_fit(*parts[i])
        return model.fingerprint_

    assert fingerprint([0, 1]) == fingerprint([0, 1])
    assert len({fingerprint([0, 1]), fingerprint([1, 0]), fingerprint([1]), fingerprint([1, 1])}) == 4


@pytest.mark.parametrize("kind", [Autoencoder, *KINDS])
def test_settings_may_change_between_calls_and_momentum_stays(kind, digits):
    x, y, _, _ = digits
    private = () if kind is Autoencoder else (y,)

    def after(**changed):
        model = kind(**TINY, learning_rate=1e-3).partial_fit(x, *private)
        weights = {name: one.clone() for name, one in model.modules_["encoder"].state_dict().items()}
        model.set_params(**changed).partial_fit(x, *private)
        now = model.modules_["encoder"].state_dict()
        moved = sum(float((now[name] - weights[name]).abs().sum()) for name in weights)
        moments = next(iter(model.step_.optimisers.values())).state_dict()["state"]
        return moved, int(moments[0]["step"]), now

    same, steps, weights = after()
    slower, steps_too, _ = after(learning_rate=1e-5)
    assert slower < 0.1 * same
    assert steps == steps_too == 2 * len(x) / TINY["batch_size"]  # and of both calls, not of the last
    *_, heavier = after(**{"gamma": 50.0} if kind is ConditionalFunnel else {"alpha": 5.0})
    assert not all(torch.equal(heavier[name], weights[name]) for name in weights)


@pytest.mark.parametrize("changed", [{"n_components": 4}, {"hidden": (16, 16)}, {"classifier": "linear"}])
def test_networks_may_not_change_between_calls(changed, digits):
    x, y, _, _ = digits
    model = Funnel(**TINY).partial_fit(x, y)
    history = len(model.history_)
    model.set_params(**changed)
    with pytest.raises(InvalidInputError, match="a setting that shapes the networks was changed"):
        model.partial_fit(x, y)
    assert len(model.history_) == history
    before = {name: Funnel(**TINY).get_params()[name] for name in changed}
    model.set_params(**before).partial_fit(x, y)
    assert len(model.history_) == history + 1
