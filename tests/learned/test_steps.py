"""One mini-batch: which parameters each step may touch, and literal twins of parts of it."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from privacyfunnel.attributes import read_attributes
from privacyfunnel.learned import Autoencoder, ConditionalFunnel, Funnel, steps
from privacyfunnel.learned.families import likelihood
from privacyfunnel.learned.networks import n_parameters, scaling_of
from privacyfunnel.learned.objectives import describe
from privacyfunnel.learned.steps import GRADIENT_CLIP, Batch


@pytest.mark.parametrize(
    ("d", "total"), [(32, 1_084_742), (64, 1_133_190), (128, 1_230_086), (256, 1_423_878)]
)
def test_the_papers_table_of_parameters(d, total):
    private = describe(read_attributes({"y": np.arange(10)}))
    assert n_parameters(Funnel(d, classifier="linear")._build(784, private)) == total


def make_step(**options):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=64)
    private = describe(read_attributes({"y": y}))
    estimator = Funnel.written(4, alpha=0.02, beta=0.3, **{"hidden": (16, 16)} | options)
    generator = torch.Generator().manual_seed(1)
    x = torch.from_numpy(rng.random((64, 10), dtype=np.float32))
    modules = estimator._modules(10, private)
    scaling_of(modules).learn(x, "none", likelihood("gaussian"))
    step = estimator._step(modules, private, generator)
    return step, Batch(x, private.encode(read_attributes(y, like=private.attributes))), private


def watched(step, monkeypatch):
    """Which optimiser moved the parameters of which networks, in order."""
    moved = []

    def watch(optimiser, loss, original=steps.update):
        before = {name: p.detach().clone() for name, p in step.modules.named_parameters()}
        original(optimiser, loss)
        changed = {
            name.split(".")[0]
            for name, p in step.modules.named_parameters()
            if not torch.equal(p, before[name])
        }
        kind = next(name for name, one in step.optimisers.items() if one is optimiser)
        moved.append((kind, changed))

    monkeypatch.setattr("privacyfunnel.learned.steps.update", watch)
    return moved


def test_the_papers_steps_move_only_their_own_parameters(monkeypatch):
    step, batch, _ = make_step()
    moved = watched(step, monkeypatch)
    step(batch, lambda: batch)
    assert moved == [("decoder", {"decoder", "classifier"}), ("encoder", {"encoder"})]


def test_steps_of_the_classifier_move_it_alone_and_nothing_else_does(monkeypatch):
    step, batch, _ = make_step(classifier="mlp", classifier_steps=3)
    moved = watched(step, monkeypatch)
    step(batch, lambda: batch)
    assert moved == [("classifier", {"classifier"})] * 3 + [
        ("decoder", {"decoder"}),
        ("encoder", {"encoder"}),
    ]
    held = [{id(p) for p in one.param_groups[0]["params"]} for one in step.optimisers.values()]
    assert sum(map(len, held)) == len(set.union(*held))


def test_steps_of_the_classifier_are_those_of_a_literal_twin():
    """Three steps, each on a batch and noise of its own, at twice the rate."""
    step, batch, private = make_step(classifier_steps=3, learning_rate=1e-2)
    rng = np.random.default_rng(7)
    others = [
        Batch(
            torch.from_numpy(rng.random((64, 10), dtype=np.float32)),
            private.encode(read_attributes(rng.permuted(y), like=private.attributes)),
        )
        for y in [np.arange(64) % 3] * 3
    ]
    generator = torch.Generator().set_state(step.generator.get_state())
    encoder, twin = copy.deepcopy(step.modules["encoder"]), copy.deepcopy(step.modules["classifier"])
    optimiser = torch.optim.Adam(twin.parameters(), lr=2e-2)
    for other in others:
        loc, log_scale = encoder(other.x)
        z = (loc + torch.exp(log_scale) * torch.randn((64, 4), generator=generator)).detach()
        optimiser.zero_grad()
        nn.functional.cross_entropy(twin(z), other.targets[0]).backward()
        nn.utils.clip_grad_norm_(twin.parameters(), GRADIENT_CLIP)
        optimiser.step()
    waiting = iter(others)
    step(batch, lambda: next(waiting))
    assert next(waiting, None) is None
    for ours, theirs in zip(step.modules["classifier"].parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6)


def test_the_prior_is_a_real_earlier_copy():
    step, batch, _ = make_step()
    before = step.modules["prior"].log_scale.clone()
    terms = step(batch, lambda: batch)
    assert float(terms["prior_divergence"]) > 0
    assert not torch.equal(step.modules["prior"].log_scale, before)
    assert torch.equal(step.modules["prior"].loc, torch.zeros(4))


def test_a_classifier_worse_than_guessing_counts_as_no_leakage():
    step, batch, _ = make_step()
    with torch.no_grad():
        step.modules["classifier"].weight.mul_(100)
    terms = step(batch, lambda: batch)
    assert float(terms["cross_entropy"]) > np.log(3)
    assert float(terms["leakage"]) == 0


@pytest.mark.parametrize("kind", [Autoencoder, ConditionalFunnel])
def test_a_step_of_the_variational_estimators_is_that_of_a_literal_twin(kind):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=64)
    conditional = kind is ConditionalFunnel
    private = describe(read_attributes({"y": y})) if conditional else None
    weights = {"gamma": 1.7} if conditional else {"alpha": 0.2, "beta": 0.7}
    estimator = kind(4, hidden=(16, 16), **weights)
    step = estimator._step(estimator._build(10, private), private, torch.Generator().manual_seed(1))
    twin, noise = (
        copy.deepcopy(step.modules),
        torch.randn((64, 4), generator=torch.Generator().manual_seed(1)),
    )
    x = torch.from_numpy(rng.random((64, 10), dtype=np.float32))
    batch = Batch(x, [] if private is None else private.encode(read_attributes(y, like=private.attributes)))
    terms = step(batch, lambda: batch)

    parameters = [*twin["encoder"].parameters(), *twin["decoder"].parameters()]
    optimiser = torch.optim.Adam(parameters, lr=3e-4)
    loc, log_scale = twin["encoder"](x)
    z = loc + torch.exp(log_scale) * noise
    seen = torch.cat([z, torch.eye(3)[torch.from_numpy(y)]], dim=1) if conditional else z
    rec = (0.5 * (twin["decoder"](seen) - x) ** 2).sum() / 64
    kl = (0.5 * (loc**2 + torch.exp(2 * log_scale) - 1) - log_scale).sum() / 64
    loss = kl + 1.7 * rec if conditional else 0.2 * kl + 0.7 * rec
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, GRADIENT_CLIP)
    optimiser.step()
    assert float(terms["loss"]) == pytest.approx(float(loss.detach()), rel=1e-5)
    for (name, ours), (_, theirs) in zip(
        step.modules.named_parameters(), twin.named_parameters(), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6, msg=name)


def test_an_autoencoder_has_no_classifier():
    modules = Autoencoder(4, hidden=(8, 8))._build(10, None)
    assert set(modules) == {"encoder", "decoder", "prior"}


def test_a_residual_below_0_pays_for_nothing():
    """An offset above the rest: only the divergence is left to be lowered, and leakage has no reward."""
    step, batch, _ = make_step(offset=100.0)
    terms = step(batch, lambda: batch)
    assert float(terms["residual"]) < 0
    assert float(terms["encoder_loss"]) == pytest.approx(0.02 * float(terms["divergence"]))
