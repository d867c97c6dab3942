"""Reads tables of outcomes in the form of `profile export --format csv`: a row for each attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from animalcat.alike import UnlikeError, conditions_of_rows, differing, insist_poolable
from animalcat.layouts.adaptive.pooling import ContradictionError
from animalcat.layouts.fitting.evidence import evidence_of
from animalcat.layouts.model.instances import Instances, OutcomeTable, TableError
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import check_alike, guess, name_and_unit
from animalcat.outcomes import COLUMNS

if TYPE_CHECKING:
    import pandas as pd


def insist_success(layout: Layout) -> None:
    """Refuse a layout of other outcomes than success, which such a table does not have.

    Raises:
        TableError: It has others.
    """
    if [outcome.source for outcome in layout.outcomes] != ["success"]:
        raise TableError(
            f"layout {layout.name} ({layout.variant}) takes other outcomes than success, "
            "and the table says what was a success. Give a column of outcomes an agent"
        )


def of_export(frame: pd.DataFrame, agents: Sequence[str]) -> tuple[OutcomeTable, list[str]]:
    """Outcomes as `profile export --format csv` has them, a row for each attempt that counts.

    Args:
        frame: The table.
        agents: Agents to take; without them, all. If the table names none, the one who played.

    Returns:
        The outcomes, and what was left out.

    Raises:
        TableError: A row names no agent, or there is no such agent.
    """
    counts = frame["outcome"].isin(["success", "failure"])
    who = frame["agent"].fillna("").str.strip()
    if not (who[counts] != "").any() and len(agents) == 1:
        who = who.replace("", agents[0])
    nameless = counts & (who == "")
    if nameless.any():
        raise TableError(
            f"an outcome on {frame['instance'][nameless].iloc[0]} names no agent "
            f"({int(nameless.sum())} do not); fill the column `agent`"
            + " or say with one --agent who played"
            * bool((who[counts] == "").all())
        )
    check_alike(who[counts].unique(), "agents")
    known = [str(agent) for agent in who[counts].unique()]
    for agent in agents:
        if agent not in known:
            listed = ", ".join(known) or "none"
            raise TableError(f"no agent {agent!r}; agents: {listed}.{guess(agent, known)}")
    try:
        counted = evidence_of(frame.assign(agent=who))
    except ContradictionError as error:
        raise TableError(str(error)) from None
    frame, who = counted.frame, counted.frame["agent"]
    chosen = [*dict.fromkeys(agents)] or known
    notes = [*counted.notes]
    for agent in chosen:
        try:
            notes += [f"agent {agent}: {note}" for note in insist_poolable(frame[who == agent])]
        except UnlikeError as error:
            raise TableError(f"agent {agent}: {error}") from None
    taken = who.isin(chosen)
    unlike = differing(conditions_of_rows(frame[taken], who[taken]))
    notes += [one.sentence for one in unlike if one.forbids("compare")]
    if not chosen:
        raise TableError("no attempt has succeeded or failed; there is nothing to fit")
    heads = [str(column) for column in frame.columns if column not in COLUMNS]
    split = [name_and_unit(head) for head in heads]
    instances = Instances(
        tuple(name for name, _ in split),
        frame[heads].to_numpy(np.float64, na_value=np.nan).reshape(len(frame), len(heads)),
        tuple(frame["paradigm"].fillna("")),
        tuple(frame["instance"].str.strip()),
        tuple(unit for _, unit in split),
        played_before=frame["played_before"].to_numpy(np.float64, na_value=np.nan),
    )
    passed = (frame["outcome"] == "success").to_numpy(np.float64)
    rows = [np.where((who == agent).to_numpy(bool), passed, np.nan) for agent in chosen]
    table = OutcomeTable(instances, tuple(chosen), np.array(rows), counted.weights)
    return table, notes
