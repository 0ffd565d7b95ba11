"""Orthogonal nonnegative matrix factorisation: X ≈ T C with parts that do not overlap."""

from . import datasets, metrics, plot, report
from .certificate import Certificate
from .estimator import ONMF
from .terms import top_terms

__version__ = "0.1.0"

__all__ = ["ONMF", "Certificate", "__version__", "datasets", "metrics", "plot", "report", "top_terms"]
