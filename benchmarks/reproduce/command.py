"""`python -m benchmarks.reproduce`: the tables of a paper, ours beside the printed ones."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from animalcat.cli.layout.show import Json
from animalcat.cli.shared.command_help import OUTPUT
from animalcat.cli.shared.outcome_table import read_rewards
from animalcat.cli.shared.output import fail, print_json, wrote
from animalcat.cli.shared.progress import progress
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.spec import Layout
from benchmarks.reproduce.burden import OF_ENTRANTS, PARTS, Work, print_burden, report_burden
from benchmarks.reproduce.calibrated import print_calibration, report_calibration
from benchmarks.reproduce.contest import CONTEST_PARTS, print_contest, report_contest
from benchmarks.reproduce.cooperation import ENTRANTS
from benchmarks.reproduce.crosby import print_crosby, report_crosby
from benchmarks.reproduce.entrants import read_entrants
from benchmarks.reproduce.olympics import REPEATS
from benchmarks.reproduce.permanence import REGENERATIONS
from benchmarks.reproduce.pictures import draw
from benchmarks.reproduce.testbed_report import print_testbed, report_testbed

PAPERS: Final = ("burden2023", "crosby2020", "tesic2025", "testbed", "calibration")
"""What can be worked out: three papers, the layout of the whole testbed, and calibration by earlier
agents."""
TESIC: Final = "tesic2025"
CROSBY: Final = "crosby2020"
CALIBRATION: Final = "calibration"
CALIBRATED_CATEGORIES: Final = ("01", "07")
"""Categories of the testbed whose arenas calibration is tried on, beside the paper's 69."""
TESTBED: Final = "testbed"
"""A layout, and a group of options."""
CALIBRATION_VARIANT: Final = "metres-15"
"""Variant of aaio that is calibrated, the one of new sessions."""
OLYMPICS: Final = ("figure-9", "scaled", "metres-15", "as-printed")
"""Variants of aaio for the figures: the first for Figure 9, all for Figure 6a."""
PERMANENCE: Final = ("refined", "by-task", "as-printed")
"""Variants of object-permanence for the tables, and for agents that are drawn anew."""
BURDEN: Final = "burden2023"
"""A group of options."""
DATA: Final = "ANIMALCAT_DATA"
"""Environment variable that names the folder of published outcomes and arenas."""

Report = dict[str, Any]


