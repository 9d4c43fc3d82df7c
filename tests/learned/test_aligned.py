"""The aligned front end: a function of X alone, fixed before training, that is not handed on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import privacyfunnel as pf  # noqa: E402
from privacyfunnel.errors import InvalidInputError  # noqa: E402
from privacyfunnel.learned import Funnel  # noqa: E402
from privacyfunnel.learned.aligned import AlignedEncoder  # noqa: E402
from privacyfunnel.learned.verdict import not_measured  # noqa: E402

TINY: dict[str, Any] = {"hidden": (8,), "epochs": 1, "random_state": 0, "release_state": 1, "progress": False}


def classes(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Two Gaussians far apart, of different shape."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    x = rng.normal(size=(n, 3)) * np.where(y[:, None] == 1, [1.0, 3.0, 0.5], [2.0, 1.0, 0.5])
    x[:, 0] += 20 * y
    return x.astype(np.float32), y


def test_moved_classes_lie_upon_one_another() -> None:
    """Means and covariances of both classes are those of the barycentre, which for commuting ones is known:
    spreads are the weighted means of the classes' spreads."""
    x, y = classes(4000)
    encoder = AlignedEncoder(3, (4,), 2, 2)
    encoder.learn(torch.from_numpy(x), torch.from_numpy(y), 0)
    moved, q = (part.numpy() for part in encoder.front(torch.from_numpy(x)))
    assert (q.argmax(axis=1) == y).mean() > 0.999
    share = y.mean()
    for label in (0, 1):
        part = moved[y == label]
        assert part.mean(axis=0) == pytest.approx(moved.mean(axis=0), abs=0.3)
        spreads = np.sqrt(np.linalg.eigvalsh(np.cov(part.T)))
        expected = sorted((1 - share) * np.array([2.0, 1.0, 0.5]) + share * np.array([1.0, 3.0, 0.5]))
        assert spreads == pytest.approx(expected, rel=0.08)


@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.ConvergenceWarning")
def test_fit_save_and_load(tmp_path: Path) -> None:
    x, y = classes(300)
    funnel = Funnel(2, align=True, validation_fraction=0, **TINY).fit(x, y)
    front = {name: buffer.clone() for name, buffer in funnel.modules_["encoder"].named_buffers()}
    assert len(front) == 8
    alone = AlignedEncoder(3, (8,), 2, 2)
    scaled = funnel.modules_["scaling"](torch.from_numpy(x))
    alone.learn(scaled, torch.from_numpy(y), funnel.seed_)
    for name, buffer in alone.named_buffers():  # training has not moved it
        assert torch.equal(buffer, front[name]), name
    codes = funnel.transform(x[:5])
    assert codes.shape == (5, 2)
    funnel.save(tmp_path / "model")
    again = pf.load(tmp_path / "model").set_params(release_state=1)
    assert np.array_equal(again.transform(x[:5]), codes)
    # Releasing needs X alone, and a new class of x by itself changes nothing.
    assert np.array_equal(again.encode(x[:1])[0], funnel.encode(x[:1])[0])


@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.ConvergenceWarning")
def test_records_kept_for_the_verdict_have_no_part_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    original = AlignedEncoder.learn

    def learn(self: AlignedEncoder, x: Any, y: Any, seed: int) -> None:
        seen.append(len(x))
        original(self, x, y, seed)

    monkeypatch.setattr(AlignedEncoder, "learn", learn)
    monkeypatch.setattr("privacyfunnel.learned.verdict.LEAST_KEPT", 40)
    monkeypatch.setattr("privacyfunnel.learned.funnel.judged", lambda *given: not_measured("to save time"))
    x, y = classes(2000)
    Funnel(2, align=True, validation_fraction=0.2, **TINY).fit(x, y)
    assert seen == [pytest.approx(1600, abs=2)]  # the same share of each class


@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.ConvergenceWarning")
def test_it_is_not_handed_on(tmp_path: Path) -> None:
    x, y = classes(300)
    funnel = Funnel(2, align=True, validation_fraction=0, **TINY).fit(x, y)
    with pytest.raises(InvalidInputError, match="holds a classifier of the private attribute"):
        funnel.save(tmp_path / "encoder", part="encoder")
    assert list(tmp_path.iterdir()) == []
    pytest.importorskip("onnx")
    from privacyfunnel.learned.export import export_onnx

    with pytest.raises(InvalidInputError, match="cannot be handed on"):
        export_onnx(funnel, tmp_path / "onnx")


@pytest.mark.parametrize(
    ("settings", "private", "message"),
    [
        ({"max_leakage": 0.1}, None, "align=True needs fit without max_leakage"),
        ({"align": 1}, None, "align must be True or False"),
        ({}, {"a": np.arange(500) % 2, "b": np.arange(500) % 3}, "one private attribute with classes"),
        ({}, np.linspace(0.1, 1.2, 500), "one private attribute with classes"),
        ({"validation_fraction": 0}, np.arange(500) < 5, "at least 10 records of each private class"),
    ],
)
def test_refusals(settings: dict[str, Any], private: Any, message: str) -> None:
    x, y = classes(500)
    with pytest.raises(InvalidInputError, match=message):
        Funnel(2, **{"align": True, **TINY, **settings}).fit(x, private=y if private is None else private)


def test_partial_fit_is_refused() -> None:
    x, y = classes(100)
    with pytest.raises(InvalidInputError, match="the front end is fixed once"):
        Funnel(2, align=True, **TINY).partial_fit(x, y)
