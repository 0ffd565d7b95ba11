"""Orthogonal nonnegative matrix factorisation: X ≈ T C with parts that do not overlap."""

from . import datasets, io, metrics, pl, plot, report, tl
from .certificate import Certificate
from .estimator import ONMF
from .terms import top_terms

__version__ = "0.1.0"

__all__ = ["ONMF", "Certificate", "__version__", "datasets", "io", "metrics", "pl", "plot", "report", "tl", "top_terms"]
