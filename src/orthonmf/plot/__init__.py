"""Pictures of a fitted model, in the manner of scikit-learn's displays: an axis in, an axis out.

``SomeDisplay.from_estimator(model, ax=ax)`` draws and returns the display, with the axis as ``ax_`` and the figure as ``figure_``.
matplotlib is imported when something is drawn (``pip install 'orthonmf[plot]'``), and its settings are as before afterwards.
"""

from .bifurcation import BifurcationDisplay
from .components import ComponentsDisplay
from .error import ErrorDisplay
from .history import HistoryDisplay
from .number import NumberDisplay
from .persistence import PersistenceDisplay
from .sizes import SizesDisplay

__all__ = [
    "BifurcationDisplay",
    "ComponentsDisplay",
    "ErrorDisplay",
    "HistoryDisplay",
    "NumberDisplay",
    "PersistenceDisplay",
    "SizesDisplay",
]
