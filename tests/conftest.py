"""Shared set-up: where the data folder is, and how hypothesis runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Compiled kernels make the first example slow, and a red run must be red again: no deadline, fixed seeds.
settings.register_profile("privacyfunnel", deadline=None, derandomize=True)
settings.load_profile("privacyfunnel")

_NEARBY_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
if "PRIVACYFUNNEL_DATA" not in os.environ and _NEARBY_DATA.is_dir():
    os.environ["PRIVACYFUNNEL_DATA"] = str(_NEARBY_DATA)


@pytest.fixture
def data_folder() -> Path:
    """The folder of PRIVACYFUNNEL_DATA; tests that need it are skipped where there is none."""
    folder = os.environ.get("PRIVACYFUNNEL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the data sets: set PRIVACYFUNNEL_DATA to the folder that holds adult/adult.csv.gz")
    return Path(folder)
