"""Methods that ONMF is compared with, as estimators of the same form. One file each.

All factor X ≈ T C with T = ``fit_transform(X)`` and C = ``components_``. The registry maps a name to its class.
"""

from __future__ import annotations

from .base import Baseline
from .hals import Hals
from .ionmf import Ionmf
from .nhl import Nhl
from .nmf_mu import NmfMu
from .onmf_a import OnmfA
from .onmf_apx import OnmfApx
from .onmf_ding import OnmfDing
from .onmf_em import OnmfEm
from .onmfs import Onmfs
from .pnmf import Pnmf

REGISTRY: dict[str, type[Baseline]] = {
    "apx": OnmfApx,
    "ding": OnmfDing,
    "onmf-a": OnmfA,
    "pnmf": Pnmf,
    "nhl": Nhl,
    "em": OnmfEm,
    "hals": Hals,
    "ionmf": Ionmf,
    "nmf-mu": NmfMu,
    "onmfs": Onmfs,
}

__all__ = ["REGISTRY", "Baseline", "Hals", "Ionmf", "Nhl", "NmfMu", "OnmfA", "OnmfApx", "OnmfDing", "OnmfEm", "Onmfs", "Pnmf"]
