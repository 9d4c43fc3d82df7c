"""A cluster for the tests of Dask, and what its workers run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privacyfunnel.mechanism import TableMechanism

N_PARTS, N_ROWS = 6, 2000


@contextmanager
def two_workers() -> Iterator[Any]:
    """The client of a quiet cluster of two processes."""
    import dask
    import pytest

    distributed = pytest.importorskip("distributed")
    quiet = {"distributed.logging.distributed": "critical", "distributed.admin.tick.limit": "1h"}
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 60}
    with (
        dask.config.set(scheduler=None, **quiet),
        distributed.LocalCluster(**settings) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def people(number: int, folder: str | None = None) -> pd.DataFrame:
    """A partition; those from the third on wait until the file `gate` is there, and tell who waits."""
    if folder is not None and number >= 2:
        (Path(folder) / f"begun-{number}-{os.getpid()}").touch()
        end = time.monotonic() + 120
        while not (Path(folder) / "gate").exists() and time.monotonic() < end:
            time.sleep(0.02)
    rng = np.random.default_rng(number)
    return pd.DataFrame(
        {
            "person": np.arange(number * N_ROWS, (number + 1) * N_ROWS),
            "job": rng.choice(["a", "b", "c"], N_ROWS),
            "sex": rng.choice(["f", "m"], N_ROWS),
        }
    )


class Counted(TableMechanism):
    """A mechanism that notes in which process it arrives."""

    folder: str

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        with open(Path(str(state["folder"])) / "arrived", "a") as file:
            file.write(f"{os.getpid()}\n")
