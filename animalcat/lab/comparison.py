"""Agents side by side: ranks and differences with intervals, from draws of their posteriors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from animalcat.errors import AnimalcatError
from animalcat.layouts.checking.side_by_side import (
    cluster_rows,
    compare_agents,
    difference_rows,
    rank_rows,
)
from animalcat.plots.given import numbered
from animalcat.showing import line_html, stacked_html, table_html, table_text

if TYPE_CHECKING:
    import pandas as pd

    from animalcat.service.reporting.comparison import Compared, Measured

_RANKS: Final = ("node", "agent", "estimate", "rank", "P(most)", "P(least)")
_CLUSTERS: Final = ("node", "group", "agents", "estimates", "P(above the next)", "who")
_DIFFERENCES: Final = ("node", "agent", "from", "differs by", "90 %", "P(more)")


class Comparison:
    """Agents side by side; at the end of a notebook's cell it shows what matters of each node.

    That is who cannot be told apart, who has most and least, and which two differ most. Every pair
    is compared when `to_frame` is called.

    Attributes:
        known: What is compared, and what was different when the agents were measured.
    """

    def __init__(self, known: Compared) -> None:
        """Compare.

        Args:
            known: The agents.
        """
        self.known = known

    @cached_property
    def report(self) -> dict[str, Any]:
        """Where agents stand, as `profile compare --json` prints it without `--pairs`."""
        return self._compared(pairs=False)

    @cached_property
    def _pairs(self) -> dict[str, Any]:
        return self._compared(pairs=True)

    def _compared(self, *, pairs: bool) -> dict[str, Any]:
        known = self.known
        nodes = {name: profile["nodes"] for name, profile in known.profiles.items()}
        every = "every" if pairs else None
        return compare_agents(known.posteriors, pairs=every, scales=known.scales, nodes=nodes)

    @property
    def notes(self) -> list[str]:
        """What has to be known before any number is read, one sentence each."""
        return self.known.notes()

    def ranks(self) -> pd.DataFrame:
        """Ranks of the agents by each node; 1 has the most."""
        import pandas as pd

        return pd.DataFrame(rank_rows(self.report, every=True))[list(_RANKS)]

    def groups(self) -> pd.DataFrame:
        """Groups of agents by each node: none of a group can be told apart from its first.

        Returns:
            One row an agent and node, with `group` (1 has the most) and `above`, the probability
            that the first of the group has more than the first of the next.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {"node": standing["node"], "agent": agent, "group": k, "above": cluster["above"]}
                for standing in self.report["standings"]
                for k, cluster in enumerate(standing["clusters"], 1)
                for agent in cluster["agents"]
            ]
        )

    def to_frame(self) -> pd.DataFrame:
        """Differences of every two agents by each node, in the layout's units.

        It takes time by the square of the number of agents.

        Returns:
            The columns `node`, `agent`, `than`, `mean`, `low` and `high` (the 90 % interval) of the
            difference, `more`, the probability that the agent has more, and `words`.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    **{key: row[key] for key in ("agent", "than", "node", "unit", "mean")},
                    "low": row["hdi"][0],
                    "high": row["hdi"][1],
                    "more": row["more"],
                    "words": row["words"]["estimate"],
                }
                for row in self._pairs["differences"]
            ]
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the agents' intervals side by side.

        Args:
            ax: Where; None for a new figure.
        """
        from animalcat import plots

        return plots.comparison(self.known.results, ax, scales=self.known.scales)

    def _tables(self) -> list[tuple[tuple[str, ...], list[list[Any]], str]]:
        """Heads, cells and captions of what is shown."""
        two = len(self.known.posteriors) == 2
        shown = (
            (_RANKS, rank_rows(self.report), "Ranks; 1 has the most"),
            (_CLUSTERS, cluster_rows(self.report), "Who cannot be told apart"),
            (_DIFFERENCES, difference_rows(self.report, every=two), "The largest differences"),
        )
        return [
            (heads, [[row[head] for head in heads] for row in rows], caption)
            for heads, rows, caption in shown
        ]

    def __repr__(self) -> str:
        return "\n".join([*self.notes, *(table_text(*table) for table in self._tables())])

    def to_html(self) -> str:
        """What a notebook shows."""
        return stacked_html(
            *map(line_html, self.notes), *(table_html(*table) for table in self._tables())
        )

    _repr_html_ = to_html


def compare(results: Sequence[Measured], *, mixed: bool) -> Comparison:
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


def agent_names(results: Sequence[Measured]) -> list[str]:
    """Names of agents; one that was measured several times is numbered."""
    return numbered([result.agent for result in results])
