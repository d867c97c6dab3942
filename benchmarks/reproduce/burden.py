"""`python -m benchmarks.reproduce burden2023`: its tables and figures beside the printed ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import typer

from animalcat.cli.shared.output import print_rows
from animalcat.cli.shared.progress import Tell, progress
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.model.spec import Layout
from benchmarks.reproduce.bias import Sides, sides
from benchmarks.reproduce.ceiling import Ceiling, ceiling
from benchmarks.reproduce.counts import count_batteries
from benchmarks.reproduce.entrants import read_entrants
from benchmarks.reproduce.olympics import agreement, figure_6a, figure_9, in_the_middle
from benchmarks.reproduce.permanence import (
    AgentScore,
    Group,
    agents_of,
    mean_skill,
    needs_nuts,
    regenerations,
    table_1,
    table_8,
    with_distances,
)
from benchmarks.reproduce.printed import burden2023
from benchmarks.reproduce.sessions import beside, session_profiles

PARTS: Final = ("figure-9", "figure-6a", "sessions", "drawn", "tables", "counts")
"""Parts, in the order in which they are printed: agents that are drawn anew come before the paper's
thirty, on whom the form of `refined` was chosen."""
OF_ENTRANTS: Final = frozenset({"figure-9", "figure-6a", "sessions"})
"""Parts that take the entrants' outcomes."""
_GROUPS: Final[Mapping[str, Group]] = {"drawn": "drawn", "tables": "printed"}
_SESSIONS: Final = "metres-15"
"""The variant of aaio that new sessions have."""

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """What to work out of the paper.

    Attributes:
        parts: The parts, some of `PARTS`.
        aaio: Variants of the layout aaio: the first for Figure 9, all for Figure 6a.
        permanence: Variants of the layout object-permanence, for the tables.
        data: The folder with the entrants' outcomes and arenas; None if no part takes them.
        seed: Seed of everything that is left to chance.
        repeats: How often outcomes are held out for Figure 6a.
        regenerations: How often the synthetic agents are drawn.
        processes: How many processes work out the tables.
    """

    parts: Collection[str]
    aaio: Sequence[Layout]
    permanence: Sequence[Layout]
    data: Path | None
    seed: int
    repeats: int
    regenerations: int
    processes: int


def report_burden(work: Work) -> Report:
    """Work out the parts of the paper that are wanted."""
    report: Report = {"paper": "burden2023", "seed": work.seed}
    first = work.aaio[0]
    table = None
    if work.data is not None and OF_ENTRANTS & {*work.parts}:
        table = read_entrants(first, work.data)
    with progress("working it out", wait=0.0) as tell:
        if table is not None and "figure-9" in work.parts:
            step = _stepper(tell, "Figure 9", len(table.agents) * len(work.aaio))
            report["figure_9"] = _figure_9(first, table, work.seed, step)
            report["figure_9_by_variant"] = [
                _variant(layout, table, work.seed, step) for layout in work.aaio[1:]
            ]
            report["bias"] = [
                _sides(found) for layout in work.aaio for found in sides(layout, table, work.seed)
            ]
        if table is not None and "figure-6a" in work.parts:
            step = _stepper(tell, "Figure 6a", len(table.agents) * len(work.aaio))
            report["figure_6a"] = [
                _figure_6a(layout, table, work.seed, work.repeats, step) for layout in work.aaio
            ]
        if table is not None and "sessions" in work.parts:
            report["sessions"] = _sessions(table, work.seed, tell)
        for part, group in _GROUPS.items():
            if part in work.parts:
                report[part] = _groups(work, group, tell)
        if "counts" in work.parts:
            report["counts"] = [asdict(row) for row in count_batteries()]
    return report


def with_mended(layouts: Sequence[Layout]) -> list[Layout]:
    """The layouts, each with its mended form after it where nobody can walk its distances."""
    return [
        one
        for layout in layouts
        for one in ((layout, with_distances(layout)) if needs_nuts(layout) else (layout,))
    ]


def _groups(work: Work, group: Group, tell: Tell) -> list[Report]:
    """Tables of the synthetic agents by each layout."""
    layouts = with_mended(work.permanence)
    words = "agents drawn anew" if group == "drawn" else "Tables 1 and 8"
    agents = len(agents_of(group, work.seed))
    step = _stepper(tell, words, agents * work.regenerations * len(layouts))
    return [
        tables(
            layout,
            regenerations(
                layout,
                work.seed,
                work.regenerations,
                group=group,
                processes=work.processes,
                done=step,
            ),
            group,
            work.seed,
            ceiling(layout.feature_names, work.seed) if group == "printed" else None,
        )
        for layout in layouts
    ]


