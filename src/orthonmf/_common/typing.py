"""Short names for the array types used everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Labels = NDArray[np.intp]
