"""Records are scaled inside: whatever their units, the same weights do; reconstructions have the units."""

import numpy as np
import pytest
import torch

from privacyfunnel.errors import InvalidInputError
from privacyfunnel.learned import Autoencoder, Funnel
from privacyfunnel.learned.families import LIKELIHOODS, likelihood
from privacyfunnel.learned.networks import (
    COMMON_PRICE,
    LINEAR_SHARE,
    Scaling,
    code_price,
    kind_of_scaling,
    scaling_of,
)

TINY = {"n_components": 3, "hidden": (16,), "epochs": 3, "random_state": 0, "release_state": 1}


def table(n=200, seed=0):
    """Columns of very different units, an indicator and a constant."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5)) * [1, 50, 1e-3, 0, 0] + [0, 4e4, 1, 0, 7]
    x[:, 3] = rng.random(n) < 0.02
    return x.astype(np.float32), rng.integers(2, size=n)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda x: x, "columns"),
        (lambda x: x[:, :1] * np.arange(1, 6, dtype=np.float32), "common"),
        (lambda x: (x > 0).astype(np.float32), "common"),
        (lambda x: np.abs(x).reshape(-1, 5, 1) / 5e4, "common"),
        (lambda x: pytest.importorskip("pandas").DataFrame(x[:, :1] + np.arange(5)), "columns"),
    ],
    ids=["units that differ", "one unit", "indicators", "stack", "frame"],
)
def test_auto_tells_a_table_from_an_array_of_one_unit(make, kind):
    x, y = table()
    records = make(x)
    records = records.rename(columns=str) if hasattr(records, "rename") else records
    auto = Funnel(**TINY | {"epochs": 1}).fit(records, y).modules_["scaling"]
    said = Funnel(**TINY | {"epochs": 1}, scale=kind).fit(records, y).modules_["scaling"]
    for name, tensor in said.state_dict().items():
        assert torch.equal(auto.state_dict()[name], tensor), name
    assert len(set(auto.width.tolist())) == 1 or kind == "columns"


def test_columns_are_scaled_one_by_one():
    x, y = table()
    scaling = scaling_of(Funnel(**TINY).fit(x, y).modules_)
    scaled = scaling(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=2e-3)
    spread = scaled.std(axis=0)
    np.testing.assert_allclose(spread[:3], 1, rtol=1e-2)
    assert spread[3] == pytest.approx(x[:, 3].std(), rel=1e-5)  # a rare category is not blown up
    assert spread[4] == 0
    np.testing.assert_allclose(scaling.inverse(torch.from_numpy(scaled)), x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", ["columns", "common"])
def test_units_change_nothing_but_the_units(scale, digits):
    x, y, x_new, _ = digits
    x, x_new = x + np.float32(1), x_new + np.float32(1)  # no indicators
    one = Funnel(**TINY, scale=scale).fit(x, y)
    two = Funnel(**TINY, scale=scale).fit(256 * x, y)  # a power of two rounds alike
    z = one.transform(x_new)
    np.testing.assert_array_equal(two.transform(256 * x_new), z)
    varied = x.std(axis=0) > 1e-3
    first, second = (model.inverse_transform(z)[:, varied] for model in (one, two))
    np.testing.assert_allclose(second, 256 * first, rtol=1e-3)


def test_the_scaling_is_that_of_the_first_part():
    x, y = table()
    model = Funnel(**TINY).partial_fit(x, y)
    before = {name: tensor.clone() for name, tensor in model.modules_["scaling"].state_dict().items()}
    model.partial_fit(x * 3, y)
    for name, tensor in model.modules_["scaling"].state_dict().items():
        assert torch.equal(tensor, before[name])


def test_other_estimators_and_fixed_ranges_take_records_as_they_are(digits):
    x, y, _, _ = digits
    for model in (Autoencoder(**TINY), Funnel(**TINY, likelihood="bernoulli"), Funnel.written(**TINY)):
        scaling = scaling_of(model.fit(x, y).modules_)
        records = torch.from_numpy(x)
        assert scaling(records) is records
        assert scaling.inverse(records) is records
    with pytest.raises(InvalidInputError, match="out of the range of likelihood='bernoulli'"):
        Funnel(**TINY, likelihood="bernoulli", scale="columns").fit(x, y)
    with pytest.raises(InvalidInputError, match="scale must be 'auto' or 'columns'"):
        Funnel(**TINY, scale="both").fit(x, y)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_null_loss_is_what_the_best_constant_record_costs(name):
    rng = np.random.default_rng(0)
    family = likelihood(name)
    x = torch.from_numpy(rng.random((101, 1)) * 0.9 + 0.05)
    outputs = torch.linspace(-5, 5, 4001, dtype=torch.float64)[:, None]
    losses = torch.stack([family.loss(outputs, one.expand(4001, 1)) for one in x])
    constant = losses.mean(0).min()  # one output for all records
    perfect = losses.min(1).values.mean()  # one for each
    assert float(family.null_loss(x)) == pytest.approx(float(constant - perfect), abs=2e-3)


def test_records_that_are_all_equal_have_a_unit():
    scaling = Scaling(2)
    scaling.learn(torch.full((5, 2), 3.0), "columns", likelihood("gaussian"))
    assert float(scaling.null_loss) == 1
    assert scaling.width.tolist() == [1, 1]


def gaussian_code(variances, price):
    """Slow twin: what each component of Gaussian records leaves, by search over what it may leave."""
    shares = np.asarray(variances) / np.sum(variances)
    left = np.geomspace(1e-6, 1, 20_001)[:, None] * shares
    cost = left + price * 0.5 * np.log(shares / left)
    return left[cost.argmin(0), np.arange(len(shares))].sum()


@pytest.mark.parametrize("spreads", [[1], [1, 1], [3, 1, 1], [10, 5, 1, 0.1], [1, 0, 0]])
def test_at_the_price_of_code_the_best_linear_code_keeps_its_share(spreads):
    spreads = np.array(spreads, dtype=float)
    n = 64  # orthogonal columns: their variances are those of the principal components
    columns = np.linalg.qr(np.random.default_rng(0).normal(size=(n, 1 + len(spreads))) + 1e3 * np.eye(n, 1))[
        0
    ]
    columns = columns[:, 1:] - columns[:, 1:].mean(0)
    x = torch.from_numpy(columns * spreads)
    variances = np.linalg.eigvalsh(np.cov(x.numpy().T).reshape(len(spreads), -1))
    price = code_price(x)
    assert gaussian_code(variances[variances > 1e-12], price) == pytest.approx(1 - LINEAR_SHARE, rel=0.03)
    assert code_price(x.T.contiguous().T * 7 + 3) == price  # units do not matter


def test_a_price_is_found_for_wide_records_and_for_equal_ones():
    x = torch.randn(20, 300, generator=torch.Generator().manual_seed(0))
    assert 0 < code_price(x) < 0.1
    assert code_price(torch.full((5, 2), 3.0)) == COMMON_PRICE


def test_funnels_take_the_price_of_their_records_unless_they_are_told_one():
    x, y = table()
    found = Funnel(**TINY).fit(x, y)
    assert found.step_.weights.alpha == float(scaling_of(found.modules_).code_price) > COMMON_PRICE
    assert Funnel(**TINY, alpha=0.5).fit(x, y).step_.weights.alpha == 0.5
    assert Funnel(**TINY, objective="dca").fit(x, y).step_.weights.alpha == COMMON_PRICE
    with pytest.raises(InvalidInputError, match="alpha must be a finite number"):
        Autoencoder(**TINY, alpha=None).fit(x)


def test_auto_is_decided_by_spread():
    x = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    options = {"is_frame": False, "is_stack": False, "family": likelihood("gaussian")}
    assert kind_of_scaling("auto", x * torch.tensor([1.0, 1.0, 5.0]), **options) == "common"
    assert kind_of_scaling("auto", x * torch.tensor([1.0, 1.0, 50.0]), **options) == "columns"
