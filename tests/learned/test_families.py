import pytest
import torch
from torch import distributions

from privacyfunnel.errors import InvalidInputError
from privacyfunnel.learned.families import latent, likelihood

TWINS = {"normal": distributions.Normal, "laplace": distributions.Laplace}


@pytest.mark.parametrize("name", TWINS)
def test_divergences_and_densities_agree_with_torch(name):
    generator = torch.Generator().manual_seed(0)
    loc = torch.randn(50, 3, generator=generator, dtype=torch.float64)
    log_scale = torch.randn(50, 3, generator=generator, dtype=torch.float64)
    family, twin = latent(name), TWINS[name]
    one, standard = twin(loc, log_scale.exp()), twin(torch.zeros_like(loc), torch.ones_like(loc))
    expected = distributions.kl_divergence(one, standard).sum(-1)
    torch.testing.assert_close(family.kl_to_standard(loc, log_scale), expected)
    other = torch.randn(50, 3, generator=generator, dtype=torch.float64)
    zero = torch.zeros_like(loc)
    expected = distributions.kl_divergence(twin(zero, log_scale.exp()), twin(zero, other.exp())).sum(-1)
    torch.testing.assert_close(family.kl_of_scales(log_scale, other), expected)
    z = torch.randn(50, 3, generator=generator, dtype=torch.float64)
    expected = one.log_prob(z).sum(-1)
    torch.testing.assert_close(family.log_density(z, loc, log_scale), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", TWINS)
def test_noise_and_divergence_agree_with_monte_carlo(name):
    family, generator = latent(name), torch.Generator().manual_seed(1)
    noise = family.noise((400_000,), generator, torch.device("cpu")).double()
    grid = torch.tensor([0.1, 0.25, 0.5, 0.75, 0.9], dtype=torch.float64)
    expected = TWINS[name](0.0, 1.0).icdf(grid)
    torch.testing.assert_close(torch.quantile(noise[:200_000], grid), expected, atol=0.02, rtol=0)
    torch.testing.assert_close(family.quantile(grid), expected, atol=1e-6, rtol=1e-6)
    loc, log_scale = torch.tensor([0.7]), torch.tensor([-0.5])
    z = (loc + log_scale.exp() * noise.float())[:, None]
    ratio = family.log_density(z, loc, log_scale) - family.log_density(z, torch.zeros(1), torch.zeros(1))
    assert float(ratio.mean()) == pytest.approx(float(family.kl_to_standard(loc, log_scale)), abs=0.01)


@pytest.mark.parametrize("name", TWINS)
def test_the_running_scale_finds_the_scale_of_the_codes(name):
    family, generator = latent(name), torch.Generator().manual_seed(2)
    log_scale = torch.zeros(3)
    true = torch.tensor([-1.0, 0.0, 1.0])
    for _ in range(200):
        z = true.exp() * family.noise((512, 3), generator, torch.device("cpu"))
        log_scale = family.running_log_scale(log_scale, z, 0.1)
    torch.testing.assert_close(log_scale, true, atol=0.05, rtol=0)


def test_likelihoods_are_densities_with_their_constants():
    generator = torch.Generator().manual_seed(3)
    output = torch.randn(20, 4, generator=generator)
    x = torch.rand(20, 4, generator=generator)
    twins = {
        "gaussian": distributions.Normal(output, 1.0),
        "bernoulli": None,
        "laplace": distributions.Laplace(output, 1.0),
        "exponential": distributions.Exponential((-output).exp()),
    }
    for name, twin in twins.items():
        family = likelihood(name)
        loss = family.loss(output, x) + family.constant_of(x)
        if twin is None:
            # Bernoulli with grey values: the cross-entropy, which is no density of them.
            expected = -(x * output.sigmoid().log() + (1 - x) * (-output).sigmoid().log()).sum(1)
            mean = output.sigmoid()
        else:
            expected, mean = -twin.log_prob(x).sum(1), twin.mean
        torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(likelihood(name).mean(output), mean)


def test_unknown_families_are_refused():
    with pytest.raises(InvalidInputError, match="latent must be one of normal, laplace"):
        latent("cauchy")
    with pytest.raises(InvalidInputError, match="likelihood must be one of gaussian"):
        likelihood("poisson")
