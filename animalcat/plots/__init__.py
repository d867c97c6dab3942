"""Pictures of profiles, posteriors and outcomes: each function returns a matplotlib figure.

    from animalcat.plots import forest, read_results, save

    save(forest(read_results(Path("posterior.nc")).profile), "forest.svg")

`posterior` draws what is known of one agent: `forest`, `densities`, `trajectory`, and `graph` puts
it into the layout's graph. `prediction` holds predictions against outcomes: `characteristic`,
`grid`, `reliability`, `coverage`. `agents` draws several agents: `comparison`, `population`,
`heat`, `brier`, `generality`, `categories`, `radar`. `results` reads an exported posterior,
`readings` says how nodes are read, and `style` is what all pictures share; `inline` puts them into
pages. The extra `server` brings what they need. The command is `animalcat profile plot`.
"""

from animalcat.plots.agents import (
    brier,
    categories,
    comparison,
    generality,
    heat,
    population,
    radar,
)
from animalcat.plots.graph import graph
from animalcat.plots.posterior import densities, forest, trajectory
from animalcat.plots.prediction import characteristic, coverage, grid, reliability
from animalcat.plots.results import read_results
from animalcat.plots.style import save

__all__ = [
    "brier",
    "categories",
    "characteristic",
    "comparison",
    "coverage",
    "densities",
    "forest",
    "generality",
    "graph",
    "grid",
    "heat",
    "population",
    "radar",
    "read_results",
    "reliability",
    "save",
    "trajectory",
]
