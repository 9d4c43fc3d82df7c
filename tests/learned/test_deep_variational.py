"""DVPF: it learns, each of its six updates moves its own networks, and it is labelled a reconstruction."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from privacyfunnel.attributes import read_attributes
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.learned import DeepVariationalFunnel, adversarial
from privacyfunnel.learned.adversarial import DeepVariationalStep, judged, taken_for_real, told_apart
from privacyfunnel.learned.objectives import describe
from privacyfunnel.learned.steps import Batch
from privacyfunnel.learned.training import TrainingStatus

SMALL = {"hidden": (64, 64), "epochs": 12, "batch_size": 100, "learning_rate": 3e-3, "random_state": 0}


def make_step(n=32, **options):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    private = describe(read_attributes({"y": np.arange(3)}))
    estimator = DeepVariationalFunnel(4, hidden=(16, 16), **options)
    step = estimator._step(estimator._build(10, private), private, torch.Generator().manual_seed(1))
    return step, Batch(
        torch.from_numpy(rng.random((n, 10), dtype=np.float32)),
        private.encode(read_attributes(y, like=private.attributes)),
    )


def test_it_learns_and_reconstructs_from_the_code_alone(digits):
    x, y, x_new, _ = digits
    model = DeepVariationalFunnel(8, alpha=0.02, **SMALL).fit(x, y)
    assert model.status_ is TrainingStatus.FINISHED
    assert not model.decoder_needs_private
    model.private_ = None  # neither releasing nor reconstructing looks at it
    error = ((model.inverse_transform(model.transform(x_new)) - x_new) ** 2).mean()
    assert error < 0.8 * ((x.mean(axis=0) - x_new) ** 2).mean()


def test_each_of_the_six_updates_moves_only_its_own_networks(monkeypatch):
    step, batch = make_step()
    moved = []

    def watch(optimiser, loss, original=adversarial.update):
        before = {name: p.detach().clone() for name, p in step.modules.named_parameters()}
        original(optimiser, loss)
        after = step.modules.named_parameters()
        changed = {name.split(".")[0] for name, p in after if not torch.equal(p, before[name])}
        moved.append((next(name for name, one in step.optimisers.items() if one is optimiser), changed))

    monkeypatch.setattr(adversarial, "update", watch)
    terms = step(batch, lambda: batch)
    assert moved == [
        ("variational", {"encoder", "decoder", "uncertainty_decoder"}),
        ("latent_discriminator", {"latent_discriminator"}),
        ("latent_game", {"encoder", "generator"}),
        ("output_discriminators", {"visible_discriminator", "attribute_discriminator"}),
        ("visible_game", {"generator", "decoder"}),
        ("attribute_game", {"generator", "uncertainty_decoder"}),
    ]
    assert {name for name, _ in moved[1:]} < set(terms)
    assert all(parameter.requires_grad for parameter in step.modules.parameters())


def test_the_first_update_is_the_variational_bound():
    step, batch = make_step(alpha=0.3)
    encoder, decoder = step.modules["encoder"], step.modules["decoder"]
    generator = torch.Generator().set_state(step.generator.get_state())
    with torch.no_grad():
        loc, log_scale = encoder(batch.x)
        z = loc + log_scale.exp() * torch.randn(loc.shape, generator=generator)
        y = torch.eye(3)[batch.targets[0]]
        utility = 0.5 * ((decoder(z) - batch.x) ** 2).sum(1).mean()
        uncertain = step.modules["uncertainty_decoder"](torch.hstack([z, y]))
        uncertainty = 0.5 * ((uncertain - batch.x) ** 2).sum(1).mean()
        normal = torch.distributions.Normal
        kl = torch.distributions.kl_divergence(normal(loc, log_scale.exp()), normal(0.0, 1.0)).sum(1).mean()
    terms = step(batch, lambda: batch)
    assert float(terms["loss"]) == pytest.approx(float(utility + 0.3 * (kl + uncertainty)), rel=1e-5)


def test_the_games_are_cross_entropies():
    real, invented = torch.tensor([[2.0], [-1.0]]), torch.tensor([[0.5], [3.0]])
    logits, labels = torch.cat([real, invented]), torch.tensor([[1.0], [1.0], [0.0], [0.0]])
    expected = 2 * functional.binary_cross_entropy(torch.sigmoid(logits), labels)
    torch.testing.assert_close(told_apart(real, invented), expected)
    torch.testing.assert_close(taken_for_real(real), -torch.log(torch.sigmoid(real)).mean())


def test_a_discriminator_sees_the_scale_of_what_it_judges():
    torch.manual_seed(0)
    network = adversarial.adversarial_mlp([4, 8, 8, 1])
    x = torch.randn(64, 4)
    real, invented = judged(network, x, 9 * x + 3)
    assert real.shape == invented.shape == (64, 1)
    assert not torch.allclose(real.std(), invented.std(), rtol=0.1)
    # Apart, normalising would make them the same.
    torch.testing.assert_close(network(x), network(9 * x + 3), atol=1e-3, rtol=1e-3)


def test_the_latent_discriminator_learns_to_tell_when_nobody_plays_against_it():
    step, batch = make_step(adversarial_rate=0.0, learning_rate=1e-2)
    losses = [float(step(batch, lambda: batch)["latent_discriminator"]) for _ in range(40)]
    assert np.mean(losses[-5:]) < 0.6 * losses[0]
    generator = step.modules["generator"]
    before = [p.clone() for p in generator.parameters()]
    step(batch, lambda: batch)
    assert all(torch.equal(a, b) for a, b in zip(before, generator.parameters(), strict=True))


def test_networks_have_the_described_shapes():
    private = describe(read_attributes({"y": np.arange(10)}))
    modules = DeepVariationalFunnel(32)._build(784, private)

    def sizes(name):
        layers = [layer for layer in modules[name].modules() if isinstance(layer, nn.Linear)]
        return [layers[0].in_features, *(layer.out_features for layer in layers)]

    assert sizes("generator") == [100, 200, 32]
    assert sizes("latent_discriminator") == [32, 200, 200, 1]
    assert sizes("visible_discriminator") == [784, 200, 200, 1]
    assert sizes("attribute_discriminator") == [784 + 10, 200, 200, 1]
    assert sizes("decoder") == [32, 500, 784]
    assert sizes("uncertainty_decoder") == [32 + 10, 500, 784]
    kinds = [type(layer) for layer in modules["latent_discriminator"]]
    assert kinds == [*2 * [nn.Linear, nn.BatchNorm1d, nn.LeakyReLU], nn.Linear]
    # Everything that is saved is a weight: no counters, no running statistics.
    assert all(tensor.dtype == torch.float32 for tensor in modules.state_dict().values())


def test_a_single_record_is_left_out_of_the_games():
    step, batch = make_step(n=1)
    before = step.modules["generator"][0].weight.clone()
    terms = step(batch, lambda: batch)
    assert float(terms["loss"]) > 0
    assert float(terms["latent_game"]) == 0
    assert set(terms) == set(make_step()[0](make_step()[1], lambda: batch))
    assert torch.equal(step.modules["generator"][0].weight, before)
    with pytest.raises(InvalidInputError, match="batch_size must be 2 or more"):
        DeepVariationalFunnel(2, batch_size=1).fit(np.eye(4), [0, 1, 0, 1])


def test_numeric_private_attributes_and_images_with_convolutions(digits):
    x, _, x_new, _ = digits
    images = x[:200].reshape(-1, 8, 8)
    model = DeepVariationalFunnel(4, alpha=0.01, architecture="conv", epochs=2, random_state=0)
    model.fit(images, private=images.sum(axis=(1, 2)) + 0.01)
    assert model.private_.columns[0].classes is None
    assert model.inverse_transform(model.transform(x_new.reshape(-1, 8, 8))).shape == (400, 8, 8)


def test_it_is_labelled_a_reconstruction():
    text = DeepVariationalFunnel.__doc__
    assert "a reconstruction, not the authors' program" in text
    assert "What was interpreted here" in text
    assert len(DeepVariationalStep.PARTS) == 6
