"""Pictures of profiles, posteriors and outcomes, for matplotlib and notebooks.

    from animalcat.plots import forest, read_results, save

    results = read_results("posterior.nc")
    forest(results)                               # shows as the last line of a cell
    save(forest(results), "forest.svg")
    figure, axes = plt.subplots(1, 2)
    densities(results, ["noiseLevel"], ax=axes[0])   # draws there

Every function takes what is known as it is: a `Fit`, a `Learner`, results, or where no draws are
needed a profile. It draws on the axes that are given as `ax`, one or a list of as many as it has
panels, or else on a figure of its own, and returns the figure that it drew on. Its own figures are
no part of pyplot and show in notebooks by themselves. On another's figure it writes no title and no
legend of the whole.

`posterior` draws what is known of one agent: `forest`, `densities`, `trajectory`, and `graph` puts
it into the layout's graph, or draws a layout alone. `prediction` holds predictions against
outcomes: `characteristic`, `reliability`. `agents` draws several agents: `comparison`.
`results` reads an exported posterior, `given` finds what is drawn in what was given,
`readings` says how nodes are read, and `style` is what all pictures share. The extra `learner`
brings what they need. The command is `animalcat profile plot`.
"""

from animalcat.extending.installing import needing

with needing("animalcat.plots", "learner"):
    from animalcat.plots.agents import comparison
    from animalcat.plots.graph import graph
    from animalcat.plots.posterior import densities, forest, trajectory
    from animalcat.plots.prediction import characteristic, reliability
    from animalcat.plots.results import read_results
    from animalcat.plots.style import save

__all__ = [
    "characteristic",
    "comparison",
    "densities",
    "forest",
    "graph",
    "read_results",
    "reliability",
    "save",
    "trajectory",
]


def __dir__() -> list[str]:
    """What there is, for completion: the public names, and not where they live."""
    return list(__all__)
