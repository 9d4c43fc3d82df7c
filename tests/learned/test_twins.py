"""The readings of the paper's solver against literal slow twins; PublishedFunnel has its own file."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import distributions, nn

from privacyfunnel.attributes import read_attributes
from privacyfunnel.learned import Funnel, families
from privacyfunnel.learned.families import likelihood
from privacyfunnel.learned.networks import scaling_of
from privacyfunnel.learned.objectives import describe
from privacyfunnel.learned.steps import Batch

# Written down here once more: of the running mean behind P_z, and of the gradients.
MOMENT, CLIP = 0.1, 5.0
SMALL = {"hidden": (16, 16), "learning_rate": 3e-3}
#: What the constructors must come to, written down here once more.
PRINTED = {
    "alpha": 0.01,
    "beta": 0.05,
    "square": True,
    "density": "normal",
    "weight": 1.0,
    "at_once": False,
    "fresh": 0,
}
SUM = PRINTED | {"beta": 1.0, "alpha": None, "square": False, "at_once": True, "fresh": 3}
READINGS = {
    "written": (Funnel.written(4, **SMALL), PRINTED),
    "mended": (
        Funnel.written(4, mended=True, **SMALL),
        PRINTED | {"density": "bernoulli", "weight": 0.2, "at_once": True},
    ),
    "default": (Funnel(4, **SMALL), SUM),
    "square, strong classifier, offset": (
        Funnel.written(4, classifier="mlp", classifier_steps=2, leakage_weight=3.0, offset=0.2, **SMALL),
        PRINTED | {"weight": 3.0, "fresh": 2, "offset": 0.2},
    ),
    "sum, alternating": (
        Funnel(4, schedule="alternating", classifier="linear", classifier_steps=1, **SMALL),
        SUM | {"at_once": False, "fresh": 0},
    ),
    "Laplace": (Funnel.written(4, likelihood="laplace", **SMALL), PRINTED | {"density": "laplace"}),
}
DENSITIES = {
    "normal": lambda output: distributions.Normal(output, 1.0),
    "laplace": lambda output: distributions.Laplace(output, 1.0),
}


class Twin:
    """eq:unkn_alg written out: full forward passes, plain Adam optimisers, torch's own densities."""

    def __init__(self, modules, rate, *, alpha, beta, square, density, weight, at_once, fresh, offset=0.0):
        self.encoder, self.decoder, self.classifier = (
            modules[n] for n in ("encoder", "decoder", "classifier")
        )
        self.alpha, self.beta, self.weight, self.offset = alpha, beta, weight, offset
        self.square, self.density, self.at_once, self.clamped = square, density, at_once, True
        both = [*self.decoder.parameters(), *self.classifier.parameters()]
        self.decoding = [*self.decoder.parameters()] if fresh else both
        self.first = torch.optim.Adam(self.decoding, lr=rate)
        self.second = torch.optim.Adam(self.encoder.parameters(), lr=rate)
        self.third = torch.optim.Adam(self.classifier.parameters(), lr=2 * rate)
        self.variance = torch.ones(self.encoder.heads.out_features // 2)

    def negative_log(self, z, x):
        output = self.decoder(z)
        if self.density == "bernoulli":
            p = torch.sigmoid(output)
            return -(x * torch.log(p) + (1 - x) * torch.log(1 - p)).sum(1).mean()
        return -DENSITIES[self.density](output).log_prob(x).sum(1).mean()

    def cross_entropy(self, z, y):
        return -torch.log_softmax(self.classifier(z), 1)[torch.arange(len(y)), y].mean()

    def classify(self, x, y, noise):
        loc, log_scale = self.encoder(x)
        z = (loc + torch.exp(log_scale) * noise).detach()
        self.third.zero_grad()
        self.cross_entropy(z, y).backward()
        nn.utils.clip_grad_norm_(self.classifier.parameters(), CLIP)
        self.third.step()

    def batch(self, x, y, noise, entropy, half_variance):
        lost, told = (1.0, 1.0) if self.square else (half_variance, entropy)

        def terms():
            loc, log_scale = self.encoder(x)
            z = loc + torch.exp(log_scale) * noise
            return loc, log_scale, z, self.negative_log(z, x), self.cross_entropy(z, y)

        _, _, _, rec, cross_entropy = terms()
        self.first.zero_grad()
        (self.beta * rec / lost + cross_entropy).backward()
        nn.utils.clip_grad_norm_(self.decoding, CLIP)
        from_before = [parameter.grad.clone() for parameter in self.decoding]
        if not self.at_once:
            self.first.step()
        loc, log_scale, z, rec, cross_entropy = terms()
        leakage = entropy - cross_entropy
        if self.clamped:
            leakage = torch.clamp(leakage, min=0)
        variance = (1 - MOMENT) * self.variance + MOMENT * (z**2).mean(0)
        ratio = variance / self.variance
        prior = 0.5 * (ratio - 1 - torch.log(ratio)).sum()
        kl = (0.5 * (loc**2 + torch.exp(2 * log_scale) - 1) - log_scale).sum(1).mean()
        if self.square:
            residual = self.weight * leakage + prior + self.beta * rec - self.offset
            loss = 0.5 * residual**2 + self.alpha * kl
        else:
            residual = self.weight * leakage / told + self.beta * rec / lost
            loss = residual + self.alpha * kl
        self.second.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.encoder.parameters(), CLIP)
        self.second.step()
        if self.at_once:
            for parameter, gradient in zip(self.decoding, from_before, strict=True):
                parameter.grad = gradient
            self.first.step()
        self.variance = variance.detach()
        return {
            "residual": float(residual.detach()),
            "reconstruction": float(rec.detach()),
            "leakage": float(leakage.detach()),
        }


