"""Data with a known answer, and the data of the paper.

Generators return nonnegative float64 data with samples in rows, together with what they were made from.
"""

from .microarray import fetch_microarray
from .nested import NestedData, make_nested
from .onmf import OnmfData, make_onmf
from .paper import make_paper_synthetic

__all__ = ["NestedData", "OnmfData", "fetch_microarray", "make_nested", "make_onmf", "make_paper_synthetic"]
