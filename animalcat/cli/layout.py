"""`animalcat layout`: list and show measurement layouts, and fit them to a table of outcomes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.progress import Progress

from animalcat.arena_configs.outcome import success
from animalcat.cli import layout_check, layout_compare, layout_reproduce, layout_show
from animalcat.cli.layout_table import covered_instances
from animalcat.cli.outcome_table import read_pass_marks, read_rewards
from animalcat.cli.output import FAILED, fail, print_json, print_rows, progress_console
from animalcat.layouts.fit import FitRequest, FitResult
from animalcat.layouts.fit import fit as fit_layout
from animalcat.layouts.profile import Profile
from animalcat.layouts.spec import Layout

app = typer.Typer(help="Show, fit, check and compare measurement layouts.", no_args_is_help=True)
app.command("list")(layout_show.list_layouts)
app.command("show")(layout_show.show)
app.command("check")(layout_check.command)
app.command("compare")(layout_compare.command)
app.command("reproduce")(layout_reproduce.command)


@app.command()
def fit(
    name: layout_show.Name,
    battery: Annotated[Path, typer.Option(help="Folder of arena files, INSTANCE.yaml.")],
    outcomes: Annotated[
        Path, typer.Option(help="CSV of final rewards: a column `instance`, one for each agent.")
    ],
    pass_marks: Annotated[
        Path | None,
        typer.Option(help="CSV of `instance`, `pass_mark`; the arenas' own if not given."),
    ] = None,
    variant: layout_show.Variant = "",
    agent: Annotated[list[str] | None, typer.Option(help="Only these agents.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the fits.")] = 0,
    as_json: layout_show.Json = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write JSON here.")] = None,
) -> None:
    """Fit a layout to the final rewards of agents; exit code 1 when a fit has not converged."""
    layout = layout_show.load(name, variant)
    rewards = read_rewards(outcomes)
    agents = _chosen(rewards, agent or [], outcomes)
    table = covered_instances(layout, battery, rewards)
    if pass_marks is not None:
        table["pass_mark"] = read_pass_marks(pass_marks).reindex(table.index)
        if table["pass_mark"].isna().any():
            fail(f"{pass_marks}: {table.index[table['pass_mark'].isna()][0]} has no pass mark")
    entries: list[dict[str, Any]] = []
    with Progress(console=progress_console(), transient=True) as progress:
        task = progress.add_task("compiling", total=len(agents))
        for who in agents:
            played = table.assign(reward=rewards[who].reindex(table.index)).dropna(subset="reward")
            marks = zip(played["reward"], played["pass_mark"], strict=True)
            passed = [success(reward, mark) for reward, mark in marks]
            features = played[list(layout.feature_names)].to_numpy(float)
            result = fit_layout(FitRequest(layout, features, np.array(passed, dtype=float), seed))
            entries.append(_entry(who, result, passed))
            progress.update(task, advance=1, description=who)
    if output is not None:
        try:
            output.write_text(json.dumps(entries, indent=2, ensure_ascii=False) + "\n", "utf-8")
        except OSError as error:
            fail(f"{output}: cannot be written: {error.strerror}")
    if as_json:
        print_json(entries)
    elif output is None:
        _print_entries(layout, entries)
    bad = [entry for entry in entries if not entry["diagnostics"]["converged"]]
    for entry in bad:
        reasons = "; ".join(entry["diagnostics"]["reasons"])
        typer.echo(f"warning: {entry['agent']}: not converged: {reasons}", err=True)
    if bad:
        raise typer.Exit(FAILED)


def _chosen(table: pd.DataFrame, wanted: Sequence[str], path: Path) -> list[str]:
    for name in wanted:
        if name not in table.columns:
            fail(f"{path}: no agent {name!r}; agents: {', '.join(table.columns)}")
    return list(wanted or table.columns)


def _entry(agent: str, result: FitResult, passed: Sequence[bool]) -> dict[str, Any]:
    profile = Profile.of_fit(result).to_dict()
    kept = {key: profile[key] for key in ("layout", "hdi_share", "nodes", "diagnostics")}
    return {"agent": agent, "successes": sum(passed), "instances": len(passed), **kept}


def _print_entries(layout: Layout, entries: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        {
            "agent": entry["agent"],
            "passed": f"{entry['successes']}/{entry['instances']}",
            **{
                node.name: "{mean:.2f} ± {sd:.2f}".format(**entry["nodes"][node.name])
                for node in layout.latents
            },
            "converged": "yes" if entry["diagnostics"]["converged"] else "NO",
        }
        for entry in entries
    ]
    units = ", ".join(f"{n.name} in {n.unit}" for n in layout.latents if n.unit != "1")
    title = f"{layout.name} ({layout.variant}), mean ± sd; {units}"
    print_rows(rows, list(rows[0]), as_json=False, title=title)