def begun(estimator, n=64, seed=0):
    """A step of the estimator, batches for it, and the private attribute, of which codes tell much."""
    torch.manual_seed(0)
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.random((n, 10), dtype=np.float32)).to(torch.get_default_dtype())
    y = x[:, :3].argmax(1).numpy()
    private = describe(read_attributes({"y": y}))
    modules = estimator._modules(10, private)
    tell(modules, x, torch.from_numpy(y))
    scaling_of(modules).learn(x, "none", likelihood(estimator.likelihood))
    step = estimator._step(modules, private, torch.Generator().manual_seed(1))
    return step, Batch(x, private.encode(read_attributes(y, like=private.attributes))), private


def tell(modules, x, y):
    """Teach encoder and classifier the private attribute: an Î below 0 is clamped, and tests nothing."""
    learner = torch.optim.Adam(
        [*modules["encoder"].parameters(), *modules["classifier"].parameters()], lr=0.02
    )
    for _ in range(100):
        loc, log_scale = modules["encoder"](x)
        loss = nn.functional.cross_entropy(modules["classifier"](loc), y) + ((log_scale + 2) ** 2).mean()
        learner.zero_grad()
        loss.backward()
        learner.step()
    modules.zero_grad()


def run(estimator, reading, n_batches=3):
    """The terms of the last of some batches, ours and the twin's, and the networks of both."""
    step, batch, private = begun(estimator)
    modules = copy.deepcopy(step.modules)
    generator = torch.Generator().set_state(step.generator.get_state())
    if reading["alpha"] is None:
        reading = reading | {"alpha": float(scaling_of(modules).code_price)}
    twin = Twin(modules, SMALL["learning_rate"], **reading)
    (y,) = batch.targets
    half_variance = 0.5 * float(batch.x.var(0, correction=0).sum())
    for _ in range(n_batches):
        ours = step(batch, lambda: batch)
        for _ in range(reading["fresh"]):
            twin.classify(batch.x, y, torch.randn((64, 4), generator=generator))
        noise = torch.randn((64, 4), generator=generator)
        theirs = twin.batch(batch.x, y, noise, private.entropy, half_variance)
    return {name: float(value) for name, value in ours.items()}, theirs, step.modules, modules


