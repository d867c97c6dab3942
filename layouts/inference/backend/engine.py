"""NUTS by nutpie, or by plain PyMC.

Nutpie calls `density`, which is kept on disk. For a layout that it does not cover, such as one with
scores, nutpie compiles the PyMC model of the layout, once in a process for data of any length.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.backend.nuts import SamplerSettings, library, sample
from animalcat.layouts.model.spec import Layout

if TYPE_CHECKING:
    import nutpie

    from animalcat.layouts.inference.backend.graph import ModelGraph

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The result of one run of NUTS.

    Attributes:
        draws: (chains, draws, latents).
        energy: (chains, draws).
        divergences: Number of divergent draws.
        statistics: (chains, draws) each, by ArviZ's names for them.
    """

    draws: Floats
    energy: Floats
    divergences: int
    statistics: Mapping[str, Floats] = field(default_factory=dict[str, Floats])


class Engine:
    """NUTS on layouts, with compiled models cached by digest. For one thread at a time.

    Attributes:
        compiles: Number of compilations so far; layouts that `density` covers need none.
    """

    def __init__(self) -> None:
        self.compiles = 0
        self._graphs: dict[tuple[str, bool], ModelGraph] = {}
        self._compiled: dict[tuple[str, bool], nutpie.CompiledModel] = {}

    def compile(self, layout: Layout, *, weighted: bool = False) -> None:
        """Make ready to sample: import, and compile a layout that `density` does not cover.

        The former takes half a second, the latter ten.

        Args:
            layout: The layout that is measured.
            weighted: Whether outcomes have weights.
        """
        # Imported here: it takes seconds, and a fit without outcomes needs none of it.
        from animalcat.layouts.inference.backend import density

        library()
        if not density.covers(layout):
            self._model(layout, weighted)

    def _model(self, layout: Layout, weighted: bool) -> nutpie.CompiledModel:
        """The compiled PyMC model, another one with weights; several outcomes always have them."""
        weighted = weighted or len(layout.outcomes) > 1
        compiled = self._compiled.get((layout.digest, weighted))
        if compiled is None:
            import nutpie

            self.compiles += 1
            with _no_collection():
                compiled = nutpie.compile_pymc_model(
                    self._graph(layout, weighted).model,
                    backend="numba",
                    var_names=list(layout.latent_names),
                )
            self._compiled[layout.digest, weighted] = compiled
        return compiled

    def sample(
        self,
        layout: Layout,
        features: Floats,
        outcomes: Floats,
        settings: SamplerSettings,
        weights: Floats | None = None,
    ) -> Trace:
        """Run NUTS by nutpie. The draws follow from the seed, whatever the number of cores.

        Args:
            layout: The layout that is measured.
            features: (instances, features), as returned by `Layout.check_features`.
            outcomes: (instances,) or (instances, outcomes), as returned by `Layout.check_outcomes`;
                one instance at least.
            settings: How to sample.
            weights: (instances,), how many outcomes each counts as; None for one each.
        """
        from animalcat.layouts.inference.backend import compat, density

        if density.covers(layout):
            model = density.model(layout, features, outcomes, weights)
            drawn, known = compat.from_arrow(sample(model, settings), layout.latent_names)
            return Trace(drawn, known["energy"], int(known["diverging"].sum()), known)
        import nutpie

        model = self._model(layout, weights is not None)
        model = model.with_data(**self._data(layout, features, outcomes, weights))
        result = nutpie.sample(
            model,
            draws=settings.draws,
            tune=settings.tune,
            chains=settings.chains,
            cores=settings.cores,
            seed=settings.seed,
            save_warmup=False,
            progress_bar=False,
            target_accept=settings.target_accept,
        )
        return _trace(layout, result)

    def sample_plainly(
        self,
        layout: Layout,
        features: Floats,
        outcomes: Floats,
        settings: SamplerSettings,
        weights: Floats | None = None,
    ) -> Trace:
        """Sample by PyMC's own NUTS, for comparison: slower, and compiled for every run."""
        import pymc as pm

        self.compiles += 1
        with self._graph(layout, weights is not None).model:
            pm.set_data(self._data(layout, features, outcomes, weights))
            result = pm.sample(
                draws=settings.draws,
                tune=settings.tune,
                chains=settings.chains,
                cores=settings.cores,
                random_seed=settings.seed,
                target_accept=settings.target_accept,
                progressbar=False,
                quiet=True,
                compute_convergence_checks=False,
                compile_kwargs={"mode": "NUMBA"},  # the C compiler is switched off, see __init__
            )
        return _trace(layout, result)

    def _graph(self, layout: Layout, weighted: bool) -> ModelGraph:
        weighted = weighted or len(layout.outcomes) > 1
        if (layout.digest, weighted) not in self._graphs:
            from animalcat.layouts.inference.backend.graph import build_model

            self._graphs[layout.digest, weighted] = build_model(layout, weighted=weighted)
        return self._graphs[layout.digest, weighted]

    def _data(
        self, layout: Layout, features: Floats, outcomes: Floats, weights: Floats | None
    ) -> dict[str, npt.NDArray[Any]]:
        return self._graph(layout, weights is not None).data(features, outcomes, weights)


@contextmanager
def _no_collection() -> Generator[None]:
    """Keep the garbage collector off: compiling allocates much and frees little before its end."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _trace(layout: Layout, result: Any) -> Trace:
    from animalcat.layouts.inference.backend import compat

    return Trace(
        compat.draws(result, layout.latent_names),
        compat.statistic(result, "energy"),
        int(compat.statistic(result, "diverging").sum()),
        compat.statistics(result),
    )


@cache
def default_engine() -> Engine:
    """The engine shared within this process, so that nothing is compiled twice."""
    return Engine()
