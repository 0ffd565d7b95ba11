"""The compared methods by name, with the settings that the paper states or that we argue for. A new method is one line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..baselines import REGISTRY
from ..estimator import ONMF
from ..exceptions import InvalidInputError
from .mep import MepAsPrinted


@dataclass(frozen=True)
class Method:
    """A method of the comparison.

    Parameters
    ----------
    label : str
        Its name in a table.
    kind : type
        The estimator.
    options : mapping
        What differs from the estimator's defaults.
    printed : str or None
        Its row in the paper's first table; None where it has none.
    partitions : bool
        Whether every item belongs to exactly one component.
    why : str
        The reason for the options.
    ablation : bool
        Whether it runs only when asked for: another method with one thing changed, to show what a difference is due to.
    """

    label: str
    kind: type
    options: Mapping[str, Any] = field(default_factory=dict)
    printed: str | None = None
    partitions: bool = False
    why: str = ""
    ablation: bool = False

    def build(self, n_components: int, *, seed: int, orthogonal: str = "samples") -> Any:
        """The estimator, not yet fitted."""
        return self.kind(n_components, orthogonal=orthogonal, random_state=seed, **self.options)

    @property
    def settings(self) -> str:
        """The options in words; a stored cell with others is run again."""
        return ", ".join(f"{name}={value!r}" for name, value in self.options.items())


# All methods run on one thread, so that their seconds compare.
METHODS: dict[str, Method] = {
    "onmf": Method("ONMF (ours)", ONMF, {"n_jobs": 1}, printed="MEP_ONMF", partitions=True),
    "mep": Method(
        "MEP as printed",
        MepAsPrinted,
        {"growth": 1.05},
        printed="MEP_ONMF",
        partitions=True,
        why="β grows by a fixed factor, nothing is refined, and the scales are solved after the fit, as in the paper.",
    ),
    "apx": Method("ONMF-apx", REGISTRY["apx"], printed="ONMF_apx", partitions=True),
    "ding": Method(
        "ONMF-Ding",
        REGISTRY["ding"],
        {"init": "random"},
        printed="ONMF_Ding",
        why="A random start. From k-means, as its authors do it, its error is near that of k-means, far below the printed one.",
    ),
    "onmf-a": Method(
        "ONMF-A",
        REGISTRY["onmf-a"],
        {"max_iter": 200},
        printed="ONMF_A",
        why="200 iterations, where its errors are about the printed ones. With 1000 it is near the noise floor on data set 4.",
    ),
    "pnmf": Method("PNMF", REGISTRY["pnmf"], printed="PNMF"),
    "nhl": Method("NHL", REGISTRY["nhl"], printed="NHL"),
    "em": Method("ONMF-EM", REGISTRY["em"], printed="ONMF_EM", partitions=True),
    "hals": Method(
        "HALS",
        REGISTRY["hals"],
        {"penalty": 1e-6, "max_iter": 100},
        printed="HALS",
        why="The paper does not give the penalty. The printed orthogonality is that of NMF, so hardly any; 100 iterations, where the "
        "printed error of data set 1 is.",
    ),
    "ionmf": Method("iONMF", REGISTRY["ionmf"], printed="iONMF"),
    "nmf": Method("NMF", REGISTRY["nmf-mu"], printed="NMF"),
    "kmeans-100": Method(
        "best of 100 k-means",
        REGISTRY["apx"],
        {"n_init": 100},
        partitions=True,
        why="Plain restarts: what a comparison should be held against.",
    ),
    "onmfs": Method("ONMFS", REGISTRY["onmfs"], partitions=True, why="Cited by the paper, not in its table."),
}

# The multiplicative rules creep: their zeros, and some of their errors, come with iterations. The paper gave them up to an hour.
_LONG = {"tol": 1e-12, "max_iter": 10_000}


def _changed(name: str, change: str, why: str, **options: Any) -> Method:
    """A method of the table with one thing changed."""
    method = METHODS[name]
    return replace(method, label=f"{method.label}, {change}", options={**method.options, **options}, why=why, ablation=True)


METHODS |= {
    f"{name}-long": _changed(name, "long", "Up to 10 000 iterations, until one changes the objective by less than 1e-12 of it.", **_LONG)
    for name in ("ding", "onmf-a", "pnmf", "nhl", "nmf")
}
METHODS["ding-kmeans"] = _changed("ding", "k-means", "The start of its authors.", init="kmeans")
METHODS["hals-long"] = _changed("hals", "long", "1000 iterations.", max_iter=1000, tol=1e-12)
METHODS["hals-penalty"] = _changed("hals", "penalty", "A penalty of 1e-4 and 1000 iterations.", penalty=1e-4, max_iter=1000)
METHODS["em-spread"] = _changed("em", "k-means++", "A start of directions far apart.", init="k-means++")
METHODS["mep-lines"] = replace(
    METHODS["onmf"],
    label="MEP, lines",
    options={"n_jobs": 1, "schedule": 1.05, "refine": False},
    why="Scales solved along with the lines, not after the fit; nothing else changed.",
    ablation=True,
)

# What `reproduce` and `compare` run unless told otherwise: the rows of the paper's table with ours, and all that are no ablation.
OF_THE_TABLE = tuple(name for name, method in METHODS.items() if not method.ablation and (method.printed or name == "kmeans-100"))
STANDARD = tuple(name for name, method in METHODS.items() if not method.ablation)


def chosen(names: Iterable[str] | None, *, default: Iterable[str] = OF_THE_TABLE) -> list[str]:
    """The names asked for, in the registry's order; an unknown one is an error."""
    wanted = set(default if names is None else names)
    for name in sorted(wanted - METHODS.keys()):
        raise InvalidInputError(f"method {name!r} is not known; expected one of {', '.join(METHODS)}.")
    return [name for name in METHODS if name in wanted]
