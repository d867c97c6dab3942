"""Agents side by side: ranks and differences with intervals, from draws of their posteriors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from animalcat.errors import AnimalcatError
from animalcat.layouts.checking.compare import (
    Posterior,
    difference_words,
    node_differences,
    ranking,
)
from animalcat.layouts.explaining.wording import Scale, plain_scale
from animalcat.layouts.inference.summary import hdi
from animalcat.plots.given import numbered
from animalcat.plots.results import Results
from animalcat.showing import line_html, stacked_html, table_html, table_text

if TYPE_CHECKING:
    import pandas as pd

    from animalcat.service.reporting.comparison import Compared

_RANKS: Final = ("node", "agent", "estimate", "rank", "P(most)")
_DIFFERENCES: Final = ("node", "agent", "from", "differs by", "90 %", "P(more)")


class Comparison:
    """Agents side by side; at the end of a notebook's cell it shows ranks and differences.

    Attributes:
        known: What is compared, and what was different when the agents were measured.
        report: Ranks and differences, as `profile compare --json` prints them.
    """

    def __init__(self, known: Compared) -> None:
        """Compare.

        Args:
            known: The agents.
        """
        self.known = known
        nodes = {name: profile["nodes"] for name, profile in known.profiles.items()}
        self.report = compare_agents(
            known.posteriors, every_pair=True, scales=known.scales, nodes=nodes
        )

    @property
    def notes(self) -> list[str]:
        """What has to be known before any number is read, one sentence each."""
        different = [difference.sentence for difference in self.known.differences]
        return [*self.known.labels(), *different, *self.known.sentences()]

    def ranks(self) -> pd.DataFrame:
        """Ranks of the agents by each node; 1 has the most."""
        import pandas as pd

        return pd.DataFrame(self._ranks(), columns=list(_RANKS))

    def to_frame(self) -> pd.DataFrame:
        """Differences of every two agents by each node, in the layout's units.

        Returns:
            The columns `node`, `agent`, `than`, `mean`, `low` and `high` (the 90 % interval) of the
            difference, `more`, the probability that the agent has more, and `words`.
        """
        import pandas as pd

        rows = [
            {key: value for key, value in row.items() if key != "words"}
            | {"words": row["words"]["estimate"]}
            for row in self.report["differences"]
        ]
        return pd.DataFrame(rows)

    def plot(self, ax: Any = None) -> Any:
        """Draw the agents' intervals side by side.

        Args:
            ax: Where; None for a new figure.
        """
        from animalcat import plots

        return plots.comparison(self.known.results, ax, scales=self.known.scales)

    def _ranks(self) -> list[tuple[Any, ...]]:
        return [
            (
                row["node"],
                row["name"],
                row["words"]["estimate"],
                round(row["rank"], 1),
                round(row["probabilities"][0], 2),
            )
            for row in self.report["ranking"]
        ]

    def _differences(self) -> list[tuple[Any, ...]]:
        return [
            (
                row["node"],
                row["agent"],
                row["than"],
                row["words"]["estimate"],
                row["words"]["interval"],
                round(row["more"], 2),
            )
            for row in self.report["differences"]
        ]

    def __repr__(self) -> str:
        ranks = table_text(_RANKS, self._ranks(), "Ranks; 1 has the most")
        return "\n".join([*self.notes, ranks, table_text(_DIFFERENCES, self._differences())])

    def to_html(self) -> str:
        """What a notebook shows."""
        return stacked_html(
            *map(line_html, self.notes),
            table_html(_RANKS, self._ranks(), "Ranks; 1 has the most"),
            table_html(_DIFFERENCES, self._differences(), "Differences"),
        )

    _repr_html_ = to_html


def compare(results: Sequence[Results], *, mixed: bool) -> Comparison:
    """Put agents side by side.

    Args:
        results: What a session found out of each, two at least.
        mixed: Whether different layouts, backends and observations may be compared.

    Raises:
        AnimalcatError: They cannot be compared.
    """
    from animalcat.service.reporting.comparison import MixedError, compared

    named = dict(zip(agent_names(results), results, strict=True))
    try:
        return Comparison(compared(named, mixed=mixed))
    except MixedError as error:
        raise AnimalcatError(f"{error} Say mixed=True to compare them all the same.") from None
    except ValueError as error:
        raise AnimalcatError(str(error)) from None


def compare_agents(
    posteriors: Sequence[Posterior],
    seed: int = 0,
    *,
    every_pair: bool = False,
    scales: Mapping[str, Scale] | None = None,
    nodes: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Ranks of agents by every node, and differences.

    Args:
        posteriors: One an agent, one at least.
        seed: Seed of the pairing of draws.
        every_pair: Whether every two agents are compared; else the others with the first.
        scales: How the values of nodes are read; of those that are not there the unit alone is
            known.
        nodes: The nodes of each agent's profile, as JSON, by agent. What these do not know is not
            said.

    Raises:
        ValueError: The layouts differ.
    """
    first, *others = posteriors
    agents = {posterior.name: posterior for posterior in posteriors}
    units = dict(zip(first.nodes, first.units, strict=True))
    read = {node: plain_scale(unit) for node, unit in units.items()} | dict(scales or {})
    pairs = list(combinations(posteriors, 2)) if every_pair else [(o, first) for o in others]
    return {
        "ranking": [
            {
                "node": node,
                **asdict(entry),
                "words": _standing(agents[entry.name], node, read, nodes),
            }
            for node in (first.nodes if others else ())
            for entry in ranking(posteriors, node, seed)
        ],
        "differences": [
            {
                "agent": agent.name,
                "than": other.name,
                **asdict(difference),
                "words": {
                    **difference_words(
                        agent, other, difference.node, read[difference.node]
                    )._asdict(),
                    "rising": read[difference.node].rising,
                },
            }
            for agent, other in pairs
            for difference in node_differences(agent, other, seed)
        ],
        "approximate": any(posterior.approximate for posterior in posteriors),
    }


def _standing(
    agent: Posterior,
    name: str,
    read: Mapping[str, Scale],
    nodes: Mapping[str, Mapping[str, Any]] | None,
) -> dict[str, str]:
    """An agent's estimate of a node, with the words and the bound of its profile."""
    found = nodes and nodes.get(agent.name, {}).get(name)
    if found:
        return read[name].of_profile(found)._asdict()
    draws = agent.column(name)
    ends = hdi(draws, np.full(len(draws), 1.0 / len(draws)))
    return read[name].brief(float(draws.mean()), *ends)._asdict()


def agent_names(results: Sequence[Results]) -> list[str]:
    """Names of agents; one that was measured several times is numbered."""
    return numbered([result.agent for result in results])
