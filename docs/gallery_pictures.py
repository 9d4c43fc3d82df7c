"""How the gallery runs the examples: where they write, how much they do, and which pictures are shown."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

#: What the examples write goes here, and the pictures in it to the page.
FOLDER = Path(tempfile.mkdtemp(prefix="gallery-"))


def arguments(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """An example's arguments: a folder to write to, and the small part of the work."""
    name = Path(script_vars["src_file"]).stem
    for old in FOLDER.iterdir():
        old.unlink()
    where = {
        "frontier_compare": [str(FOLDER / "plane.png")],
        "local_gaps": [],
        "solver_behaviour": [],
    }.get(name, [str(FOLDER)])
    whole = name in ("quickstart", "measures", "adult", "first_picture")
    return [*where, *([] if whole else ["--quick"])]


def pictures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The figures that the block has written, as the page shows them."""
    from sphinx_gallery.scrapers import figure_rst

    shown = []
    for picture in sorted(FOLDER.glob("*.png")):
        place = next(block_vars["image_path_iterator"])
        shutil.move(picture, place)
        shown.append(place)
    return str(figure_rst(shown, gallery_conf["src_dir"])) if shown else ""
