"""Run the benchmarks, or those named: python -m benchmarks [NAME ...] [--output DIR] [--verbose]

Without names, those that take minutes. With --output, streams, app and the learned and certified ones also
write what they measured into the folder. With --verbose, walks lists the files. With --before, streams
measures an older tree of this repository as well, in turn; --records says how many records its frames have.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

MINUTES = (
    *("known", "scaling", "exact", "many", "measures", "certificates"),
    *("learned-speed", "audit", "sweep", "walks", "streams", "app"),
)
LONGER = ("learned-stability", "certified-splits", "certified-images")

parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MINUTES + LONGER))
parser.add_argument("--output", type=Path, metavar="DIR")
parser.add_argument("-v", "--verbose", action="store_true")
parser.add_argument("--before", type=Path, metavar="TREE")
parser.add_argument("--records", type=int, default=10_000_000, metavar="N")
chosen = parser.parse_args()
unknown = [name for name in chosen.names if name not in MINUTES + LONGER]
if unknown:
    sys.exit(f"No benchmark is called {unknown[0]!r}; there are {', '.join(MINUTES + LONGER)}.")
for name in chosen.names or MINUTES:
    if name.startswith("certified-"):
        module = import_module(".certified", __package__)
        {"certified-splits": module.main, "certified-images": module.images}[name](chosen.output)
        continue
    main = import_module(f".{name.replace('-', '_')}", __package__).main
    if name == "app" or name.startswith("learned-"):
        main(chosen.output)
    elif name == "streams":
        main(chosen.output, chosen.before, chosen.records)
    elif name == "walks":
        main(chosen.verbose)
    else:
        main()
