"""`animalcat layout compare`: agents, checkpoints of an agent, layouts of one agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from animalcat.cli.layout.outcomes import (
    Agents,
    Table,
    fit_layouts,
    read_meant,
    say_what_was_left_out,
    warn_of_bad_fits,
)
from animalcat.cli.layout.show import Json
from animalcat.cli.shared.agent_comparison import print_comparison
from animalcat.cli.shared.command_help import OUTPUT
from animalcat.cli.shared.outcome_options import Seed
from animalcat.cli.shared.output import FAILED, fail, print_json, print_rows, wrote
from animalcat.cli.shared.profile_files import read_profiles
from animalcat.cli.shared.remote import Data
from animalcat.layouts.checking.compare import Posterior, plot_trajectory, trajectory
from animalcat.layouts.checking.loo import compare_layouts, loo
from animalcat.layouts.checking.side_by_side import compare_agents
from animalcat.layouts.checking.walking import Start, walked
from animalcat.layouts.explaining.wording import Scale
from animalcat.layouts.fitting.estimates import profile_scales, scales_of
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.reporting.profile import Profile
from animalcat.plots.given import numbered

Report = dict[str, Any]


def command(
    profiles: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PROFILE.json",
            help="Profiles that `profile export` or `layout fit -o` wrote, or all that "
            "`campaign show --json` prints.",
        ),
    ] = None,
    table: Table = None,
    layout: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAYOUT[:VARIANT]",
            help="With --table: fit this layout, a name or a YAML file. Repeat it for several.",
        ),
    ] = None,
    agent: Agents = None,
    steps: Annotated[
        str,
        typer.Option(
            metavar="STEP,STEP,...",
            help="The agents are checkpoints of one agent, taken at these steps of its training, "
            "for example 0,1000,5000.",
        ),
    ] = "",
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="Compare profiles of different backends and observations all the same.",
        ),
    ] = False,
    seed: Seed = 0,
    data: Data = None,
    as_json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="With --steps: draw how capabilities change, as FILE.svg, FILE.png or FILE.pdf.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Compare agents with each other, or layouts by how well they describe the same outcomes.

    Give profiles, or a table of outcomes that is fitted here (--table, --layout and --agent). The
    agents are ranked, and each is compared with the first. What was different when they were
    measured is said, as by `profile compare`. With several layouts, these are compared
    for each agent by leave-one-out (PSIS-LOO), and the agents by the first layout.
    """
    bad, given = False, None
    if table is not None:
        if profiles:
            fail("give profiles or --table, not both")
        if not layout:
            fail("--table needs --layout: a name of `layout list`, or a file")
        named = [_name_and_variant(name) for name in layout]
        given, chosen = read_meant(table, agent or [], named, data)
        outcomes = given.table
        fits = fit_layouts(chosen, outcomes, seed)
        bad = warn_of_bad_fits(fits)
        posteriors = [Posterior.of_fit(name, fitted) for name, fitted in fits[0].items()]
        starts, scales = Start.of_layout(chosen[0]), scales_of(chosen[0])
        nodes = {name: Profile.of_fit(fitted).nodes_dict() for name, fitted in fits[0].items()}
        notes = list(given.notes)
        report: Report = {
            "layouts": _layouts(fits, outcomes) if len(fits) > 1 else [],
            "coverage": {who: given.coverage(who) for who in outcomes.agents},
        }
    else:
        read = [profile for path in profiles or () for profile in read_profiles(path)]
        if not read:
            fail("nothing to compare: give profiles, or --table with --layout and --agent")
        profiled = dict(
            zip(numbered([name for name, _ in read]), [e for _, e in read], strict=True)
        )
        notes = _differences(profiled, mixed=mixed)
        posteriors, starts, scales = _taken(profiled, walks=bool(steps))
        nodes = {name: profile["nodes"] for name, profile in profiled.items()}
        report = {"layouts": []}
    try:
        report |= compare_agents(posteriors, seed, pairs="first", scales=scales, nodes=nodes)
        paths = trajectory(posteriors, _numbers(steps)) if steps else []
        walks = walked(posteriors, _numbers(steps), starts) if steps else []
    except ValueError as error:
        fail(str(error))
    report["notes"] = notes
    report["trajectory"] = [asdict(path) for path in paths]
    report["walk"] = [asdict(path) for path in walks]
    if output is not None:
        if not paths:
            fail("-o draws checkpoints: say --steps")
        try:
            plot_trajectory(paths).savefig(output)
        except (OSError, ValueError) as error:
            fail(f"{output}: cannot be drawn: {error}")
        wrote("checkpoints", output)
    if as_json:
        print_json(report)
    else:
        for note in notes if table is None else ():
            typer.echo(note)
        _print(report, posteriors)
        if given is not None:
            say_what_was_left_out(given)
    if bad:
        raise typer.Exit(FAILED)


