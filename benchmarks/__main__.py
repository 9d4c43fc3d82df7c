"""Run all benchmarks, or those named: python -m benchmarks [known] [scaling] [exact]"""

import sys

from . import exact, known, scaling

ALL = {"known": known.main, "scaling": scaling.main, "exact": exact.main}

unknown = [name for name in sys.argv[1:] if name not in ALL]
if unknown:
    sys.exit(f"No benchmark is called {unknown[0]!r}; there are {', '.join(ALL)}.")
for name in sys.argv[1:] or ALL:
    ALL[name]()
