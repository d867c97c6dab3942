"""`python -m benchmarks.reproduce`: the tables of a paper, ours beside the printed ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import numpy as np
import typer

from animalcat.cli.layout.show import Json
from animalcat.cli.layout.table import battery_of_folder
from animalcat.cli.shared.arena_outcomes import on_battery
from animalcat.cli.shared.command_help import OUTPUT
from animalcat.cli.shared.outcome_table import judged, read_pass_marks, read_rewards
from animalcat.cli.shared.output import fail, print_json, print_rows, wrote
from animalcat.cli.shared.progress import Tell, progress
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.instances import Instances, OutcomeTable, TableError
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.simulation.synthetic import synthetic_agents
from benchmarks.reproduce.calibrated import print_calibration, report_calibration
from benchmarks.reproduce.ceiling import Ceiling, ceiling
from benchmarks.reproduce.contest import print_recovered, recovered
from benchmarks.reproduce.cooperation import ENTRANTS
from benchmarks.reproduce.olympics import (
    INSTANCES,
    REPEATS,
    agreement,
    figure_6a,
    figure_9,
    in_the_middle,
)
from benchmarks.reproduce.permanence import (
    REGENERATIONS,
    AgentScore,
    mean_skill,
    regenerations,
    table_1,
    table_8,
)
from benchmarks.reproduce.printed import burden2023
from benchmarks.reproduce.testbed_report import print_testbed, report_testbed

PAPERS: Final = ("burden2023", "tesic2025", "testbed", "calibration")
"""What can be worked out: two papers, the layout of the whole testbed, and calibration by earlier
agents."""
CALIBRATION: Final = "calibration"
CALIBRATED_CATEGORIES: Final = ("01", "07")
"""Categories of the testbed whose arenas calibration is tried on, beside the paper's 69."""
TESTBED: Final = "testbed"
"""A layout, and a group of options."""
CALIBRATION_VARIANT: Final = "metres-15"
"""Variant of aaio that is calibrated, the one of new sessions."""
PARTS: Final = ("figure-9", "figure-6a", "tables")
"""Parts of burden2023; tesic2025 has none."""
OLYMPICS: Final = ("figure-9", "scaled", "metres-15")
"""Variants of aaio for the figures: the first for Figure 9, all for Figure 6a."""
PERMANENCE: Final = ("refined", "by-task")
"""Variants of object-permanence for the tables."""
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
            help=f"Only this part: {', '.join(PARTS)} (which are Tables 1 and 8). Repeat it for "
            "several.",
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
            rich_help_panel="tesic2025",
        ),
    ] = ENTRANTS,
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

    The tables of burden2023 take long. The outcomes of tesic2025 are not at hand, so its layout
    measures simulated entrants of its contest.

    testbed is no paper: it holds out tasks and whole categories of the Animal-AI testbed, and
    compares the predictions of the layout testbed with those of rates and regressions on the same
    demands. Arenas are measured first, and what was measured is kept.

    calibration holds out a third of the entrants in turn, and compares what layouts that the others
    calibrated predict with what population models and boosting predict from the same outcomes.
    """
    if paper not in PAPERS:
        fail(f"no paper {paper!r}; there are {', '.join(PAPERS)}")
    if part and paper != BURDEN:
        fail(f"{paper} has no parts; leave --part out")
    if paper == "tesic2025":
        made, show = recovered(seed, entrants), print_recovered
    elif paper == BURDEN:
        parts = _parts_of(part or (), data)
        made = _burden(data, olympics, permanence, seed, parts, repeats, draws, processes)
        show = print_report
    elif data is None:
        fail(f"{paper} needs the entrants' outcomes: give --data, or set {DATA}")
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
    if as_json:
        print_json(made)
    else:
        show(made)


def _layouts(name: str, variants: Sequence[str]) -> list[Layout]:
    try:
        return [load_layout(name, variant) for variant in variants]
    except SpecificationError as error:
        fail(str(error))


def _parts_of(asked: Collection[str], data: Path | None) -> list[str]:
    """Parts of burden2023 that are wanted and can be had."""
    if unknown := sorted({*asked} - {*PARTS}):
        fail(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    wanted = [name for name in PARTS if not asked or name in asked]
    if data is not None or wanted == ["tables"]:
        return wanted
    if asked:
        fail(f"the figures need the entrants' outcomes: give --data, or set {DATA}")
    typer.echo(f"warning: no --data and no {DATA}: the tables only", err=True)
    return ["tables"]


def _burden(
    data: Path | None,
    olympics: Sequence[str] | None,
    permanence: Sequence[str] | None,
    seed: int,
    parts: Collection[str],
    repeats: int,
    draws: int,
    processes: int,
) -> Report:
    """The figures and tables of burden2023 that are wanted."""
    aaio = _layouts("aaio", olympics or OLYMPICS)
    op = _layouts("object-permanence", permanence or PERMANENCE)
    report: Report = {"paper": BURDEN, "seed": seed}
    table = read_entrants(aaio[0], data) if data is not None and [*parts] != ["tables"] else None
    with progress("working it out", wait=0.0) as tell:
        if table is not None and "figure-9" in parts:
            step = _stepper(tell, "Figure 9", len(table.agents))
            report["figure_9"] = _figure_9(aaio[0], table, seed, step)
        if table is not None and "figure-6a" in parts:
            step = _stepper(tell, "Figure 6a", len(table.agents) * len(aaio))
            report["figure_6a"] = [_figure_6a(one, table, seed, repeats, step) for one in aaio]
        if "tables" in parts:
            step = _stepper(tell, "Tables 1 and 8", len(synthetic_agents()) * draws * len(op))
            report["tables"] = [
                tables(
                    one,
                    regenerations(one, seed, draws, processes=processes, done=step),
                    ceiling(one.feature_names, seed),
                )
                for one in op
            ]
    return report


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


def _stepper(tell: Tell, name: str, total: int) -> Callable[[], None]:
    tell(name, 0, total)
    done = count(1)
    return lambda: tell(name, next(done), total)


def read_entrants(
    layout: Layout, data: Path, instances: Collection[str] = INSTANCES
) -> OutcomeTable:
    """The published outcomes of the entrants, as far as the layout covers the instances.

    Args:
        layout: The layout.
        data: Folder of the data.
        instances: Which instances; those of the paper by default.
    """
    rewards = read_rewards(data / "aaio" / "final_rewards.csv")
    rewards = rewards.loc[rewards.index.isin(list(instances))]
    marks = read_pass_marks(data / "aaio" / "pass_marks.csv")
    played = judged(rewards, {str(k): float(v) for k, v in marks.dropna().items()}, {})
    names = [*map(str, rewards.index)]
    try:
        with TemporaryDirectory() as store:
            battery = battery_of_folder(data / "animal-ai-competition", names, Path(store))
            table = on_battery(layout, battery, played, keep_drawn=True).outcomes.table
    except TableError as error:
        fail(str(error))
    columns = [name for name in layout.feature_names if name != "chance"]
    covered = Instances(
        tuple(columns), table.instances.select(columns), names=table.instances.names
    )
    return OutcomeTable(covered, table.agents, table.outcomes)


def _named(layout: Layout) -> Report:
    return {"name": layout.name, "variant": layout.variant, "digest": layout.digest}


def _figure_9(layout: Layout, table: OutcomeTable, seed: int, step: Callable[[], None]) -> Report:
    entrants = figure_9(layout, table, seed, done=step)
    return {
        "layout": _named(layout),
        "entrants": [
            {
                "name": entrant.name,
                "success": entrant.success,
                "converged": entrant.converged,
                "nodes": {
                    node.name: {
                        "mean": node.mean,
                        "sd": node.sd,
                        "printed_mean": entrant.printed and entrant.printed.mean[node.name],
                        "printed_sd": entrant.printed and entrant.printed.sd[node.name],
                    }
                    for node in entrant.nodes
                },
            }
            for entrant in entrants
        ],
        "agreement": [asdict(row) for row in agreement(entrants)],
    }


def _figure_6a(
    layout: Layout, table: OutcomeTable, seed: int, repeats: int, step: Callable[[], None]
) -> Report:
    scores = figure_6a(layout, table, seed, repeats=repeats, done=step)
    middle = in_the_middle(scores)
    return {
        "layout": _named(layout),
        "repeats": repeats,
        "entrants": [asdict(score) for score in scores],
        "middle": {
            "entrants": len(middle),
            "layout": float(np.mean([s.layout for s in middle])),
            "aggregate": float(np.mean([s.aggregate for s in middle])),
            "better": sum(s.layout < s.aggregate for s in middle),
        },
    }


def tables(layout: Layout, scores: list[list[AgentScore]], most: Ceiling) -> Report:
    """Tables 1 and 8 as JSON has them, from what `regenerations` and `ceiling` gave."""
    rows = table_8(scores)
    printed = burden2023()
    known = {agent.number for agent in synthetic_agents() if agent.known}
    return {
        "layout": _named(layout),
        "regenerations": len(scores),
        "table_8": [
            {
                **asdict(row),
                "printed_layout": printed.table_8[row.number].layout,
                "printed_aggregate": printed.table_8[row.number].aggregate,
            }
            for row in rows
        ],
        "skill": {
            "all": asdict(mean_skill(rows)),
            "included": asdict(mean_skill([row for row in rows if row.number in known])),
        },
        "ceiling": {**asdict(most), "skill": most.skill},
        "table_1": [
            {
                **asdict(row),
                "printed_overall": printed.table_1[row.capability].overall,
                "printed_included": printed.table_1[row.capability].included,
            }
            for row in table_1(scores)
        ],
    }


def print_report(report: Mapping[str, Any]) -> None:
    """Print tables for people."""
    if "figure_9" in report:
        _print_figure_9(report["figure_9"])
    if "figure_6a" in report:
        for part in report["figure_6a"]:
            _print_figure_6a(part)
    for part in report.get("tables", ()):
        _print_tables(part)


def _print_figure_9(part: Mapping[str, Any]) -> None:
    rows = [
        {
            "entrant": entrant["name"],
            "success": f"{entrant['success']:.2f}",
            **{
                name: f"{node['mean']:.2f} ± {node['sd']:.2f}{_beside(node)}"
                for name, node in entrant["nodes"].items()
            },
            "converged": "yes" if entrant["converged"] else "NO",
        }
        for entrant in sorted(part["entrants"], key=lambda entrant: -entrant["success"])
    ]
    title = f"Figure 9: mean ± sd, ours by aaio ({part['layout']['variant']}) | printed"
    print_rows(rows, list(rows[0]), as_json=False, title=title)
    title = "Figure 9: rank correlation of the means, rms difference of means and of sds"
    print_rows(part["agreement"], ["node", "rank", "mean", "sd"], as_json=False, title=title)


def _beside(node: Mapping[str, Any]) -> str:
    if node["printed_mean"] is None:
        return ""
    return f" | {node['printed_mean']:.2f} ± {node['printed_sd']:.2f}"


def _print_figure_6a(part: Mapping[str, Any]) -> None:
    rows = sorted(part["entrants"], key=lambda row: row["success"])
    cells = [_rounded({"entrant": row.pop("name"), **row}) for row in map(dict, rows)]
    title = (
        f"Figure 6a: Brier score on 20 % held out, {part['repeats']} splits, "
        f"aaio ({part['layout']['variant']})"
    )
    print_rows(cells, list(cells[0]), as_json=False, title=title)
    middle = part["middle"]
    typer.echo(
        f"Success rate 0.2 to 0.7: layout {middle['layout']:.3f}, aggregate "
        f"{middle['aggregate']:.3f}; the layout is better for {middle['better']} of "
        f"{middle['entrants']} entrants"
    )


def _print_tables(part: Mapping[str, Any]) -> None:
    rows = part["table_8"]
    mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    columns = {
        "layout": "layout",
        "aggregate": "aggregate",
        "oracle": "knows the rule",
        "best": "best profile",
        "printed_layout": "printed: layout",
        "printed_aggregate": "printed: aggregate",
    }
    cells = [
        {"agent": name, **{title: f"{row[key]:.3f}" for key, title in columns.items()}}
        for name, row in [*((str(row["number"]), row) for row in rows), ("mean", mean)]
    ]
    title = (
        f"Table 8: Brier score on 20 % held out, {part['regenerations']} regenerations, "
        f"object-permanence ({part['layout']['variant']})"
    )
    print_rows(cells, list(cells[0]), as_json=False, title=title)
    for which, words in (("all", "all agents"), ("included", "agents within the layout")):
        found = part["skill"][which]
        typer.echo(
            f"Skill, {words}: {found['best']:.3f} of what the layout's best profile gains on the "
            f"aggregate, {found['oracle']:.3f} of what knowing the rules gains"
        )
    typer.echo(
        f"No layout on the features of this one can have more than {part['ceiling']['skill']:.3f}"
    )
    errors = [_rounded(row) for row in part["table_1"]]
    title = "Table 1: RMSE of the capabilities as shares of their ranges"
    print_rows(errors, list(errors[0]), as_json=False, title=title)


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()}
