"""Measurements: ratios within one run, with steps and objective beside every time."""
