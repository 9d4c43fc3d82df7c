"""Draw every picture of docs/images anew: of the examples, and the screens of `pfunnel app` in a Chromium.

Run: python docs/draw_images.py    (make images)

The screens are gone through as the tests of the app do it. printed-table.png, which stands in the gallery
for examples that only print, shows nothing of the library and stays as it is.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import narwhals as nw
from PIL import Image

import privacyfunnel as pf

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "app")]

from app_browser import choose, look, mark, mark_all, opened, served  # noqa: E402
from browsers import chromium  # noqa: E402

#: Pixels for each of the page's.
SHARP = 1.4
EXAMPLES = {
    "first_picture": ["kept-and-told.png"],
    "paper_figure": ["exact-3x3.png"],
    "measures": ["measures.png"],
    "audit_digits": ["success-psnr.png"],
}


def draw_examples(folder: Path) -> None:
    for example, pictures in EXAMPLES.items():
        print(f"examples/{example}.py")
        subprocess.run([sys.executable, str(ROOT / "examples" / f"{example}.py"), str(folder)], check=True)
        for picture in pictures:
            shutil.move(folder / picture, IMAGES / picture)


def draw_screens(folder: Path) -> None:
    """What docs/app.md shows: Look and Choose of a whole table, and Choose of two columns in the dark."""
    adult = nw.from_native(pf.datasets.load_adult()).with_row_index("person").gather_every(4)
    adult.write_csv(str(folder / "adult.csv"))
    credit = nw.from_native(pf.datasets.load_german_credit())
    credit.write_csv(str(folder / "credit.csv"))
    public = ["age", "occupation", "education", "hours-per-week"]
    with chromium() as browser:
        print("pfunnel app: Look and Choose")
        with (
            served(folder / "adult.csv", folder) as address,
            opened(browser, address, width=980, device_scale_factor=SHARP) as (page, _),
        ):
            page.wait_for_selector("table.roles")
            mark(page, "private", "sex")
            look(page)
            shoot(page, "app-look", page.locator("table.roles tbody tr").nth(10), 1)
            mark_all(page, "sex", public)
            choose(page, "table")
            shoot(page, "app-choose", page.locator("#stop dl").nth(1))
        print("pfunnel app: Choose, narrow and dark")
        with (
            served(folder / "credit.csv", folder) as address,
            opened(browser, address, width=400, scheme="dark", device_scale_factor=SHARP) as (page, _),
        ):
            page.wait_for_selector("table.roles")
            mark_all(page, "sex", ["housing", "employment"])
            look(page)
            choose(page, "columns")
            shoot(page, "app-narrow", page.locator("#stop p").nth(2))


def shoot(page: Any, name: str, last: Any, room: int = 12) -> None:
    """From the top of the page to the end of what is shown last, in 256 colours."""
    page.wait_for_load_state("networkidle")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    box, width = last.bounding_box(), page.viewport_size["width"]
    clip = {"x": 0, "y": 0, "width": width, "height": box["y"] + box["height"] + room}
    whole = Image.open(io.BytesIO(page.screenshot(clip=clip, full_page=True)))
    whole.convert("RGB").quantize(256).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        draw_examples(Path(name))
        draw_screens(Path(name))
