"""`animalcat layout assess`: a layout beside assessors that predict without explaining."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from animalcat.cli.layout.fit import ArenaFolder, FinalRewards, given_outcomes
from animalcat.cli.layout.outcomes import OUTCOMES, Agents, Table, say_what_was_left_out
from animalcat.cli.layout.show import Json, Name, Variant
from animalcat.cli.shared.command_help import OUTPUT
from animalcat.cli.shared.outcome_options import AsOption, KeepDrawn, PassMarks, Seed
from animalcat.cli.shared.output import fail, print_json, print_rows, wrote
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.remote import Data
from animalcat.layouts.checking.assess import REPEATS, Assessment, assess_table


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
    repeats: Annotated[
        int,
        typer.Option(
            metavar="TIMES",
            min=1,
            help="How often 20 % of the instances are held out, the same for all agents.",
            rich_help_panel=OUTCOMES,
        ),
    ] = REPEATS,
    seed: Seed = 0,
    data: Data = None,
    as_json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Draw every agent's Brier scores by how much it passed, as FILE.svg, FILE.png or "
            "FILE.pdf.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Compare how well a layout and other assessors predict held-out outcomes of the same table.

    The others are the mean of the outcomes, logistic regression, boosted trees (with the extra
    `assessors`) and, with three agents or more, item response theory (2PL). They are given the
    layout's demands, which are screened too: is each one a demand, and none the double of another?

    Give the outcomes as for `layout fit`.
    """
    played, layout = given_outcomes(
        (name, variant), battery, outcomes, pass_marks, taken_as, table, agent or [], data,
        keep_drawn=keep_drawn,
    )  # fmt: skip
    try:
        with progress("predicting", wait=0.0) as tell:
            found = assess_table(layout, played.table, repeats=repeats, seed=seed, tick=tell)
    except ValueError as error:
        fail(str(error))
    if output is not None:
        _draw(found, output)
    if as_json:
        print_json({**found.to_dict(), "notes": [*played.notes, *found.notes]})
        return
    _print(found)
    say_what_was_left_out(played)
    for note in found.notes:
        typer.echo(f"note: {note}")


def _draw(found: Assessment, output: Path) -> None:
    from animalcat import plots

    try:
        plots.save(plots.assessors(found), output)
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{output}: cannot be written: {error.strerror}")
    wrote("Brier scores", output)


def _print(found: Assessment) -> None:
    rows = [
        {
            "assessor": score.name,
            "Brier score": f"{score.brier:.3f}",
            "calibration": f"{score.calibration:.3f}",
            "refinement": f"{score.refinement:.3f}",
            "behind the layout (90 %)": ""
            if score.behind is None
            else f"{score.behind.value:+.3f} ({score.behind.low:+.3f} to {score.behind.high:+.3f})",
        }
        for score in found.scores
    ]
    agents = len(found.scores[0].agents)
    title = (
        f"Held-out outcomes of {agents} agent{'s' * (agents != 1)} on {found.instances} instances "
        f"(20 %{f', {found.repeats} times' * (found.repeats > 1)}), means over agents"
    )
    print_rows(rows, list(rows[0]), as_json=False, title=title)
    if found.screening is None:
        return
    rows = [
        {
            "demand": demand.name,
            "verdict": demand.verdict,
            "correlation (90 %)": ""
            if demand.correlation is None
            else f"{demand.correlation.value:+.2f} ({demand.correlation.low:+.2f} to "
            f"{demand.correlation.high:+.2f})",
            "why": demand.reason,
        }
        for demand in found.screening.demands
    ]
    title = "The layout's demands, screened: outcomes must fall where a demand rises"
    print_rows(rows, list(rows[0]), as_json=False, title=title)
