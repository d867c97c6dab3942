"""A profile as a value that shows itself: its table in readers' units, its verdict, its doubts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from animalcat.text.showing import line_html, stacked_html, table_html, table_text
from animalcat.values import Verdict, verdict_of

if TYPE_CHECKING:
    import pandas as pd

_EXTENSION: Final = re.compile(
    r"animalcat session resume (\S+) --episodes (\d+)(?: --target-sd (\S+))?"
)
_COLUMNS: Final = ("capability", "estimate", "90 % interval", "status")


class Profile(dict[str, Any]):
    """What a session found out about its agent, by the schema `profile.schema.json`.

    It is a dictionary, as JSON has it: `profile["nodes"]["visualAbility"]["mean"]`.
    """

    def __init__(self, content: Mapping[str, Any], where: str = "") -> None:
        """Take a profile.

        Args:
            content: As the schema has it.
            where: Options by which commands find its session.
        """
        super().__init__(content)
        self._where = where

    @property
    def verdict(self) -> Verdict:
        """What it says in words at its end."""
        return verdict_of(self)

    @property
    def title(self) -> str:
        """Of whom it is, on which battery, and how much was played."""
        about = self["provenance"]
        engine = "NUTS" if self["diagnostics"]["engine"] == "nuts" else "live, not certified"
        return (
            f"{about['agent']} on {about['battery']}: {about['successes']} of "
            f"{about['episodes']} episodes passed ({engine})"
        )

    def to_frame(self) -> pd.DataFrame:
        """The nodes of the layout, one row each, by name.

        Returns:
            Kind, estimate, low and high ends of the 90 % interval, unit, status and note, in the
            units in which nodes are read, as `animalcat.layouts.Fit.to_frame` has them. An estimate
            is missing where next to nothing was learnt. Of a layout that is not shipped the numbers
            are in its own units; `Result.to_frame` knows how it is read.
        """
        from animalcat.layouts.fitting.estimates import estimates_frame, profile_scales

        return estimates_frame(self["nodes"], profile_scales(self))

    @property
    def controls(self) -> pd.DataFrame:
        """Arenas against their controls, one row a comparison; `profile["controls"]` as a table.

        The difference is of the shares that were passed, with the 90 % interval `low` to `high`:
        of pairs where `paired` is true, and else of all that was played on either side.
        """
        import pandas as pd

        return pd.DataFrame(self["controls"])

    def _rows(self) -> list[tuple[str, str, str, str]]:
        nodes: Mapping[str, Mapping[str, Any]] = self["nodes"]
        return [
            (
                name,
                *_words(node),
                node["status"] or node["kind"],
            )
            for name, node in nodes.items()
        ]

    def _above(self) -> Sequence[str]:
        """What has to be known before any number is read."""
        from animalcat.service.measuring.profile_words import warnings

        return warnings(self)

    def _below(self) -> list[str]:
        """What follows the table: the judgement, the rate, the verdict, and what to do next."""
        from animalcat.service.measuring.profile_words import battery_rate, judgement_words

        steps: Sequence[Mapping[str, Any]] = self.get("what_now") or ()
        told = [judgement_words(self), battery_rate(self), self.verdict.text]
        told += map(self.next_step, steps)
        return [text for text in told if text]

    def next_step(self, step: Mapping[str, Any]) -> str:
        """What would close what is open, with the call that does it, or else the command.

        Args:
            step: One of `what_now`.
        """
        return f"What now? {step['text']} {self._call(step)}".rstrip()

    def _call(self, step: Mapping[str, Any]) -> str:
        extended = _EXTENSION.fullmatch(step["command"])
        if extended is not None:
            session, episodes, target = extended.groups()
            finer = f", target_sd={target}" if target else ""
            return f"lab.resume({session!r}, agent, episodes={episodes}{finer})"
        return f"{step['command']} {self._where}".strip() if step["command"] else ""

    def __repr__(self) -> str:
        table = table_text(_COLUMNS, self._rows(), self.title)
        return "\n".join([*self._above(), table, *self._below()])

    def to_html(self) -> str:
        """What a notebook shows."""
        return stacked_html(
            *map(line_html, self._above()),
            table_html(_COLUMNS, self._rows(), self.title),
            *map(line_html, self._below()),
        )

    _repr_html_ = to_html


def _words(node: Mapping[str, Any]) -> tuple[str, str]:
    """A node's estimate and interval in readers' units; a bare fit has no words, and so numbers."""
    words: Mapping[str, str] | None = node["words"]
    if words:
        return words["estimate"], words["interval"]
    return f"{node['mean']:.3g} ± {node['sd']:.2g}", "{:.3g} to {:.3g}".format(*node["hdi"])
