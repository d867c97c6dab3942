"""Arenas against their controls, from tables of outcomes.

    frame = read_outcomes("outcomes.parquet")
    compared_controls(frame)["builtin:scout"]

It needs pandas, as tables of outcomes do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from animalcat.arena_configs.taken import TAKEN
from animalcat.layouts.explaining.controls import (
    NOT_CHOSEN,
    ControlComparison,
    PlayedArena,
    compare_controls,
)
from animalcat.layouts.model.tables import name_and_unit
from animalcat.outcomes import COLUMNS, check_outcomes

if TYPE_CHECKING:
    import pandas as pd


def compared_controls(frame: pd.DataFrame) -> dict[str, tuple[ControlComparison, ...]]:
    """Set what agents played against the controls of it that they played.

    Where a table does not say why an arena was played, all agents are taken to have played what
    they played whatever came of it.

    Args:
        frame: A table of outcomes, or several of them one after the other, each in the order of its
            episodes. Arenas of one name are one arena.

    Returns:
        The comparisons by agent.

    Raises:
        OutcomesError: It is no table of outcomes.
    """
    table = check_outcomes(frame)
    counted = table[table["outcome"].isin(["success", "failure"])]
    features = {name: name_and_unit(name)[0] for name in counted.columns if name not in COLUMNS}
    found: dict[str, tuple[ControlComparison, ...]] = {}
    for agent, rows in counted.groupby(counted["agent"].fillna(""), sort=True):
        played = [
            PlayedArena(
                instance=row["instance"],
                paradigm=row["paradigm"] or "",
                control=row["control"] or "",
                control_of=row["control_of"] or "",
                passed=row["outcome"] == "success",
                features={
                    feature: row[name]
                    for name, feature in features.items()
                    if row[name] is not None
                },
                chosen=(row["reason"] or "") not in {"", *NOT_CHOSEN},
            )
            for row in rows.astype(object).where(rows.notna(), None).to_dict("records")
        ]
        found[str(agent)] = compare_controls(played, TAKEN)
    return found
