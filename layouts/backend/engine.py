"""NUTS by nutpie: a layout is compiled once, then takes data of any length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.spec import Layout

if TYPE_CHECKING:
    import nutpie

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What one run of NUTS gave.

    Attributes:
        draws: (chains, draws, latents).
        energy: (chains, draws).
        divergences: How many draws diverged.
    """

    draws: Floats
    energy: Floats
    divergences: int


class Engine:
    """Compiled models by the digest of their layout. One thread at a time.

    Attributes:
        compiles: How many layouts have been compiled so far.
    """

    def __init__(self) -> None:
        self.compiles = 0
        self._compiled: dict[str, nutpie.CompiledModel] = {}

    def compile(self, layout: Layout) -> nutpie.CompiledModel:
        """The compiled model; takes about ten seconds the first time, nothing after."""
        made = self._compiled.get(layout.digest)
        if made is None:
            # Imported here: it takes seconds, and a fit without outcomes needs none of it.
            import nutpie

            from animalcat.layouts.backend.graph import build_model

            self.compiles += 1
            model = build_model(layout)
            made = nutpie.compile_pymc_model(
                model, backend="numba", var_names=list(layout.latent_names)
            )
            self._compiled[layout.digest] = made
        return made

    def sample(
        self,
        layout: Layout,
        features: Floats,
        outcomes: Floats,
        *,
        seed: int,
        chains: int,
        draws: int,
        tune: int,
        target_accept: float,
        cores: int,
    ) -> Trace:
        """Run NUTS. The draws follow from the seed, whatever the number of cores.

        Args:
            layout: What is measured.
            features: (instances, features).
            outcomes: (instances,), as `Layout.check_outcomes` gave them; one at least.
            seed: Seed of the run, below 2^63.
            chains: Number of chains.
            draws: Draws of each chain.
            tune: Draws of each chain that tune the sampler, and are dropped.
            target_accept: Share of accepted steps that the step width is tuned to.
            cores: How many chains run at once.
        """
        compiled = self.compile(layout)
        import nutpie

        from animalcat.layouts.backend import compat
        from animalcat.layouts.backend.graph import FEATURES, OUTCOMES, outcome_type

        data = {FEATURES: features, OUTCOMES: outcomes.astype(outcome_type(layout))}
        result = nutpie.sample(
            compiled.with_data(**data),
            draws=draws,
            tune=tune,
            chains=chains,
            cores=cores,
            seed=seed,
            save_warmup=False,
            progress_bar=False,
            target_accept=target_accept,
        )
        return Trace(
            compat.draws(result, layout.latent_names),
            compat.statistic(result, "energy"),
            int(compat.statistic(result, "diverging").sum()),
        )


@cache
def default_engine() -> Engine:
    """The engine that this process shares, so that nothing is compiled twice."""
    return Engine()
