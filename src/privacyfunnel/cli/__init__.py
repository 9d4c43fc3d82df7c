"""The command line, `pfunnel`: one file a command, each parses, calls the library and prints."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run `pfunnel` with these arguments (the process's own by default) and exit with its code."""
    from .running import run

    code = run(sys.argv[1:] if argv is None else argv)
    if argv is None:
        gc.freeze()  # the process ends: looking for cycles among all that was imported would take 0.3 s
    sys.exit(code)