def command(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"One of {', '.join(PAPERS)}.")],
    part: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help=f"Only this part: {', '.join(PARTS)} (drawn: agents that are drawn "
            "anew; tables: Tables 1 and 8, Figures 13 and 14); of tesic2025 "
            f"{', '.join(CONTEST_PARTS)}. Repeat it for several.",
            rich_help_panel=BURDEN,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar=DATA,
            metavar="FOLDER",
            help="The folder with aaio/ (outcomes of the entrants) and animal-ai-competition/ "
            "(arenas); for all but tesic2025.",
        ),
    ] = None,
    olympics: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VARIANT",
            help="A variant of the layout aaio. Repeat it for several: the first is used for "
            "Figure 9, and all for Figure 6a. For calibration, the first is used, and by default "
            f"{CALIBRATION_VARIANT}.",
            show_default=", ".join(OLYMPICS),
            rich_help_panel=BURDEN,
        ),
    ] = None,
    permanence: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VARIANT",
            help="A variant of the layout object-permanence, for the tables. Repeat it for "
            "several.",
            show_default=", ".join(PERMANENCE),
            rich_help_panel=BURDEN,
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            metavar="TIMES",
            min=1,
            help="How often outcomes are held out: for Figure 6a, or for testbed.",
        ),
    ] = REPEATS,
    draws: Annotated[
        int,
        typer.Option(
            "--regenerations",
            metavar="TIMES",
            min=1,
            help="How often the synthetic agents of the tables are drawn.",
            rich_help_panel=BURDEN,
        ),
    ] = REGENERATIONS,
    processes: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="How many processes work out the tables of burden2023, or testbed.",
            show_default="all cores",
        ),
    ] = os.cpu_count() or 1,
    entrants: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=3,
            help="How many entrants are in each simulated population.",
            rich_help_panel=TESIC,
        ),
    ] = ENTRANTS,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="The contest's scores, one row an episode: submission_id, scenario, episode_no, "
            "normalized_score, perhaps substrate, and a column of 0 and 1 for each demand.",
            show_default="simulated entrants",
            rich_help_panel=TESIC,
        ),
    ] = None,
    variant: Annotated[
        str,
        typer.Option(
            metavar="VARIANT",
            help="A variant of the layout testbed.",
            show_default="the first",
            rich_help_panel=TESTBED,
        ),
    ] = "",
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="For testbed and calibration: take few entrants, splits and particles, to see "
            "whether it works.",
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            help="The seed of everything that is left to chance.",
        ),
    ] = 0,
    pictures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Draw the figures of burden2023 or crosby2020 into this folder, as PNG.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.json",
            help="Write everything to this file, as JSON.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Work out a paper's figures and tables, and print them beside the printed ones.

    The tables of burden2023 take long: as-printed is fitted by NUTS, half a minute an agent.

    crosby2020 has the entrants on all 900 tests. The outcomes of tesic2025 are not at hand, so its
    layout measures simulated entrants of its contest.

    testbed is no paper: it holds out tasks and whole categories of the Animal-AI testbed, and
    compares the predictions of the layout testbed with those of rates and regressions on the same
    demands. Arenas are measured first, and what was measured is kept.

    calibration holds out a third of the entrants in turn, and compares what layouts that the others
    calibrated predict with what population models and boosting predict from the same outcomes.
    """
    if paper not in PAPERS:
        fail(f"no paper {paper!r}; there are {', '.join(PAPERS)}")
    if part and paper not in (BURDEN, TESIC):
        fail(f"{paper} has no parts; leave --part out")
    if table is not None and paper != TESIC:
        fail(f"--table is for {TESIC}")
    if paper == TESIC:
        parts = _known(part or (), CONTEST_PARTS)
        made, show = report_contest(parts, table, seed, entrants), print_contest
    elif paper == BURDEN:
        parts = _parts_of(part or (), data)
        aaio = _layouts("aaio", olympics or OLYMPICS)
        op = _layouts("object-permanence", permanence or PERMANENCE)
        work = Work(parts, aaio, op, data, seed, repeats, draws, processes)
        made, show = report_burden(work), print_burden
    elif data is None:
        fail(f"{paper} needs the entrants' outcomes: give --data, or set {DATA}")
    elif paper == CROSBY:
        made, show = report_crosby(data), print_crosby
    elif paper == TESTBED:
        layout = _layouts(TESTBED, [variant])[0]
        with progress("measuring arenas", wait=0.0) as tell:
            found = report_testbed(
                layout, data, seed, repeats=repeats, processes=processes, quick=quick, tell=tell
            )
        made, show = {"paper": paper, "seed": seed, **found}, print_testbed
    else:
        made, show = _calibration(data, olympics, seed, quick=quick), print_calibration
    _write(made, output)
    if pictures is not None:
        _draw(made, pictures)
    if as_json:
        print_json(made)
    else:
        show(made)


def _draw(made: Report, folder: Path) -> None:
    """Draw what was worked out, and say where."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in draw(made, folder):
            wrote("picture", path)
    except OSError as error:
        fail(f"{folder}: cannot be written: {error.strerror}")


def _layouts(name: str, variants: Sequence[str]) -> list[Layout]:
    try:
        return [load_layout(name, variant) for variant in variants]
    except SpecificationError as error:
        fail(str(error))


def _known(asked: Collection[str], parts: Sequence[str]) -> list[str]:
    """The parts that are asked for, in their order; all if none is."""
    if unknown := sorted({*asked} - {*parts}):
        fail(f"no part {unknown[0]!r}; there are {', '.join(parts)}")
    return [name for name in parts if not asked or name in asked]


def _parts_of(asked: Collection[str], data: Path | None) -> list[str]:
    """Parts of burden2023 that are wanted and can be had."""
    wanted = _known(asked, PARTS)
    if data is not None or not OF_ENTRANTS & {*wanted}:
        return wanted
    if asked:
        fail(f"the figures need the entrants' outcomes: give --data, or set {DATA}")
    typer.echo(f"warning: no --data and no {DATA}: no figures of the entrants", err=True)
    return [name for name in wanted if name not in OF_ENTRANTS]


def _calibration(data: Path, olympics: Sequence[str] | None, seed: int, *, quick: bool) -> Report:
    """Predictions of entrants held out, on the paper's 69 instances and on two whole categories."""
    layout = _layouts("aaio", (olympics or [CALIBRATION_VARIANT])[:1])[0]
    wide = replace(layout, excludes=())  # arenas with walls and more, told apart by easiness
    names = [str(name) for name in read_rewards(data / "aaio" / "final_rewards.csv").index]
    both = [name for name in names if name.startswith(CALIBRATED_CATEGORIES)]
    tables = {
        "the 69 instances": read_entrants(wide, data),
        "categories 1 and 7": read_entrants(wide, data, both),
    }
    with progress("calibrating", wait=0.0) as tell:
        found = report_calibration(wide, tables, seed, quick=quick, tell=tell)
    return {"paper": CALIBRATION, "seed": seed, **found}


def _write(report: Report, output: Path | None) -> None:
    if output is None:
        return
    try:
        output.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    except OSError as error:
        fail(f"{output}: cannot be written: {error.strerror}")
    wrote("report", output)
