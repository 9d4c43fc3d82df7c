"""Checkpoints: everything that the rest of a run depends on, in one safetensors file that appears whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import FileFormatError
from ..persistence import write_atomic
from .steps import Step

Tensors = dict[str, Tensor]

FORMAT, VERSION = "privacyfunnel-checkpoint", "2"


def snapshot(step: Step) -> Tensors:
    """Weights and optimisers as they are now."""
    tensors = {f"module.{name}": value.clone() for name, value in step.modules.state_dict().items()}
    for name, optimiser in step.optimisers.items():
        for i, state in optimiser.state_dict()["state"].items():
            for key, value in state.items():
                tensors[f"optimiser.{name}.{i}.{key}"] = torch.as_tensor(value).clone()
    return tensors


def restore(step: Step, tensors: Mapping[str, Tensor]) -> None:
    """Weights and optimisers as they were at the snapshot."""
    step.modules.load_state_dict(without_prefix(tensors, "module."))
    for name, optimiser in step.optimisers.items():
        state: dict[int, Tensors] = {}
        for key, tensor in without_prefix(tensors, f"optimiser.{name}.").items():
            i, slot = key.split(".")
            state.setdefault(int(i), {})[slot] = tensor.clone()
        groups = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": state, "param_groups": groups})


def without_prefix(tensors: Mapping[str, Tensor], prefix: str) -> Tensors:
    """Those whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def write_checkpoint(path: Path, tensors: Tensors, state: Mapping[str, Any], fingerprint: str) -> None:
    """Replace the checkpoint; `state` is what JSON can hold of a run, `fingerprint` says which run it is."""
    from safetensors.torch import save

    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": fingerprint,
        "state": json.dumps(state),
    }
    write_atomic(path, save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata))


def read_checkpoint(path: Path, fingerprint: str) -> tuple[Tensors, dict[str, Any]] | None:
    """Tensors and state of a checkpoint of this run; None where there is none yet."""
    if not path.exists():
        return None
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError):
        raise FileFormatError(f"{path}: the checkpoint is damaged; delete it to start anew.") from None
    if metadata.get("format") != FORMAT or metadata.get("version") != VERSION:
        raise FileFormatError(
            f"{path}: this checkpoint is not of this version of the library; delete it to start anew."
        )
    if metadata.get("fingerprint") != fingerprint:
        raise FileFormatError(
            f"{path}: this checkpoint belongs to another run (other data or settings); "
            "use another folder or delete it."
        )
    state: dict[str, Any] = json.loads(metadata["state"])
    return tensors, state
