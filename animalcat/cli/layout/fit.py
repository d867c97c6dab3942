"""`animalcat layout fit`: profiles from outcomes that one already has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from animalcat.cli.layout.outcomes import (
    OUTCOMES,
    Agents,
    Table,
    fit_layouts,
    read_meant,
    say_what_was_left_out,
    warn_of_bad_fits,
)
from animalcat.cli.layout.show import Name, Variant
from animalcat.cli.layout.table import outcomes_on_arenas
from animalcat.cli.shared.command_help import OUTPUT
from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.outcome_options import As, AsOption, KeepDrawn, PassMarks, Seed
from animalcat.cli.shared.output import FAILED, fail, print_json, print_table, wrote
from animalcat.layouts.fitting.fits import Fit
from animalcat.layouts.model.instances import CoveredOutcomes
from animalcat.layouts.model.spec import Bernoulli, Layout
from animalcat.machine.files import write_whole
from animalcat.text.counts import count_of

ArenaFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="The arenas that were played, in files that are called INSTANCE.yaml.",
        rich_help_panel=OUTCOMES,
    ),
]
FinalRewards = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE.csv",
        help="The final rewards on these arenas: a column `instance`, and one column for each "
        "agent.",
        rich_help_panel=OUTCOMES,
    ),
]


@without("--server")
def command(
    name: Name,
    battery: ArenaFolder = None,
    outcomes: FinalRewards = None,
    pass_marks: PassMarks = None,
    taken_as: AsOption = None,
    keep_drawn: KeepDrawn = False,
    table: Table = None,
    variant: Variant = "",
    agent: Agents = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.json",
            help="Write the profiles to this file, as JSON.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Work out profiles from outcomes that you already have.

    Give the outcomes as a table of meta-features and outcomes (--table and --agent), or as final
    rewards on arena files (--battery and --outcomes). The exit code is 1 when a fit has not
    converged.
    """
    played, layout = given_outcomes(
        (name, variant),
        battery,
        outcomes,
        pass_marks,
        taken_as,
        table,
        agent or [],
        keep_drawn=keep_drawn,
    )
    (fits,) = fit_layouts([layout], played.table, seed)
    entries = [_entry(who, fitted, played) for who, fitted in fits.items()]
    if output is not None:
        try:
            text = json.dumps(entries, indent=2, ensure_ascii=False) + "\n"
            write_whole(output, text.encode())
        except OSError as error:
            fail(f"{output}: cannot be written: {error.strerror}")
        wrote(count_of(len(entries), "profile"), output)
    if common().as_json:
        print_json(entries)
    elif output is None:
        _print_entries(layout, entries)
    if not common().as_json:
        say_what_was_left_out(played)
    if warn_of_bad_fits([fits]):
        raise typer.Exit(FAILED)


def given_outcomes(
    named: tuple[str, str],
    battery: Path | None,
    outcomes: Path | None,
    pass_marks: Path | None,
    taken_as: As | None,
    table: Path | None,
    agents: Sequence[str],
    *,
    keep_drawn: bool,
) -> tuple[CoveredOutcomes, Layout]:
    """The outcomes that a command is given, as a table or as rewards, with the layout of them.

    Ends the command where there are none or something is wrong.

    Args:
        named: Name or file of the layout, and its variant; empty for the one that is meant.
        battery: Folder of the arenas that were played.
        outcomes: Table of final rewards on them.
        pass_marks: Table of pass marks.
        taken_as: What the numbers of `outcomes` are.
        table: A table of meta-features and outcomes, in the place of all these.
        agents: Agents to take.
        keep_drawn: Whether arenas that leave something to chance count.
    """
    if table is not None:
        if battery or outcomes or pass_marks or taken_as or keep_drawn:
            fail(
                "--table contains everything: give it without --battery, --outcomes, "
                "--pass-marks, --as and --keep-drawn"
            )
        played, (layout,) = read_meant(table, agents, [named])
        return played, layout
    if battery is None or outcomes is None:
        fail("where are the outcomes? Give --table, or --battery and --outcomes")
    return outcomes_on_arenas(
        named, battery, outcomes, pass_marks, agents, taken_as, keep_drawn=keep_drawn
    )


def _entry(agent: str, fitted: Fit, played: CoveredOutcomes) -> dict[str, Any]:
    profile = fitted.profile.to_dict()
    outcomes = played.table.of(agent)[1]
    counted = isinstance(fitted.layout.outcome, Bernoulli)
    return {
        "agent": agent,
        "successes": int(outcomes.sum()) if counted else None,
        "mean_outcome": float(outcomes.mean()) if len(outcomes) else None,
        "instances": len(outcomes),
        "coverage": played.coverage(agent),
        "notes": [*dict.fromkeys(filter(None, (fitted.inverted, *played.notes, *fitted.notes)))],
        **{key: profile[key] for key in ("layout", "hdi_share", "nodes", "diagnostics")},
    }


def _print_entries(layout: Layout, entries: Sequence[Mapping[str, Any]]) -> None:
    """Print what each node of each agent means, as `Fit` shows it in Python."""
    rows = [
        {
            **{key: "" if k else told for key, told in _head(entry).items()},
            "node": name,
            "what it means": node["words"]["estimate"],
            "90 % interval": node["words"]["interval"],
            "note": "; ".join(filter(None, (node["status"], node["note"]))),
        }
        for entry in entries
        for k, (name, node) in enumerate(entry["nodes"].items())
    ]
    columns = [*rows[0]][: None if any(row["note"] for row in rows) else -1]
    title = f"{layout.name} ({layout.variant})" if layout.variant else layout.name
    print_table(rows, columns, title=title)


def _head(entry: Mapping[str, Any]) -> dict[str, str]:
    """What is said of an agent once: its name, and how much it passed."""
    if entry["successes"] is not None:
        passed = f"{entry['successes']}/{entry['instances']}"
        return {"agent": entry["agent"], "passed": passed}
    mean = entry["mean_outcome"]
    told = "-" if mean is None else f"{mean:.3f} of {entry['instances']}"
    return {"agent": entry["agent"], "mean outcome": told}
