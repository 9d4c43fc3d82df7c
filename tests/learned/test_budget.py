"""Budget mode: the target is met on records nobody saw, or the user is told that it was not."""

import numpy as np
import pytest
import torch

from privacyfunnel.auditing import boosted_trees, leakage_lower_bound, neural_network
from privacyfunnel.auditing.adversaries import LeakageBound
from privacyfunnel.errors import ConvergenceWarning, FileFormatError, InvalidInputError
from privacyfunnel.learned import Funnel
from privacyfunnel.learned.budget import (
    HIGHEST_FACTOR,
    LEAST_AUDITS,
    Audit,
    BudgetStatus,
    Controller,
    stalled,
)
from privacyfunnel.learned.training import TrainingStatus
from privacyfunnel.measured import Interval

SETTINGS = {
    "n_components": 4,
    "hidden": (32, 32),
    "epochs": 16,
    "batch_size": 128,
    "learning_rate": 3e-3,
    "alpha": 0.02,
    "beta": 0.5,
    "objective": "lagrangian",
    "random_state": 0,
}

# A few epochs meet a budget by learning nothing, and say so.
USELESS = pytest.mark.filterwarnings("ignore:.*nearly useless:privacyfunnel.errors.ConvergenceWarning")


def records(n, seed):
    """Two features that tell y, one by its mean and one by its spread, and four that do not."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 6))
    x[:, 0] = 0.5 * x[:, 0] + 2 * y - 1
    x[:, 1] *= np.where(y, 1.5, 0.5)
    return x.astype(np.float32), y


def audit_of(upper, reconstruction, accepted=True):
    interval = Interval(0.0, upper, 0.95, "held-out", 0)
    bound = LeakageBound(upper, 0.0, interval, 90, 90, "mlp", 0.5, 0.5, 0.5, 1.0)
    return Audit(1, 1.0, bound, upper, 0.0, reconstruction, accepted)


@pytest.fixture(scope="module")
def met():
    torch.set_num_threads(1)
    return Funnel(max_leakage=0.1, **SETTINGS).fit(*records(2400, 0))


def test_a_reachable_target_is_met_on_records_that_nobody_saw(met):
    budget = met.budget_
    assert budget.status is BudgetStatus.MET
    assert budget.accepted
    assert budget.bound.kind == "lower bound"
    assert budget.bound.value <= budget.upper <= budget.target == 0.1
    x, y = records(4000, 1)
    z = met.transform(x)
    for adversary in (boosted_trees(5), neural_network(5)):
        bound = leakage_lower_bound(adversary, z[:2000], y[:2000], z[2000:], y[2000:], n_folds=2)
        assert bound.interval.low <= 0.1
    raw = leakage_lower_bound(boosted_trees(5), x[:2000], y[:2000], x[2000:], y[2000:], n_folds=2)
    assert raw.value > 0.7  # there was something to hide
    assert ((met.inverse_transform(z) - x) ** 2).mean() < 0.8 * x.var(axis=0).mean()


def test_the_trace_tells_how(met):
    trace = met.budget_.trace
    assert len(trace) >= 8
    assert [audit.epoch for audit in trace] == sorted({audit.epoch for audit in trace})
    assert trace[-1].epoch == 16
    for audit in trace:
        assert audit.accepted == (audit.upper <= 0.1)
        end = audit.bound.value + 1.64 * audit.bound.standard_error
        assert audit.upper == pytest.approx(max(end, audit.training))
    assert len({audit.leakage_weight for audit in trace}) > 3
    assert met.budget_.leakage_weight in {audit.leakage_weight for audit in trace if audit.accepted}


class Noisy(torch.nn.Module):
    """Codes of which each shows little: much noise, most of it in components that tell nothing."""

    def __init__(self):
        super().__init__()
        self.strength = torch.nn.Parameter(torch.tensor(1.2))

    def forward(self, x):
        return self.strength * x, torch.zeros_like(x)


def test_a_code_that_hides_from_who_sees_each_record_once_is_not_accepted(monkeypatch):
    """Whoever owns the encoder draws as many codes of the same few records as it likes."""
    from privacyfunnel.learned import budget as mode

    def train(step, x, targets, *, epochs, progress, **options):
        progress.epoch, progress.status = epochs, TrainingStatus.FINISHED
        progress.history.append({"leakage": 0.0, "reconstruction": 1.0})

    rng = np.random.default_rng(0)
    x = np.zeros((800, 24), dtype=np.float32)
    x[:, :2] = rng.choice([-1, 1], size=(800, 2))
    y = (x[:, 0] == x[:, 1]).astype(int)
    monkeypatch.setattr(mode, "train", train)
    monkeypatch.setattr(Funnel, "_encoder", lambda self, n_features: Noisy())
    options = SETTINGS | {"epochs": 1, "n_components": 24, "scale": "none"}
    with pytest.warns(ConvergenceWarning, match=r"max_leakage=0\.2 bit: .* never within the budget"):
        budget = Funnel(max_leakage=0.2, **options).fit(x, y).budget_
    assert budget.bound.adversary == "network with fresh noise"
    assert budget.bound.n_train == 680  # all but those of the verdict
    (audit,) = budget.trace
    assert audit.bound.adversary == "network with fresh noise"
    assert audit.bound.n_train == 560
    assert not audit.accepted
    # Those that see each record once find a tenth of the budget.
    monkeypatch.setattr(mode, "QUICK", None)
    monkeypatch.setattr(mode, "THOROUGH", None)
    with pytest.warns(ConvergenceWarning, match="nearly useless"):
        once = Funnel(max_leakage=0.2, **options).fit(x, y).budget_
    assert once.accepted
    assert once.upper < 0.1 < 0.2 < budget.upper


@pytest.mark.parametrize(
    ("times", "kept", "tried"),
    [
        ([1.0], 0.99, [0.99]),  # the one that keeps most is confirmed
        ([1.2, 1.2], 0.8, [0.99, 0.8]),  # it is not: the next that would be, were as many times more found
        ([1.2, 2.0, 2.0], 0.1, [0.99, 0.8, 0.1]),  # at last the safest
        ([20.0, 20.0], 0.1, [0.99, 0.1]),  # of none can it be hoped
    ],
)
def test_what_is_not_confirmed_is_followed_by_what_likely_is(times, kept, tried):
    from privacyfunnel.learned import budget as mode

    asked = []

    def found():
        return times[len(asked) - 1] * asked[-1]

    class Saved:
        def __init__(self, upper):
            self.audit = audit_of(upper, 1 - upper)

        def restore(self, step):
            asked.append(self.audit.upper)

    search = mode._Search(Controller(0.8, 1.0))
    search.within = [Saved(upper) for upper in (0.9, 0.1, 0.99, 0.8, 0.5)]
    search.least = search.within[1]
    saved, _, upper = mode._choose(search, None, lambda z: (None, found()), 1.0)
    assert saved.audit.upper == kept
    assert upper == pytest.approx(times[-1] * kept)
    assert asked == tried


@USELESS
def test_held_out_records_are_not_trained_on(monkeypatch):
    from privacyfunnel.learned import budget as mode
    from privacyfunnel.learned import judges

    seen, audited = [], []
    x, y = records(600, 2)
    original, release = mode.train, judges.release

    def train(step, x, targets, **options):
        seen.append(x)
        return original(step, x, targets, **options)

    def spy(step, x, rows, noise):
        audited.append(rows)
        return release(step, x, rows, noise)

    monkeypatch.setattr(mode, "train", train)
    monkeypatch.setattr(judges, "release", spy)
    model = Funnel(max_leakage=2.0, **(SETTINGS | {"epochs": 2})).fit(x, y)
    trained = {row.tobytes() for row in seen[0].numpy()}
    assert len(trained) == 420
    assert all(len(part) == 420 for part in seen)
    # After the codes learnt from; before those apart and the reconstructed ones.
    steering, verdict = audited[1], audited[-3]
    assert set(verdict) == set(audited[-1])
    assert len(steering) == len(verdict) == model.budget_.bound.n == 90
    assert not set(steering) & set(verdict)
    assert not any(row.tobytes() in trained for row in x[np.concatenate([steering, verdict])])


def test_a_target_out_of_reach_is_reported():
    with pytest.warns(ConvergenceWarning, match=r"max_leakage=0\.001 bit: at least .* never within"):
        model = Funnel(
            max_leakage=0.001, **(SETTINGS | {"epochs": 2, "beta": 20.0, "leakage_weight": 1e-3})
        ).fit(*records(1000, 0))
    budget = model.budget_
    assert not budget.accepted
    assert budget.status is BudgetStatus.NOT_MET
    assert budget.upper > budget.target
    least = min(budget.trace, key=lambda audit: audit.upper)
    assert budget.leakage_weight == least.leakage_weight
    assert np.isfinite(model.transform(records(10, 3)[0])).all()


@USELESS
def test_the_same_seed_gives_the_same_search():
    one, two = (Funnel(max_leakage=0.3, **(SETTINGS | {"epochs": 3})).fit(*records(600, 0)) for _ in range(2))
    assert one.budget_ == two.budget_
    for a, b in zip(one.modules_.parameters(), two.modules_.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_code_that_meets_the_budget_by_saying_nothing_is_told():
    with pytest.warns(ConvergenceWarning, match=r"max_leakage=2 bit: .* nearly useless"):
        model = Funnel(max_leakage=2.0, **(SETTINGS | {"epochs": 2})).fit(*records(600, 2))
    budget = model.budget_
    assert budget.accepted
    assert budget.status is BudgetStatus.MET_BUT_USELESS
    assert not budget.status.ok
    assert budget.explained < 0.05


def test_what_is_explained_is_about_records_that_nobody_saw(met):
    assert met.budget_.explained > 0.2
    x, _ = records(2000, 3)
    left = ((met.inverse_transform(met.transform(x)) - x) ** 2).mean()
    assert met.budget_.explained == pytest.approx(1 - left / x.var(axis=0).mean(), abs=0.1)


@USELESS
def test_a_killed_search_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    from privacyfunnel.learned import budget as mode

    class Killed(BaseException):
        """The end of the process."""

    def write_and_die(*args, original=mode.write_checkpoint, left=[2]):  # noqa: B006
        original(*args)
        left[0] -= 1
        if not left[0]:
            raise Killed

    x, y = records(600, 0)
    options = SETTINGS | {"epochs": 3, "max_leakage": 0.3, "beta": 2.0}
    with monkeypatch.context() as patch:
        patch.setattr(mode, "write_checkpoint", write_and_die)
        with pytest.raises(Killed):
            Funnel(**options, checkpoint=tmp_path).fit(x, y)
    resumed = Funnel(**options, checkpoint=tmp_path).fit(x, y)
    whole = Funnel(**options).fit(x, y)
    assert len(whole.budget_.trace) == 3
    assert resumed.budget_ == whole.budget_
    assert resumed.progress_ == whole.progress_
    again = Funnel(**options, checkpoint=tmp_path).fit(x, y)  # nothing left to do but the verdict
    for other in (resumed, again):
        for a, b in zip(other.modules_.parameters(), whole.modules_.parameters(), strict=True):
            assert torch.equal(a, b)
    with pytest.raises(FileFormatError, match="belongs to another run"):
        Funnel(**(options | {"max_leakage": None}), checkpoint=tmp_path).fit(x, y)


@USELESS
def test_a_search_without_a_seed_keeps_the_same_records_apart_when_it_goes_on(tmp_path, monkeypatch):
    from privacyfunnel.learned import budget as mode

    trained = []

    def train(step, x, targets, *, original=mode.train, **options):
        trained.append(x)
        if len(trained) == 2:
            raise MemoryError
        return original(step, x, targets, **options)

    monkeypatch.setattr(mode, "train", train)
    x, y = records(600, 0)
    options = SETTINGS | {"epochs": 3, "max_leakage": 2.0, "random_state": None, "checkpoint": tmp_path}
    first = Funnel(**options)
    with pytest.raises(MemoryError):
        first.fit(x, y)
    Funnel(**options).fit(x, y)
    assert all(torch.equal(part, trained[0]) for part in trained)
    assert not hasattr(first, "seed_")  # nothing half fitted


def test_the_status_is_that_of_the_weights_that_are_kept(monkeypatch):
    from privacyfunnel.learned import budget as mode

    def train(step, x, targets, *, progress, original=mode.train, **options):
        original(step, x, targets, progress=progress, **options)
        progress.status = TrainingStatus.COLLAPSED if progress.epoch == 1 else TrainingStatus.FINISHED

    def audit(step, *rest, ends=iter([0.01, 0.9, 0.9, 0.01]), **options):  # noqa: B008
        upper = next(ends)
        interval = Interval(0.0, upper, 0.95, "held-out", 0)
        return LeakageBound(upper, 0.0, interval, 90, 90, "mlp", 0.5, 0.5, 0.5, 1.0), upper

    monkeypatch.setattr(mode, "train", train)
    monkeypatch.setattr(mode, "fresh_audit", audit)
    with pytest.warns(ConvergenceWarning, match="nearly useless"):
        model = Funnel(max_leakage=0.1, **(SETTINGS | {"epochs": 3})).fit(*records(600, 0))
    assert model.budget_.trace[0].accepted
    assert model.status_ is TrainingStatus.COLLAPSED


def test_it_says_what_share_of_the_budget_was_used(met):
    budget = met.budget_
    assert budget.used == pytest.approx(budget.upper / 0.1)
    assert budget.used > 0.3  # a budget that is not used was spent for nothing
    assert f"{budget.used:.0%} of the budget of 0.1 bit used".replace("%", " %") in str(met.verdict_)
    assert met.verdict_.explained == budget.explained
    assert met.verdict_.n == budget.bound.n


def test_without_a_number_of_epochs_it_goes_on_until_no_more_is_kept(monkeypatch):
    from privacyfunnel.learned import budget as mode

    def audit(step, *rest, **options):
        interval = Interval(0.0, 0.01, 0.95, "held-out", 0)
        return LeakageBound(0.01, 0.0, interval, 90, 90, "mlp", 0.5, 0.5, 0.5, 1.0), 0.01

    monkeypatch.setattr(mode, "fresh_audit", audit)
    monkeypatch.setattr(mode, "STEPS_BETWEEN_AUDITS", 20)
    model = Funnel(max_leakage=0.9, **(SETTINGS | {"epochs": None, "beta": 1.0})).fit(*records(600, 0))
    trace = model.budget_.trace
    assert LEAST_AUDITS <= len(trace) < mode.MOST_AUDITS
    whole = 0.5 * 6 / np.log(2)  # six columns of variance 1
    assert stalled(trace, whole)
    assert not any(stalled(trace[:i], whole) for i in range(len(trace)))
    assert model.budget_.explained > 0.2


def test_what_stalls():
    def trace(*kept):
        interval = Interval(0.0, 0.01, 0.95, "held-out", 0)
        bound = LeakageBound(0.01, 0.0, interval, 90, 90, "mlp", 0.5, 0.5, 0.5, 1.0)
        return [Audit(i, 1.0, bound, 0.0, 0.0, abs(one), one > 0) for i, one in enumerate(kept)]

    assert stalled(trace(*[9.0] * 8), 10)
    assert not stalled(trace(*[9.0] * 7), 10)  # too early
    assert not stalled(trace(9, 9, 9, 8, 7, 6, 5, 4), 10)
    assert not stalled(trace(*[-9.0] * 20), 10)  # nothing within the target yet
    assert not stalled(trace(-9, -9, -9, -9, -9, -9, -9, 8), 10)
    assert stalled(trace(9, 9, 9, -1, -1, -1, -1, -1), 10)  # more was kept above the target only


# The controller alone


def test_the_controller_settles_where_the_leakage_is_the_target():
    controller = Controller(0.05, 1.0)
    for _ in range(40):
        controller.update(0.2 / controller.weight)
    assert controller.weight == pytest.approx(4.0, rel=0.05)


def test_the_controller_does_not_run_away_when_more_weight_leaks_more():
    controller = Controller(0.05, 1.0)
    weights, backs = [], []
    for _ in range(60):
        weights.append(controller.weight)
        # The least leakage, still above the target, is at a weight of 8.
        backs.append(controller.update(0.06 + 0.05 * abs(np.log2(controller.weight / 8))))
    assert max(weights) < HIGHEST_FACTOR
    assert sum(backs) >= 2
    best = min(weights, key=lambda weight: abs(np.log2(weight / 8)))
    assert all(weights[i + 1] == pytest.approx(best, rel=0.5) for i in range(59) if backs[i])
    assert not controller.reached_cap


def test_a_weight_at_its_cap_is_a_failure():
    controller = Controller(0.05, 1.0)
    falling = iter(np.linspace(1, 0.5, 30))
    backs = [controller.update(float(next(falling))) for _ in range(15)]
    assert controller.reached_cap
    assert any(backs)


def test_the_cap_is_told(monkeypatch):
    monkeypatch.setattr("privacyfunnel.learned.budget.HIGHEST_FACTOR", 1.0)
    with pytest.warns(ConvergenceWarning, match="reached its cap"):
        model = Funnel(
            max_leakage=0.001, **(SETTINGS | {"epochs": 2, "beta": 20.0, "leakage_weight": 1e-3})
        ).fit(*records(600, 0))
    assert model.budget_.status is BudgetStatus.AT_CAP


# Bad input


@pytest.mark.parametrize(
    ("settings", "private", "message"),
    [
        ({"max_leakage": 0.0}, None, "max_leakage must be a positive number"),
        ({"max_leakage": float("nan")}, None, "max_leakage must be a positive number"),
        ({"leakage_weight": 0.0}, None, "leakage_weight above 0"),
        ({}, np.linspace(0, 1.5, 600), "guess classes; y is numeric. Put its values into a few bins"),
        ({}, np.arange(600) // 590, "10 of the rarest class"),
    ],
)
def test_bad_settings_get_one_sentence(settings, private, message):
    x, y = records(600, 0)
    with pytest.raises(InvalidInputError, match=message):
        Funnel(**(SETTINGS | {"max_leakage": 0.1} | settings)).fit(x, y if private is None else private)


def test_few_records_are_refused():
    with pytest.raises(InvalidInputError, match="at least 400 records"):
        Funnel(max_leakage=0.1, **SETTINGS).fit(*records(399, 0))


def test_partial_fit_has_no_budget():
    with pytest.raises(InvalidInputError, match="partial_fit cannot keep a budget"):
        Funnel(max_leakage=0.1, **SETTINGS).partial_fit(*records(600, 0))


@USELESS
def test_several_private_attributes_share_the_budget():
    x, y = records(800, 0)
    other = (x[:, 2] > 0).astype(int)
    model = Funnel(max_leakage=3.0, **(SETTINGS | {"epochs": 2})).fit(x, private=np.column_stack([y, other]))
    assert model.budget_.accepted
    assert model.budget_.bound.chance < 0.35  # four classes, not two


def test_without_a_target_there_is_no_budget():
    model = Funnel(**(SETTINGS | {"epochs": 1})).fit(*records(100, 0))
    assert model.budget_ is None
