"""Comparisons with other libraries, as ratios within one run: ``python -m benchmarks --help``."""
