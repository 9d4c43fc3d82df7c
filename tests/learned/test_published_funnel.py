"""PublishedFunnel: one mini-batch against a literal twin, and its differences from the text."""

import copy
import math

import numpy as np
import pytest
import torch

from privacyfunnel.attributes import read_attributes
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.learned import PublishedFunnel
from privacyfunnel.learned.objectives import describe
from privacyfunnel.learned.steps import GRADIENT_CLIP, Batch


def make_step(n_classes=3, beta=0.3):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=64)
    private = describe(read_attributes({"y": y}))
    estimator = PublishedFunnel(4, alpha=0.02, beta=beta, hidden=(16, 16))
    step = estimator._step(estimator._build(10, private), private, torch.Generator().manual_seed(1))
    batch = Batch(
        torch.from_numpy(rng.random((64, 10), dtype=np.float32)),
        private.encode(read_attributes(y, like=private.attributes)),
    )
    return step, batch


def literal_twin(modules, batch, alpha, beta, noises, n_steps):
    """Every formula written out, with one plain Adam over all parameters, gradients set to zero."""
    encoder, decoder, classifier = modules["encoder"], modules["decoder"], modules["classifier"]
    everything = [*encoder.parameters(), *decoder.parameters(), *classifier.parameters()]
    adam = torch.optim.Adam(everything, lr=3e-4)
    (y,) = batch.targets
    x = batch.x
    norms = []

    def forward(noise):
        hidden = encoder.body(x)
        output = encoder.heads(hidden)
        loc, log_variance = output[:, :4], output[:, 4:]
        z = loc + torch.exp(log_variance / 2) * noise
        probability = torch.sigmoid(decoder(z))
        rec = -(x * torch.log(probability) + (1 - x) * torch.log(1 - probability)).sum(1).mean()
        first = torch.softmax(classifier(z), 1)
        second = torch.log_softmax(first, 1)
        cross_entropy = -second[torch.arange(len(y)), y].mean()
        kl = 0.5 * (loc**2 + torch.exp(log_variance) - 1 - log_variance).sum(1).mean()
        return rec, cross_entropy, kl

    def move(loss, halves):
        adam.zero_grad(set_to_none=False)
        for parameter in everything:
            parameter.grad = torch.zeros_like(parameter)
        gradients = torch.autograd.grad(loss, halves)
        norms.append(float(torch.sqrt(sum((gradient**2).sum() for gradient in gradients))))
        for parameter, gradient in zip(halves, gradients, strict=True):
            parameter.grad = gradient
        adam.step()

    for k in range(n_steps):
        rec, cross_entropy, _ = forward(noises[2 * k])
        decoder_loss = beta * rec + cross_entropy
        move(decoder_loss, [*decoder.parameters(), *classifier.parameters()])
        rec, cross_entropy, kl = forward(noises[2 * k + 1])
        residual = math.log(3) - cross_entropy + beta * rec
        loss = 0.5 * residual**2 + alpha * kl
        move(loss, [*encoder.parameters()])
    found = {"decoder_loss": decoder_loss, "encoder_loss": loss, "residual": residual}
    return {name: float(value.detach()) for name, value in found.items()}, norms


@pytest.mark.parametrize("beta", [0.3, 20.0])  # with the larger, gradients that others would clip
def test_three_batches_are_those_of_a_literal_twin(beta):
    """Several, because the momentum of the half that rests shows from the second move on."""
    step, batch = make_step(beta=beta)
    twin = copy.deepcopy(step.modules)
    generator = torch.Generator().set_state(step.generator.get_state())
    noises = [torch.randn((64, 4), generator=generator) for _ in range(6)]
    for _ in range(3):
        terms = step(batch, lambda: batch)
    expected, norms = literal_twin(twin, batch, 0.02, beta, noises, 3)
    assert (min(norms) > GRADIENT_CLIP) == (beta > 1)
    for name, value in expected.items():
        assert float(terms[name]) == pytest.approx(value, rel=1e-6), name
    for (name, ours), (_, theirs) in zip(
        step.modules.named_parameters(), twin.named_parameters(), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6, msg=name)


def test_the_half_that_rests_goes_on_by_its_momentum():
    step, batch = make_step()
    step(batch, lambda: batch)
    before = [parameter.detach().clone() for parameter in step.coding]
    step._move(torch.zeros((), requires_grad=True) + step.decoding[0].sum(), step.decoding)
    moved = [not torch.equal(a, b) for a, b in zip(before, step.coding, strict=True)]
    assert all(moved)


def test_probabilities_for_logits_confine_the_leakage():
    """Ten classes: between −0.16 and 0.84 nats, however sure the classifier is."""
    step, batch = make_step(10)
    classifier = step.modules["classifier"]
    with torch.no_grad():
        classifier.weight.zero_()
        classifier.bias.copy_(torch.where(torch.arange(10) == 3, 100.0, 0.0))
    codes = torch.zeros((64, 4))
    for label, expected in ((3, 0.8417), (4, -0.1583)):
        judged = Batch(batch.x, [torch.full((64,), label)])
        leakage = math.log(10) - float(step._terms(codes, judged)[1].detach())
        assert leakage == pytest.approx(expected, abs=1e-3)


def test_it_is_an_estimator_like_the_others(tmp_path, digits):
    x, y, new, _ = digits
    model = PublishedFunnel(8, hidden=(32, 32), epochs=2, random_state=0).fit(x, y)
    assert "for comparison only and protects nobody" in str(model.verdict_)
    codes = model.transform(new)
    assert codes.shape == (400, 8)
    assert model.inverse_transform(codes).shape == new.shape
    model.save(tmp_path / "model")
    import privacyfunnel as pf

    loaded = pf.load(tmp_path / "model")
    assert loaded.verdict_ == model.verdict_
    loc, log_scale = loaded.encode(new)
    np.testing.assert_array_equal(loc, model.encode(new)[0])
    np.testing.assert_array_equal(log_scale, model.encode(new)[1])


def test_what_it_is_not_for(digits):
    x, y, *_ = digits
    with pytest.raises(InvalidInputError, match="one private attribute with classes"):
        PublishedFunnel(4).fit(x, np.random.default_rng(0).random(len(x)))
    with pytest.raises(InvalidInputError, match="fully connected"):
        PublishedFunnel(4, architecture="conv").fit(x.reshape(-1, 8, 8), y)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        PublishedFunnel(4).fit(3 * x, y)
