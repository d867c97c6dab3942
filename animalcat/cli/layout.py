"""`animalcat layout`: list and show measurement layouts, and fit them to a table of outcomes."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from zlib import crc32

import numpy as np
import typer
from rich.progress import Progress

from animalcat.arena_configs.features import aaio_features
from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.outcome import success
from animalcat.arena_configs.placement import place
from animalcat.cli.output import FAILED, fail, print_json, print_rows, progress_console
from animalcat.layouts.codec import SpecificationError
from animalcat.layouts.fit import FitRequest, FitResult
from animalcat.layouts.fit import fit as fit_layout
from animalcat.layouts.library import LAYOUTS, load_layout, variants
from animalcat.layouts.profile import Profile
from animalcat.layouts.spec import Layout, to_dict

app = typer.Typer(help="List, show and fit measurement layouts.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="Name of a layout; see `layout list`.")]
Variant = Annotated[str, typer.Option(help="Variant of the layout; the default one if not given.")]


@app.command("list")
def list_layouts(as_json: Json = False) -> None:
    """List the layouts and their variants."""
    rows = [
        {
            "name": name,
            "variant": variant,
            "capabilities": [layout.latents[i].name for i in layout.capabilities],
            "features": list(layout.feature_names),
            "source": layout.source,
            "digest": layout.digest,
        }
        for name in LAYOUTS
        for variant in variants(name)
        for layout in [load_layout(name, variant)]
    ]
    if not as_json:
        rows = [{**row, "capabilities": ", ".join(row["capabilities"])} for row in rows]
    print_rows(rows, ["name", "variant", "capabilities", "source"], as_json=as_json)


@app.command()
def show(name: Name, variant: Variant = "", as_json: Json = False) -> None:
    """Show a layout: nodes, units, priors, linking functions, covered instances."""
    layout = _load(name, variant)
    if as_json:
        print_json({**to_dict(layout), "digest": layout.digest})
        return
    typer.echo(f"{layout.name} ({layout.variant}): {layout.source}\n{layout.digest}")
    features = [
        {
            "feature": f.name,
            "unit": f.unit,
            "range": f"{f.low:g} to {f.high:g}",
            "meaning": f.about,
        }
        for f in layout.features
    ]
    latents = [
        {"node": n.name, "kind": n.kind, "unit": n.unit, "prior": str(n.prior), "meaning": n.about}
        for n in layout.latents
    ]
    derived = [
        {"node": n.name, "unit": n.unit, "linking function": str(n.link)} for n in layout.ordered
    ]
    for title, rows in (
        ("What instances ask for", features),
        ("Cognitive profile", latents),
        ("What follows", derived),
    ):
        print_rows(rows, list(rows[0]), as_json=False, title=title)
    typer.echo(f"Outcome: success with probability {layout.outcome.probability}")
    covered = [*layout.covers.instances, *(f"family {name}" for name in layout.covers.families)]
    typer.echo(f"Covers: {', '.join(covered)}")


@app.command()
def fit(
    name: Name,
    battery: Annotated[Path, typer.Option(help="Folder of arena files, INSTANCE.yaml.")],
    outcomes: Annotated[
        Path, typer.Option(help="CSV of final rewards: a column `instance`, one for each agent.")
    ],
    pass_marks: Annotated[
        Path | None,
        typer.Option(help="CSV of `instance`, `pass_mark`; the arenas' own if not given."),
    ] = None,
    variant: Variant = "",
    agent: Annotated[list[str] | None, typer.Option(help="Only these agents.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the fits.")] = 0,
    as_json: Json = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write JSON here.")] = None,
) -> None:
    """Fit a layout to the final rewards of agents; exit code 1 when a fit has not converged."""
    layout = _load(name, variant)
    table = _read_table(outcomes)
    agents = _chosen(table, agent or [], outcomes)
    marks = _read_marks(pass_marks) if pass_marks else None
    instances = _instances(layout, battery, table.rows, marks)
    entries: list[dict[str, Any]] = []
    with Progress(console=progress_console(), transient=True) as progress:
        task = progress.add_task("compiling", total=len(agents))
        for who in agents:
            rewards = [table.rows[i.name][who] for i in instances]
            played = [(i, r) for i, r in zip(instances, rewards, strict=True) if r is not None]
            passed = [success(reward, instance.pass_mark) for instance, reward in played]
            features = np.array([i.features for i, _ in played])
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


@dataclass(frozen=True, slots=True)
class _Table:
    """Final rewards: by instance, then by agent; None where the cell is empty."""

    agents: list[str]
    rows: dict[str, dict[str, float | None]]


@dataclass(frozen=True, slots=True)
class _Instance:
    name: str
    features: tuple[float, ...]
    pass_mark: float


def _load(name: str, variant: str) -> Layout:
    try:
        return load_layout(name, variant)
    except SpecificationError as error:
        fail(str(error))


def _read_csv(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            columns, rows = list(reader.fieldnames or []), list(reader)
    except OSError as error:
        fail(f"{path}: {error.strerror or 'cannot be read'}")
    except (UnicodeDecodeError, csv.Error) as error:
        fail(f"{path}: no CSV text in UTF-8: {error}")
    if "instance" not in columns:
        fail(f"{path}: no column `instance`; columns: {', '.join(columns) or 'none'}")
    names = [row["instance"] for row in rows]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        fail(f"{path}: instance {twice[0]} has {names.count(twice[0])} rows; one is wanted")
    return columns, rows


def _number(row: Mapping[str, Any], column: str, path: Path) -> float | None:
    text = str(row.get(column) or "").strip()
    try:
        value = float(text) if text else None
    except ValueError:
        fail(f"{path}: instance {row['instance']}, column {column}: {text!r} is no number")
    if value is not None and not math.isfinite(value):
        fail(f"{path}: instance {row['instance']}, column {column}: {text} is not finite")
    return value


def _read_table(path: Path) -> _Table:
    columns, rows = _read_csv(path)
    agents = [column for column in columns if column != "instance"]
    if not agents:
        fail(f"{path}: no column besides `instance`; one column of final rewards an agent")
    return _Table(
        agents, {row["instance"]: {a: _number(row, a, path) for a in agents} for row in rows}
    )


def _read_marks(path: Path) -> dict[str, float | None]:
    columns, rows = _read_csv(path)
    if "pass_mark" not in columns:
        fail(f"{path}: no column `pass_mark`; columns: {', '.join(columns)}")
    return {row["instance"]: _number(row, "pass_mark", path) for row in rows}


def _chosen(table: _Table, wanted: Sequence[str], path: Path) -> list[str]:
    for name in wanted:
        if name not in table.agents:
            fail(f"{path}: no agent {name!r}; agents: {', '.join(table.agents)}")
    return list(wanted) or table.agents


def _instances(
    layout: Layout,
    battery: Path,
    names: Mapping[str, object],
    marks: Mapping[str, float | None] | None,
) -> list[_Instance]:
    """The instances that have outcomes, a file, and are covered by the layout."""
    if not battery.is_dir():
        fail(f"{battery}: no such folder")
    files = {p.stem: p for p in sorted(battery.iterdir()) if p.suffix in (".yaml", ".yml")}
    covered = [name for name in names if name in layout.covers]
    found = [name for name in covered if name in files]
    if not found:
        globs = ", ".join((*layout.covers.instances, *layout.covers.families))
        fail(f"{battery}: no arena file of an instance that {layout.name} covers ({globs})")
    if missing := len(covered) - len(found):
        typer.echo(f"warning: {missing} covered instances have no file in {battery}", err=True)
    made: list[_Instance] = []
    for name in found:
        mark = marks.get(name) if marks is not None else None
        if marks is not None and mark is None:
            fail(f"instance {name} has no pass mark")
        made.append(_measured(layout, name, files[name], mark))
    return made


def _measured(layout: Layout, name: str, path: Path, mark: float | None) -> _Instance:
    """Meta-features of an arena file; what it leaves to chance is drawn by its name."""
    try:
        arena = load_config(path).config.first
        features = aaio_features(place(arena, np.random.default_rng(crc32(name.encode()))))
    except ArenaError as error:
        fail(str(error) if str(path) in str(error) else f"{path}: {error}")
    if lacking := [f for f in layout.feature_names if f not in features]:
        fail(f"{path}: the layout needs {', '.join(lacking)}; known: {', '.join(features)}")
    row = tuple(features[f] for f in layout.feature_names)
    try:
        layout.check_features([row])
    except ValueError as error:
        fail(f"{path}: {error}")
    return _Instance(name, row, arena.pass_mark if mark is None else mark)


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
