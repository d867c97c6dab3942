"""`python -m benchmarks.reproduce tesic2025`: its contest's scores, or simulated entrants."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from statistics import mean
from typing import Any, Final

import typer
from scipy.stats import spearmanr

from animalcat.cli.shared.output import fail, print_rows
from animalcat.cli.shared.progress import Tell, progress
from animalcat.layouts.checking.screening import screen_demands
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import OutcomeTable, TableError
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.posterior_table import PosteriorRow, fitted_table
from benchmarks.reproduce.contest_table import ContestTable, blocks, read_contest
from benchmarks.reproduce.cooperation import KINDS, Kind, Recovery, population, recover
from benchmarks.reproduce.mixed import mixed_regression
from benchmarks.reproduce.printed import tesic2025
from benchmarks.reproduce.rankings import ratings
from benchmarks.reproduce.wider_contest import (
    Wider,
    compare_wider,
    rising,
    simulated_contest,
    with_inverted,
    with_substrates,
)

CONTEST_PARTS: Final = ("populations", "regression", "screening", "substrates", "inverted")
"""Parts; `populations` has Table 2 and the rankings."""
FITTED: Final = 3
"""How many submissions are fitted by the wider layouts."""

Report = dict[str, Any]


def report_contest(parts: Collection[str], table: Path | None, seed: int, entrants: int) -> Report:
    """Measure simulated entrants of the contest, or what a table has of the real ones.

    Args:
        parts: Some of `CONTEST_PARTS`.
        table: The contest's scores; None for simulated ones.
        seed: Seed of everything.
        entrants: How many entrants are in each simulated population.
    """
    layout = load_layout("melting-pot")
    report: Report = {
        "paper": "tesic2025",
        "seed": seed,
        "source": "simulated entrants" if table is None else str(table),
        "layout": {"name": layout.name, "variant": layout.variant, "digest": layout.digest},
    }
    try:
        own = None if table is None else read_contest(table)
    except TableError as error:
        fail(str(error))
    if own is not None and (lost := sorted({*layout.feature_names} - {*own.demands})):
        fail(f"{table}: no column {', '.join(lost)}, which the layout's demands are")
    with progress("measuring entrants", wait=0.0) as tell:
        if "populations" in parts and own is None:
            report["populations"] = _populations(layout, seed, entrants, tell)
        elif "populations" in parts and own is not None:
            tell("fitting every submission", 0, 1)
            report["submissions"] = table_2_of(layout, blocks(own), seed)
        if "regression" in parts:
            given = own or simulated_contest(layout, seed).table
            found = mixed_regression(given.episode, given.score, given.submission)
            report["regression"] = {**asdict(found), "printed": dict(tesic2025().regression)}
        if "screening" in parts:
            given = own or simulated_contest(layout, seed, wider="inverted").table
            report["screening"] = _screening(layout, given, blocks(given))
        for part in ("substrates", "inverted"):
            if part in parts:
                report[part] = _wider(layout, own, part, seed, tell)
    return report


def _populations(layout: Layout, seed: int, entrants: int, tell: Tell) -> Report:
    step = _stepper(tell, "measuring entrants", entrants * len(KINDS))
    report: Report = {}
    for kind in KINDS:
        people = population(layout, kind, seed, entrants)
        found = recover(layout, people, seed, done=step)
        report[kind] = {
            **_as_json(found, entrants),
            "rankings": _rankings(people.table, found.table, layout),
        }
    return report


def table_2_of(layout: Layout, scored: OutcomeTable, seed: int) -> Report:
    """Table 2 and the rankings of the table's own submissions, by NUTS on all their blocks."""
    rows = fitted_table(layout, scored, seed)
    return {
        "table_2": [asdict(row) for row in rows],
        "rankings": _rankings(scored, rows, layout),
    }


def _as_json(found: Recovery, entrants: int) -> Report:
    return {
        "entrants": entrants,
        "converged": found.converged,
        "readable": found.readable,
        "r2": [_or_none(value) for value in found.r2.tolist()],
        "best_r2": [_or_none(value) for value in found.best_r2.tolist()],
        "nodes": [asdict(node) for node in found.nodes],
        "printed_width": printed_widths(),
        "table_2": [asdict(row) for row in found.table],
    }


def printed_widths() -> dict[str, float]:
    """Mean width of the printed 94 % intervals, by node."""
    widths: dict[str, list[float]] = {}
    for rows in tesic2025().table_2.values():
        for node, (_, low, high) in rows.items():
            widths.setdefault(node, []).append(high - low)
    return {node: mean(values) for node, values in widths.items()}


