"""Private attributes: classes, numbers, several at once, and what the classifier guesses of them."""

import itertools
import warnings

import numpy as np
import pytest
import torch
from torch import distributions

import privacyfunnel as pf
from privacyfunnel.attributes import read_attributes
from privacyfunnel.auditing import cross_fitted_bound, neural_network
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.learned import Funnel, objectives
from privacyfunnel.learned.objectives import describe

TINY = {"n_components": 3, "hidden": (16,), "random_state": 0, "batch_size": 50, "epochs": 1}


def test_the_head_of_a_number_is_a_gaussian():
    rng = np.random.default_rng(0)
    values = rng.normal(3, 5, 200)
    (column,) = describe(read_attributes({"income": values})).columns
    output = torch.from_numpy(rng.normal(size=(200, 2)).astype(np.float32))
    u = torch.from_numpy(((values - values.mean()) / values.std()).astype(np.float32))
    expected = -distributions.Normal(output[:, 0], output[:, 1].exp()).log_prob(u)
    torch.testing.assert_close(column.loss(output, column.encode(read_attributes(values)[0])), expected)


@pytest.mark.parametrize(
    ("n_classes", "n", "told"), [(20, 30, False), (21, 30, True), (30, 60, False), (31, 60, True)]
)
def test_numbers_of_which_most_come_once_are_told_of(n_classes, n, told):
    read = read_attributes({"age": np.arange(n) % n_classes})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        describe(read)
        describe(read, named=True)  # whoever lists the classes knows them
    sentence = f"private age has {n_classes} classes in {n} records, too many to be learnt"
    assert [str(one.message).split(";")[0] for one in caught] == [sentence] * told


def test_combinations_are_guessed_by_one_head():
    rng = np.random.default_rng(0)
    a, b = rng.integers(2, size=500), rng.integers(3, size=500)
    number = rng.normal(size=500)
    read = read_attributes({"a": a, "x": number, "b": b})
    attributes = describe(read)
    assert [head.name for head in attributes.heads] == ["a × b", "x"]
    assert attributes.n_outputs == 6 + 2
    shares = [np.mean((a == i) & (b == j)) for i, j in itertools.product(range(2), range(3))]
    assert attributes.heads[0].entropy == pytest.approx(-sum(p * np.log(p) for p in shares))
    output = torch.from_numpy(rng.normal(size=(500, 8)).astype(np.float32))
    losses = attributes.losses(output, attributes.encode(read))
    logs = torch.log_softmax(output[:, :6], 1)
    torch.testing.assert_close(losses[0], -logs[torch.arange(500), torch.from_numpy(3 * a + b)])


def test_more_combinations_than_records_could_teach_are_guessed_apart(monkeypatch):
    monkeypatch.setattr(objectives, "MOST_TOGETHER", 5)
    attributes = describe(read_attributes({"a": np.arange(60) % 2, "b": np.arange(60) % 3}))
    assert [head.name for head in attributes.heads] == ["a", "b"]


@pytest.mark.parametrize("several", [False, True])
def test_a_code_that_tells_whether_two_attributes_are_equal_is_caught(several):
    """X tells a XOR b in full, and nothing about either alone."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(2, size=(2, 3000))
    x = rng.normal(size=(3000, 6)).astype(np.float32)
    x[:, 0] = 2.0 * (a ^ b) - 1 + 0.1 * x[:, 0]
    model = Funnel(4, hidden=(64, 64), objective="lagrangian", beta=1.0, alpha=0.02, leakage_weight=20.0)
    model.set_params(epochs=12, batch_size=128, learning_rate=1e-3, random_state=0, release_state=1)
    model.fit(x[:2000], private=np.column_stack([a, b])[:2000] if several else (2 * a + b)[:2000])
    bound = cross_fitted_bound(neural_network(), model.transform(x[2000:]), (2 * a + b)[2000:])
    assert bound.value < 0.1  # of 1 bit in x


def test_parts_and_folders_keep_the_counts_of_combinations(digits, tmp_path):
    x, y, x_new, _ = digits
    both = np.column_stack([y, y % 2])
    whole = Funnel(**TINY).fit(x, private=both)
    parts = Funnel(**TINY)
    for part in (slice(0, 300), slice(300, 1000)):
        parts.partial_fit(x[part], private=both[part], classes={"y0": range(10), "y1": [0, 1]})
    assert np.array_equal(parts.private_.together, whole.private_.together)
    parts.save(tmp_path / "model")
    loaded = pf.load(tmp_path / "model")
    assert np.array_equal(loaded.private_.together, whole.private_.together)
    assert np.array_equal(loaded.encode(x_new)[0], parts.encode(x_new)[0])


def test_whole_numbers_can_be_declared_numeric(digits):
    x, _, _, _ = digits
    income = np.random.default_rng(0).integers(1000, 90_000, 1000)
    with pytest.warns(UserWarning, match=r"private income has \d+ classes in 1000 records.*numeric"):
        describe(read_attributes({"income": income}))
    model = Funnel(**TINY, numeric=["y"]).fit(x, income)
    assert model.private_.columns[0].classes is None
    model.partial_fit(x, income + 0.5)


@pytest.mark.parametrize(
    ("values", "options", "sentence"),
    [
        (np.full(300, 0.1), {}, "same value in every record"),
        (np.arange(300) % 2, {"numeric": ["z"]}, "numeric names 'z', which is no private attribute"),
        (np.array(["a", "b"] * 150), {"numeric": ["y"]}, "'y', which does not hold numbers"),
        (np.arange(300) % 2, {"numeric": "y"}, "numeric must be a list of names"),
    ],
)
def test_bad_attributes_get_one_sentence(values, options, sentence, digits):
    with pytest.raises(InvalidInputError, match=sentence):
        Funnel(**TINY, **options).fit(digits[0][:300], values)