def _layouts(fits: Sequence[Mapping[str, FitResult]], table: OutcomeTable) -> list[Report]:
    rows: list[Report] = []
    for agent in table.agents:
        instances, outcomes = table.of(agent)
        if len(outcomes):
            results = [
                loo(by_agent[agent], instances.features(by_agent[agent].layout), outcomes)
                for by_agent in fits
            ]
            rows += [{"agent": agent, **asdict(row)} for row in compare_layouts(results)]
    return rows


def _name_and_variant(name: str) -> tuple[str, str]:
    """NAME:VARIANT or FILE.yaml:VARIANT; a colon may also belong to the file's name."""
    start, colon, variant = name.rpartition(":")
    return (start, variant) if colon and not Path(name).exists() else (name, "")


def _numbers(steps: str) -> list[float]:
    try:
        return [float(step) for step in steps.split(",")]
    except ValueError:
        fail(f"--steps {steps!r}: numbers with commas between are wanted")


def _differences(profiles: Mapping[str, dict[str, Any]], *, mixed: bool) -> list[str]:
    """What is to be known of profiles, and how they differ; ends the command where they may not."""
    from animalcat.service.reporting.comparison import MixedError, differences_of

    try:
        differences = differences_of(profiles, mixed=mixed)
    except MixedError as error:
        fail(f"{error} Say --mixed to compare them all the same.")
    labels = [
        f"{name}: {label}"
        for name, profile in profiles.items()
        for label in profile.get("labels", [])
    ]
    return [*labels, *(difference.sentence for difference in differences)]


def _taken(
    profiles: Mapping[str, dict[str, Any]], *, walks: bool
) -> tuple[list[Posterior], dict[str, Start], dict[str, Scale]]:
    """Posteriors of profiles; how the first one's nodes begin a walk, and how they are read."""
    first = next(iter(profiles.values()))
    try:
        posteriors = [Posterior.of_profile(name, profile) for name, profile in profiles.items()]
        return posteriors, Start.of_profile(first) if walks else {}, profile_scales(first)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        fail(f"no profile: {error}")


def _print(report: Report, posteriors: Sequence[Posterior]) -> None:
    print_comparison(report, title=f"Differences from {posteriors[0].name}")
    for title, paths in (
        ("Checkpoints, each on its own", report["trajectory"]),
        ("Checkpoints as a walk: each is told by the others too", report["walk"]),
    ):
        if not paths:
            continue
        rows = [
            {
                "node": path["node"],
                "step": f"{step:g}",
                "mean": f"{mean:.3g}",
                "90 %": f"{low:.3g} to {high:.3g}",
                "P(rise)": "-" if rise is None else f"{rise:.2f}",
            }
            for path in paths
            for step, mean, low, high, rise in zip(
                path["steps"], path["mean"], path["low"], path["high"], path["rise"], strict=True
            )
        ]
        print_rows(rows, list(rows[0]), as_json=False, title=title)
    if report["layouts"]:
        rows = [
            {
                "agent": row["agent"],
                "layout": row["name"],
                "elpd": f"{row['elpd']:.1f} ± {row['se']:.1f}",
                "behind": f"{row['behind']:.1f} ± {row['behind_se']:.1f}",
                "parameters": f"{row['effective']:.1f}",
                "k > 0.7": row["doubtful"],
            }
            for row in report["layouts"]
        ]
        title = "Layouts by leave-one-out (PSIS), nats; behind by less than 4 or 2 errors is little"
        print_rows(rows, list(rows[0]), as_json=False, title=title)
