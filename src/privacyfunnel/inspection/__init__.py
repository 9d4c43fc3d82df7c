"""What the columns of a table tell, before anything is solved: counts, and no mechanism or encoder."""

from .inspect import inspect, inspect_tallies
from .results import InspectedColumn, InspectedPair, Inspection
from .tallies import Tallies

__all__ = ["InspectedColumn", "InspectedPair", "Inspection", "Tallies", "inspect", "inspect_tallies"]