@pytest.fixture
def double():
    """Adam makes a whole step of a gradient that is next to nothing: in single precision of its rounding."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", READINGS)
def test_a_reading_is_that_of_its_literal_twin(name):
    estimator, reading = READINGS[name]
    ours, theirs, modules, others = run(estimator, reading)
    assert theirs["leakage"] > 0.1
    assert ours["leakage"] == pytest.approx(theirs["leakage"], abs=1e-6)
    assert ours["reconstruction"] == pytest.approx(theirs["reconstruction"], rel=1e-6)
    if reading["square"]:
        assert theirs["residual"] > 0.2
        assert ours["residual"] == pytest.approx(theirs["residual"], rel=1e-6)
        rate = reading["beta"] / reading["alpha"] * theirs["residual"]
        assert ours["exchange_rate"] == pytest.approx(rate, rel=1e-6)
    else:
        assert "residual" not in ours  # a sum has no exchange rate
        assert "constant" not in ours
    for network in ("encoder", "decoder", "classifier"):
        for mine, other in zip(modules[network].parameters(), others[network].parameters(), strict=True):
            torch.testing.assert_close(mine, other, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("mended", [False, True])
def test_what_the_paper_says_of_training_beside_its_formula(mended):
    printed = Funnel.written(mended=mended)
    assert (printed.epochs, printed.batch_size, printed.learning_rate) == (100, 256, 3e-4)
    assert (printed.n_components, printed.classifier, printed.classifier_steps) == (64, "linear", 1)


@pytest.fixture
def without_constant(monkeypatch):
    """What drops the constant of the Gaussian when it is called."""
    dropped = replace(likelihood("gaussian"), constant=0.0)
    return lambda: monkeypatch.setitem(families.LIKELIHOODS, "gaussian", dropped)


def test_a_constant_that_is_dropped_inside_the_square_shows_in_the_twin(without_constant):
    """(n/2) log 2π for ten features is 9.2 nats: most of R comes from it."""
    estimator, reading = Funnel.written(4, beta=0.3, **SMALL), PRINTED | {"beta": 0.3}
    whole, theirs, modules, others = run(estimator, reading)
    assert whole["constant"] == pytest.approx(0.3 * 5 * math.log(2 * math.pi))
    assert whole["constant"] > 0.5 * whole["residual"]
    without_constant()
    less, _, changed, _ = run(estimator, reading)
    assert less["residual"] < 0.5 * theirs["residual"]
    ours, without, twins = (
        torch.cat([p.detach().ravel() for p in networks["encoder"].parameters()])
        for networks in (modules, changed, others)
    )
    assert torch.allclose(ours, twins, atol=1e-6)
    assert not torch.allclose(without, twins, atol=1e-4)


def test_a_constant_leaves_the_plain_sum_as_it_is(without_constant):
    estimator, reading = READINGS["default"]
    whole, _, modules, _ = run(estimator, reading)
    without_constant()
    less, _, others, _ = run(estimator, reading)
    assert whole["reconstruction"] - less["reconstruction"] == pytest.approx(5 * math.log(2 * math.pi))
    assert whole["encoder_loss"] == less["encoder_loss"]
    for mine, other in zip(modules.parameters(), others.parameters(), strict=True):
        assert torch.equal(mine, other)
    # The unit is half the variance: the term is the unexplained share of it.
    _, batch, _ = begun(estimator)
    half_variance = 0.5 * float(batch.x.var(0, correction=0).sum())
    assert float(scaling_of(modules).null_loss) == pytest.approx(half_variance)


@pytest.mark.parametrize("clamped", [True, False])
def test_the_printed_reading_runs_away_without_its_clamp(clamped):
    """The twin, for an epoch on digits, with an R as large as that of MNIST at the paper's weights.

    Nothing is worth as much as a classifier that is wrong: an Î of −37 nats, which no information can be,
    lowers the square to 0, where it would take a density of 1 at every picture.
    """
    from sklearn.datasets import load_digits

    data = load_digits()
    x, y = torch.from_numpy((data.data / 16).astype(np.float32)), torch.from_numpy(data.target)
    torch.manual_seed(0)
    private = describe(read_attributes({"y": data.target}))
    beta = 0.05 * 784 / 64
    modules = Funnel.written(64, beta=beta)._build(64, private)
    twin = Twin(modules, 3e-4, **PRINTED | {"beta": beta})
    twin.clamped = clamped
    found = []
    for rows in torch.randperm(len(x)).split(16):
        found.append(twin.batch(x[rows], y[rows], torch.randn(len(rows), 64), private.entropy, 1.0))
    leakage = [terms["leakage"] for terms in found]
    assert 35 < found[0]["residual"] < 45
    if clamped:
        assert min(leakage) == 0
        assert 35 < found[-1]["residual"] < 45
    else:
        assert min(leakage) < -30
        assert abs(found[-1]["residual"]) < 5