def _rankings(table: OutcomeTable, rows: Sequence[PosteriorRow], layout: Layout) -> Report:
    """Elo and ranks by the scores alone, beside abilities and base chance."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row.agent, {})[row.node] = row.mean
    abilities = [name for name in layout.latent_names if name.startswith("ability")]
    entrants = [
        {
            **asdict(rating),
            "ability": mean(found[rating.name][node] for node in abilities),
            "base_chance": found[rating.name]["base_chance"],
        }
        for rating in ratings(table)
    ]
    elo = [row["elo"] for row in entrants]
    return {
        "entrants": entrants,
        "with_elo": {
            name: float(spearmanr(elo, [row[name] for row in entrants]).statistic)
            for name in ("score", "rank", "ability", "base_chance")
        },
        "printed": _printed_ranks(abilities),
    }


def _printed_ranks(abilities: Sequence[str]) -> Report:
    """What the printed rows of Table 2 say: the order of base chances and mean abilities."""
    rows = tesic2025().table_2
    chance = [row["base_chance"][0] for row in rows.values()]
    able = [mean(row[node][0] for node in abilities) for row in rows.values()]
    return {"submissions": len(rows), "rank": float(spearmanr(chance, able).statistic)}


def _screening(layout: Layout, table: ContestTable, scored: OutcomeTable) -> Report:
    found = screen_demands(
        scored.instances, scored.outcomes, table.demands, layout.feature_names, repeats=200
    )
    return {
        "demands": [
            {
                "name": one.name,
                "verdict": one.verdict,
                "of": one.of,
                "correlation": one.correlation and one.correlation.value,
                "low": one.correlation and one.correlation.low,
                "high": one.correlation and one.correlation.high,
            }
            for one in found.demands
        ],
        "kept": list(found.kept),
        "inverted": rising(scored, table.demands),
    }


def _wider(layout: Layout, own: ContestTable | None, part: Wider, seed: int, tell: Tell) -> Report:
    """Submissions by the plain layout and by one with substrates or inverted demands."""
    truth = None
    if own is None:
        made = simulated_contest(layout, seed, wider=part)
        table = made.table
        truth = dict(zip(made.layout.latent_names, made.truth.T, strict=True))
    else:
        table = own
    scored = blocks(table)
    if part == "substrates":
        names = [name for name in dict.fromkeys(table.substrates) if name]
        if len(names) < 2:
            fail("the table has no column substrate, or one substrate only")
        names = sorted(names)
        wider = with_substrates(layout, names)
    else:
        names = rising(scored, table.demands)
        if not names:
            return {"added": [], "submissions": []}
        wider = with_inverted(layout, names)
    step = _stepper(tell, f"fitting with {part}", min(FITTED, len(scored.agents)))
    rows = compare_wider(layout, wider, scored, seed, count=FITTED, truth=truth, done=step)
    return {"added": names, "submissions": [asdict(row) for row in rows]}


def _stepper(tell: Tell, words: str, total: int) -> Callable[[], None]:
    tell(words, 0, total)
    done = count(1)
    return lambda: tell(words, next(done), total)


def print_contest(report: Mapping[str, Any]) -> None:
    """Print what was found, and Table 2 of the first entrant."""
    typer.echo(f"Scores: {report['source']}")
    for kind, part in report.get("populations", {}).items():
        _print_population(kind, part)
    if "submissions" in report:
        _print_table_2(report["submissions"], "as given")
    if "regression" in report:
        _print_regression(report["regression"])
    if "screening" in report:
        _print_screening(report["screening"])
    for part in ("substrates", "inverted"):
        if part in report:
            _print_wider(part, report[part])


def _print_population(kind: Kind, part: Mapping[str, Any]) -> None:
    title = f"{part['entrants']} simulated entrants ({kind}), 80 % of the scores, by NUTS"
    rows = [
        {**_rounded(row), "printed width": f"{part['printed_width'][row['node']]:.3f}"}
        for row in part["nodes"]
    ]
    print_rows(rows, list(rows[0]), as_json=False, title=title)
    pairs = zip(part["r2"], part["best_r2"], strict=True)
    pairs = [(own, best) for own, best in pairs if own is not None]
    print_rows(
        [
            {
                "converged": part["converged"],
                "R2 above 0.25": part["readable"],
                "mean R2": f"{mean(own for own, _ in pairs):.3f}",
                "less than who knows the entrant": f"{mean(b - a for a, b in pairs):.4f}",
            }
        ],
        ["converged", "R2 above 0.25", "mean R2", "less than who knows the entrant"],
        as_json=False,
        title="Scores held out",
    )
    _print_table_2(part, f"simulated: {kind}")


def _print_table_2(part: Mapping[str, Any], kind: str) -> None:
    """Table 2 of the first entrant, and the rankings of all."""
    first = part["table_2"][0]["agent"]
    table = [_rounded(row) for row in part["table_2"] if row["agent"] == first]
    title = f"Table 2 for {first} ({kind}); --json and -o have all entrants"
    print_rows(table, list(table[0]), as_json=False, title=title)
    rows = [
        {
            "entrant": row["name"],
            "mean score": f"{row['score']:.3f}",
            "Elo": f"{row['elo']:.0f}",
            "mean rank": f"{row['rank']:.1f}",
            "mean ability": f"{row['ability']:.2f}",
            "base chance": f"{row['base_chance']:.3f}",
        }
        for row in sorted(part["rankings"]["entrants"], key=lambda row: -row["elo"])
    ]
    title = f"Entrants ({kind}) by Elo, beside what the layout says"
    print_rows(rows, list(rows[0]), as_json=False, title=title)
    found = part["rankings"]["with_elo"]
    printed = part["rankings"]["printed"]
    typer.echo(
        f"Rank correlation with Elo: mean score {found['score']:.2f}, base chance "
        f"{found['base_chance']:.2f}, mean ability {found['ability']:.2f}. In the printed rows of "
        f"Table 2 ({printed['submissions']} submissions) base chance and mean ability have "
        f"{printed['rank']:.2f}"
    )


def _print_regression(part: Mapping[str, Any]) -> None:
    printed = part["printed"]
    rows = [
        {
            "parameter": name,
            "estimate": f"{row['estimate']:.3g} | {printed[key][0]:.3f}",
            "error": f"{row['error']:.2g} | {printed[key][1]:.3f}",
            "z": f"{row['z']:.2f} | {printed[key][2]:.2f}",
            "p": f"{row['p']:.3f} | {printed[key][3]:.3f}",
        }
        for name, key, row in (
            ("intercept", "intercept", part["intercept"]),
            ("episode", "episode", part["slope"]),
        )
    ]
    rows.append(
        {
            "parameter": "variance of intercepts",
            "estimate": f"{part['variance']:.3g} | {printed['variance'][0]:.3f}",
            "error": f"{part['variance_error']:.2g} | {printed['variance'][1]:.3f}",
            "z": "",
            "p": "",
        }
    )
    title = (
        f"Table 1: regression on the episode, {part['observations']} scores of {part['groups']} "
        f"submissions | printed, {printed['observations']} of {printed['submissions']}"
    )
    print_rows(rows, list(rows[0]), as_json=False, title=title)


def _print_screening(part: Mapping[str, Any]) -> None:
    rows = [
        {
            "demand": row["name"],
            "correlation": "" if row["correlation"] is None else f"{row['correlation']:+.2f}",
            "90 %": "" if row["low"] is None else f"{row['low']:+.2f} to {row['high']:+.2f}",
            "verdict": f"{row['verdict']} {row['of']}".strip(),
        }
        for row in part["demands"]
    ]
    print_rows(rows, list(rows[0]), as_json=False, title="Figure 2: screening of the demands")
    turned = ", ".join(part["inverted"]) or "none"
    typer.echo(f"Demands that screening keeps when they are turned round: {turned}")


def _print_wider(part: str, found: Mapping[str, Any]) -> None:
    if not found["submissions"]:
        typer.echo(f"{part}: nothing to add")
        return
    rows = [
        {
            "submission": row["name"],
            "R2": f"{row['plain_r2']:.3f} | {row['wider_r2']:.3f}",
            **(
                {}
                if row["plain_error"] is None
                else {"error of abilities": f"{row['plain_error']:.3f} | {row['wider_error']:.3f}"}
            ),
            **{
                name: f"{value:.2f}" + (f" (true {row['true'][name]:.2f})" if row["true"] else "")
                for name, value in row["found"].items()
            },
        }
        for row in found["submissions"]
    ]
    title = f"As printed | with {part} ({', '.join(found['added'])})"
    print_rows(rows, list(rows[0]), as_json=False, title=title)


def _or_none(value: float) -> float | None:
    """None for the R2 of scores that are all equal, which JSON has no number for."""
    return None if math.isnan(value) else value


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()}