def _sessions(table: OutcomeTable, seed: int, tell: Tell) -> Report:
    layout, printed_by = load_layout("aaio", _SESSIONS), load_layout("aaio", "figure-9")
    step = _stepper(tell, "sessions", len(table.agents))
    profiles = session_profiles(layout, printed_by, table, seed, done=step)
    return {
        "layout": _named(layout),
        "entrants": [asdict(profile) for profile in profiles],
        "beside": asdict(beside(profiles)),
    }


def _variant(layout: Layout, table: OutcomeTable, seed: int, step: Callable[[], None]) -> Report:
    """How near another variant comes to Figure 9, by the live posterior."""
    entrants = figure_9(layout, table, seed, nuts=False, done=step)
    return {
        "layout": _named(layout),
        "agreement": [asdict(row) for row in agreement(entrants)],
    }


def _sides(found: Sides) -> Report:
    return asdict(found)


def _stepper(tell: Tell, name: str, total: int) -> Callable[[], None]:
    tell(name, 0, total)
    done = count(1)
    return lambda: tell(name, next(done), total)


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


def tables(
    layout: Layout,
    scores: list[list[AgentScore]],
    group: Group,
    seed: int,
    most: Ceiling | None = None,
) -> Report:
    """Tables 1 and 8 and Figures 13 and 14 as JSON has them, from what `regenerations` gave.

    Args:
        layout: The layout.
        scores: Scores of the agents.
        group: Which agents.
        seed: Seed of the agents that are drawn.
        most: What the layout's features allow, of the paper's agents.
    """
    rows = table_8(scores)
    agents = agents_of(group, seed)
    known = {agent.number for agent in agents if agent.known}
    about = {agent.number: agent.about for agent in agents}
    printed = burden2023()
    report: Report = {
        "layout": _named(layout),
        "agents": group,
        "regenerations": len(scores),
        "stuck": sum(row.stuck for regeneration in scores for row in regeneration),
        "table_8": [
            {
                **asdict(row),
                "about": about[row.number],
                **(_printed_scores(row.number) if group == "printed" else {}),
            }
            for row in rows
        ],
        "skill": {
            "all": asdict(mean_skill(rows)),
            "included": asdict(mean_skill([row for row in rows if row.number in known])),
        },
        "ceiling": None if most is None else {**asdict(most), "skill": most.skill},
        "table_1": [
            {
                **asdict(row),
                **(
                    {
                        "printed_overall": printed.table_1[row.capability].overall,
                        "printed_included": printed.table_1[row.capability].included,
                    }
                    if group == "printed"
                    else {}
                ),
            }
            for row in table_1(scores, agents)
        ],
        "profiles": [
            {"number": row.number, "success": row.success, "mean": row.mean, "sd": row.sd}
            for row in scores[0]
        ],
    }
    if group == "printed":
        apart = [row.layout - printed.table_8[row.number].layout for row in rows]
        report["from_printed"] = float(np.sqrt(np.mean(np.square(apart))))
    return report


def _printed_scores(number: int) -> Report:
    row = asdict(burden2023().table_8[number])
    return {f"printed_{name}": value for name, value in row.items()}


def print_burden(report: Mapping[str, Any]) -> None:
    """Print tables for people."""
    if "figure_9" in report:
        _print_figure_9(report["figure_9"])
        _print_variants(report["figure_9_by_variant"])
        _print_bias(report["bias"])
    for part in report.get("figure_6a", ()):
        _print_figure_6a(part)
    if "sessions" in report:
        _print_sessions(report["sessions"])
    for part in (*report.get("drawn", ()), *report.get("tables", ())):
        _print_tables(part)
    if "counts" in report:
        _print_counts(report["counts"])


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


def _print_variants(parts: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        {"variant": part["layout"]["variant"], **_rounded(row)}
        for part in parts
        for row in part["agreement"]
    ]
    if rows:
        title = (
            "Figure 9 by other variants, by the live posterior: rank correlation, rms differences"
        )
        print_rows(rows, list(rows[0]), as_json=False, title=title)


def _print_bias(rows: Sequence[Mapping[str, Any]]) -> None:
    cells = [
        {
            "variant": row["variant"],
            "entrant": row["entrant"],
            "left": "{} of {}".format(*row["left"]),
            "ahead": "{} of {}".format(*row["ahead"]),
            "right": "{} of {}".format(*row["right"]),
            "bias": f"{row['mean']:.2f} ± {row['sd']:.2f}",
            "printed": f"{row['printed']:.2f}",
            "chance of the larger": f"{row['larger']:.2f}",
        }
        for row in rows
    ]
    title = "Passed to the left, ahead and right, and rightLeftBias, of the two entrants compared"
    print_rows(cells, list(cells[0]), as_json=False, title=title)


