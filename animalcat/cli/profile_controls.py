"""Sets what agents played against its controls, for `profile controls`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from animalcat.cli.shared.output import fail, print_json, print_rows, status
from animalcat.cli.shared.remote import client_for
from animalcat.cli.shared.table import Column
from animalcat.client import Client
from animalcat.service.measuring.profile_words import control_cells

_NONE = (
    "no arena was played together with a control of it, and no choice both forced and free. "
    "`session run --pairs` plays pairs on a battery that has controls"
)


def show_controls(
    sources: Sequence[str], *, server: str | None, data: Path | None, as_json: bool
) -> None:
    """Print how often arenas were passed, and how often their controls.

    Args:
        sources: Ids of sessions, and files of outcomes.
        server: Host and port, if one was given.
        data: The data directory, if one was given.
        as_json: Whether JSON is printed.
    """
    files = [source for source in sources if Path(source).suffix.lower() in (".csv", ".parquet")]
    if len(files) == len(sources):
        found = _of_tables(None, sources)
    else:
        with client_for(server, data) as client, status("reading the outcomes"):
            if len(sources) == 1:
                profile = client.profile(sources[0])
                found = {str(profile["provenance"]["agent"]): profile["controls"]}
            else:
                found = _of_tables(client, sources)
    if as_json:
        print_json([{"agent": agent, "controls": rows} for agent, rows in found.items()])
        return
    for agent, rows in found.items():
        if not rows:
            typer.echo(f"{agent or 'the agent'}: {_NONE}")
            continue
        _print(agent, rows)


def _of_tables(client: Client | None, sources: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The comparisons of several tables together, by agent."""
    import pandas as pd

    from animalcat.cli.controls import compared_controls
    from animalcat.outcomes import OutcomesError, read_outcomes

    frames: list[pd.DataFrame] = []
    for source in sources:
        if Path(source).suffix.lower() in (".csv", ".parquet"):
            try:
                frames.append(read_outcomes(source))
            except (OutcomesError, OSError) as error:
                fail(f"{source}: {error}")
        elif client is not None:
            frames.append(client.outcomes(source))
    found = compared_controls(pd.concat(frames, ignore_index=True))
    return {agent: [row.to_dict() for row in rows] for agent, rows in found.items()}


def _print(agent: str, rows: Sequence[Mapping[str, Any]]) -> None:
    cells = [
        {**cell, "passed, control": f"{cell['as they are']}, {cell['with control']}"}
        for cell in map(control_cells, rows)
    ]
    columns = (
        *("arenas", "control", "passed, control", "pairs"),
        *(Column("only arena", 2), Column("only control", 1)),
        *("difference, %", "says"),
    )
    print_rows(
        cells,
        columns,
        as_json=False,
        title=f"{agent or 'the agent'}: arenas against their controls. The difference is of the "
        "shares that were passed, with its 90 % interval",
    )
