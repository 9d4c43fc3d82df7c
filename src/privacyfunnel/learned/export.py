"""ONNX files of a fitted estimator, for programs without torch. Needs the extra `onnx`."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..errors import InvalidInputError, MissingDependencyError
from ..persistence import Path_, made_folder, write_atomic
from .aligned import refuse_aligned
from .base import LearnedFunnel
from .encoder import Releasing
from .families import Likelihood, likelihood
from .networks import Scaling, scaling_of


def export_onnx(estimator: Releasing, folder: Path_, part: str = "all") -> tuple[Path, ...]:
    """Write encoder.onnx and decoder.onnx into a folder, and return their paths.

    With `part="encoder"`, or of a `FunnelEncoder`, the encoder alone: what to hand on to whoever releases.
    Neither file holds private classes or their counts.

    Both take and give float32 tables with any number of rows, records as flat rows, not scaled:

        encoder:  x (n, features) → loc, scale (n, components)
        decoder:  z (n, components) → x_hat (n, features), the mean of P(X|z)

    The encoder gives the parameters of P(Z|x), and a release is a *draw* from it: loc + scale · noise, with
    standard noise of the estimator's `latent` family from a secure source. Handing out loc itself is no
    release: it protects nothing.

    The decoder of a ConditionalFunnel has a second input, `private`: one-hot classes and standardised
    numbers, in the order of the private attributes.
    """
    if part not in ("all", "encoder"):
        raise InvalidInputError(f"export_onnx: part must be 'all' or 'encoder'; it is {part!r}.")
    _require_onnx()
    check_is_fitted(estimator)
    refuse_aligned(estimator.modules_["encoder"])
    target = Path(folder)
    # Two rows: an example of one row would be taken for a constant.
    x = {"x": torch.zeros(2, estimator.n_features_in_)}
    encoder = _Released(estimator.modules_["encoder"], scaling_of(estimator.modules_))
    files = {target / "encoder.onnx": _onnx(encoder, x, ["loc", "scale"])}
    if part == "all" and isinstance(estimator, LearnedFunnel):
        files[target / "decoder.onnx"] = _decoder(estimator)
    with made_folder(target):
        for path, data in files.items():
            write_atomic(path, data)
    return tuple(files)


def _decoder(estimator: LearnedFunnel) -> bytes:
    inputs = {"z": torch.zeros(2, int(estimator._n_features_out))}
    if estimator.decoder_needs_private:
        assert estimator.private_ is not None
        inputs["private"] = torch.zeros(2, estimator.private_.n_one_hot)
    modules, family = estimator.modules_, likelihood(estimator.likelihood)
    return _onnx(_Reconstructed(modules["decoder"], family, scaling_of(modules)), inputs, ["x_hat"])


class _Released(nn.Module):
    """x ↦ (loc, scale)."""

    def __init__(self, encoder: nn.Module, scaling: Scaling) -> None:
        super().__init__()
        self.encoder = encoder
        self.shift, self.width = scaling.shift, scaling.width

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        loc, log_scale = self.encoder((x - self.shift) / self.width)
        return loc, log_scale.exp()


class _Reconstructed(nn.Module):
    """z, and for some decoders the private attributes, ↦ E[X|z]."""

    def __init__(self, decoder: nn.Module, family: Likelihood, scaling: Scaling) -> None:
        super().__init__()
        self.decoder, self.family = decoder, family
        self.shift, self.width = scaling.shift, scaling.width

    def forward(self, z: Tensor, private: Tensor | None = None) -> Tensor:
        mean = self.family.mean(self.decoder(z if private is None else torch.cat([z, private], dim=1)))
        return mean * self.width + self.shift


def _onnx(module: nn.Module, inputs: dict[str, Tensor], outputs: Sequence[str]) -> bytes:
    rows = torch.export.Dim("n", min=1)
    with _quietly():
        program: Any = torch.onnx.export(
            copy.deepcopy(module).cpu().eval(),
            tuple(inputs.values()),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=tuple({0: rows} for _ in inputs),
            dynamo=True,
            verbose=False,
        )
    model = program.model_proto
    # The exporter notes the lines of source that each node comes from, with the paths of this machine.
    for part in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.functions):
        part.ClearField("metadata_props")
    data: bytes = model.SerializeToString()
    return data


def _require_onnx() -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"export_onnx needs {error.name}: pip install 'privacyfunnel[onnx]'"
        ) from None


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the exporter's remarks about its own inside."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