def _print_sessions(part: Mapping[str, Any]) -> None:
    cells = [
        {
            "entrant": row["name"],
            "passed": f"{row['success']:.2f}",
            "episodes": row["episodes"],
            "navigation, m": f"{row['navigation']:.1f} | {row['printed_navigation']:.1f}",
            "visual": f"{row['visual']:.2f} | {row['printed_visual']:.2f}",
            "expected to pass": f"{row['expected']:.2f} | {row['printed_expected']:.2f}",
        }
        for row in sorted(part["entrants"], key=lambda row: -row["success"])
    ]
    variant = part["layout"]["variant"]
    title = f"One session of each entrant by aaio ({variant}) | by the printed means of Figure 9"
    print_rows(cells, list(cells[0]), as_json=False, title=title)
    found = part["beside"]
    typer.echo(
        f"Rank correlation {found['rank_navigation']:.2f} (navigation) and "
        f"{found['rank_visual']:.2f} (visual); navigation differs by rms {found['apart']:.2f}, "
        f"each in its own unit. Of the {found['poor']} entrants that pass less than 0.3, sessions "
        f"expect that share to within rms {found['ours']:.3f}, and the printed means to within "
        f"{found['printed']:.3f}"
    )


def _print_tables(part: Mapping[str, Any]) -> None:
    rows = part["table_8"]
    printed = part["agents"] == "printed"
    numbers = [name for name in rows[0] if name not in ("number", "about")]
    mean = {key: float(np.mean([row[key] for row in rows])) for key in numbers}
    who = "the paper's agents" if printed else "agents drawn anew"
    name = f"object-permanence ({part['layout']['variant']})"
    times = f"{part['regenerations']} regenerations"
    columns = {
        "layout": "layout",
        "aggregate": "aggregate",
        "oracle": "knows the rule",
        "best": "layout's best",
        **({"printed_layout": "printed", "printed_aggregate": "pr. aggregate"} if printed else {}),
    }
    numbered = [*((str(row["number"]), row) for row in rows), ("mean", mean)]
    cells = [
        {"agent": agent, **{title: f"{row[key]:.3f}" for key, title in columns.items()}}
        for agent, row in numbered
    ]
    title = f"Table 8 of {who}: Brier score on 20 % held out, {times}, {name}"
    print_rows(cells, list(cells[0]), as_json=False, title=title)
    parts = ("calibration", "refinement", "aggregate_calibration", "aggregate_refinement")
    cells = [
        {
            "agent": agent,
            **{
                key.replace("_", " "): f"{row[key]:.3f}"
                + (f" | {row[f'printed_{key}']:.3f}" if printed else "")
                for key in parts
            },
        }
        for agent, row in numbered
    ]
    title = f"Calibration and refinement (Murphy), {'ours | printed' if printed else who}, {name}"
    print_rows(cells, list(cells[0]), as_json=False, title=title)
    for which, words in (("all", "all agents"), ("included", "agents within the layout")):
        found = part["skill"][which]
        typer.echo(
            f"Skill, {words}: {found['best']:.3f} of what the layout's best gains on the "
            f"aggregate, {found['oracle']:.3f} of what knowing the rules gains"
        )
    if printed:
        typer.echo(f"Printed scores of the layout differ by rms {part['from_printed']:.3f}")
    if part["stuck"]:
        chains = 4 * part["regenerations"] * len(rows)
        typer.echo(
            f"{part['stuck']} of {chains} chains of NUTS ended where the posterior has no weight"
        )
    if part["ceiling"]:
        typer.echo(
            "No layout on the features of this one can have more than "
            f"{part['ceiling']['skill']:.3f}"
        )
    errors = [_rounded(row) for row in part["table_1"]]
    title = f"Table 1 of {who}: RMSE as shares of the paper's ranges, {name}"
    print_rows(errors, list(errors[0]), as_json=False, title=title)
    cells = [
        {
            "agent": row["number"],
            "success": f"{row['success']:.2f}",
            **{node: f"{mean:.2f} ± {row['sd'][node]:.2f}" for node, mean in row["mean"].items()},
        }
        for row in part["profiles"]
    ]
    title = f"Figures 13 and 14 of {who}: mean ± sd, {name}"
    print_rows(cells, list(cells[0]), as_json=False, title=title)


def _print_counts(rows: Sequence[Mapping[str, Any]]) -> None:
    cells = [
        {
            "agent": row["agent"],
            "passes": row["passes"],
            **{
                f"{name} controls": f"{row[f'rate_{name}']:.3f}, Brier {row[f'brier_{name}']:.3f}"
                for name in ("603", "1195")
            },
            "printed": f"{row['printed']:.3f}",
        }
        for row in rows
    ]
    title = "Aggregate's Brier score with 603 and with 1,195 chick controls | printed in Table 8"
    print_rows(cells, list(cells[0]), as_json=False, title=title)


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()}
