"""Measurement layouts: what an agent's outcomes say about its capabilities, and what to play next.

Fit a layout of your own to your own table, and predict another:

    from animalcat.layouts import fit, load_layout, predict

    fitted = fit(load_layout("reading.yaml"), df, outcome="oak")
    fitted.to_frame(); fitted.posterior
    predict(fitted, more)

Or test somebody adaptively:

    from animalcat.layouts import Bank, Learner, StoppingRule

    learner = Learner(Bank.of("sums.yaml", df), rule=StoppingRule(40))
    while not learner.verdict().stop and (choice := learner.ask()):
        learner.tell(choice.instance, right(choice.instance))

`load_layout` makes a `Layout` of a name (`LAYOUTS`), a file, a text or a dict. `fit` gives
a `Fit`; `Bank` holds the items of a `Learner`, which chooses by a `Policy` and stops by a
`StoppingRule`; a selector of your own answers with `Branch`es.
`ScaledBeta`, `Normal` and `HalfNormal` are priors for `Layout.with_prior`. What is wrong with a
layout is a `SpecificationError`, with a table a `TableError`, and with what a learner is told a
`TellError`; all are kinds of `ValueError`. Pictures are in `animalcat.plots`. These names load when
they are first used.

The packages, each of which imports only those before it: `model` (what a layout is) with `library`
(the shipped layouts), `inference` (posteriors), `reporting` (profiles as data), `watching` (whether
a layout describes an agent while it plays), `adaptive` (choosing and stopping), `explaining` (what
it all means in words), `checking` (whether the layout holds, and how agents differ), `fitting` (a
layout fitted to somebody's table), and `calibrating` (what earlier agents teach a layout).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from animalcat.layouts.adaptive.bank import Bank
    from animalcat.layouts.adaptive.learner import Learner
    from animalcat.layouts.adaptive.plan import Policy, StoppingRule
    from animalcat.layouts.adaptive.selectors import Branch
    from animalcat.layouts.fitting.fits import Fit, fit, predict
    from animalcat.layouts.inference.live import TellError
    from animalcat.layouts.library import LAYOUTS, load_layout
    from animalcat.layouts.model.priors import HalfNormal, Normal, ScaledBeta
    from animalcat.layouts.model.spec import Layout, SpecificationError
    from animalcat.layouts.model.tables import TableError

__all__ = [
    "LAYOUTS",
    "Bank",
    "Branch",
    "Fit",
    "HalfNormal",
    "Layout",
    "Learner",
    "Normal",
    "Policy",
    "ScaledBeta",
    "SpecificationError",
    "StoppingRule",
    "TableError",
    "TellError",
    "fit",
    "load_layout",
    "predict",
]

_HOME = {
    "LAYOUTS": "library",
    "Bank": "adaptive.bank",
    "Branch": "adaptive.selectors",
    "Fit": "fitting.fits",
    "HalfNormal": "model.priors",
    "Layout": "model.spec",
    "Learner": "adaptive.learner",
    "Normal": "model.priors",
    "Policy": "adaptive.plan",
    "ScaledBeta": "model.priors",
    "SpecificationError": "model.spec",
    "StoppingRule": "adaptive.plan",
    "TableError": "model.tables",
    "TellError": "inference.live",
    "fit": "fitting.fits",
    "load_layout": "library",
    "predict": "fitting.fits",
}
"""Where each name lives."""


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used: a layout must not load a sampler."""
    if name not in _HOME:
        raise AttributeError(f"module 'animalcat.layouts' has no attribute {name!r}")
    from animalcat.extending.installing import needing

    with needing(f"animalcat.layouts.{name}", "learner"):
        home = import_module(f"animalcat.layouts.{_HOME[name]}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    """What there is, for completion: the public names, and not where they live."""
    return list(__all__)
