"""A Chromium for whoever looks at pages: the fixture `browser` of the tests, and docs/draw_images.py."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def browser_path(playwright: Any) -> str | None:
    """A Chromium: of PRIVACYFUNNEL_BROWSER, on the path, or the one that playwright has installed."""
    own = playwright.chromium.executable_path
    found = [os.environ.get("PRIVACYFUNNEL_BROWSER"), *map(shutil.which, NAMES), own]
    return next((path for path in found if path and Path(path).exists()), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, started; LookupError where there is none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = browser_path(playwright)
        if path is None:
            raise LookupError("no Chromium on this machine: playwright install chromium, or Debian's package")
        # Without its sandbox it also runs as root and in containers; it only sees pages made here.
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--no-zygote"])
        yield started
        started.close()
