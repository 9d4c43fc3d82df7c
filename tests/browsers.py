"""A Chromium for tests that look at pages: `from browsers import browser_path`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def browser_path(playwright: Any) -> str | None:
    """A Chromium: of PRIVACYFUNNEL_BROWSER, on the path, or the one that playwright has installed."""
    own = playwright.chromium.executable_path
    found = [os.environ.get("PRIVACYFUNNEL_BROWSER"), *map(shutil.which, NAMES), own]
    return next((path for path in found if path and Path(path).exists()), None)
