"""The part of nutpie that samples, without what its package imports to describe a result.

That is ArviZ, pandas and matplotlib, which take ten times as long as most fits.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from inspect import signature
from typing import Any, Final

_PACKAGE: Final = "nutpie"
_FEW: Final = 5
"""Parameters of a sampler before 0.16.11."""


@dataclass(frozen=True, slots=True)
class SamplerSettings:
    """How to sample.

    Attributes:
        seed: Seed of the run, below 2^31.
        chains: Number of chains.
        draws: Draws of each chain.
        tune: Tuning draws of each chain, which are discarded.
        target_accept: Acceptance rate that the step width is tuned to.
        cores: Number of chains that run at once; the draws do not depend on it.
    """

    seed: int
    chains: int
    draws: int
    tune: int
    target_accept: float
    cores: int


@cache
def library() -> Any:
    """Import nutpie's compiled module; the package itself is left to who imports it afterwards.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    if _PACKAGE in sys.modules:
        return import_module(f"{_PACKAGE}._lib")
    spec = find_spec(_PACKAGE)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {_PACKAGE!r}", name=_PACKAGE)
    sys.modules[_PACKAGE] = module_from_spec(spec)  # only says where its modules are
    try:
        return import_module(f"{_PACKAGE}._lib")
    finally:
        del sys.modules[_PACKAGE]


def sample(model: Any, settings: SamplerSettings) -> list[tuple[Any, Any]]:
    """Sample a model of `library`.

    Returns:
        For each chain a table of its draws, and one of their statistics.
    """
    nutpie = library()
    nuts = nutpie.PyNutsSettings.Diag(settings.seed)
    nuts.num_tune, nuts.num_draws, nuts.num_chains = settings.tune, settings.draws, settings.chains
    nuts.target_accept = settings.target_accept
    nothing, memory = nutpie.ProgressType.none(), nutpie.PyStorage.arrow()
    start = nutpie.PySampler.from_pymc
    # Since 0.16.11 it may call somebody every so many milliseconds; nobody is to be called.
    known = signature(start).parameters
    calls = {"extra_callback": None, "extra_callback_rate": 500} if len(known) > _FEW else {}
    sampler = start(nuts, settings.cores, model, nothing, store=memory, **calls)
    try:
        sampler.wait(None)
    except BaseException:
        sampler.abort()
        raise
    draws, statistics = sampler.take_results().get_arrow_trace()
    return [*zip(draws, statistics, strict=True)]
