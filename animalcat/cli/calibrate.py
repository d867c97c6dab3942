"""`animalcat battery calibrate`: let earlier agents teach a layout how hard arenas are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from animalcat.cli.shared.batteries import VariantOfBattery, find_battery
from animalcat.cli.shared.calibrations import CALIBRATIONS, NO_CALIBRATION
from animalcat.cli.shared.command_help import OUTPUT
from animalcat.cli.shared.common import common
from animalcat.cli.shared.outcome_options import AsOption, KeepDrawn, PassMarks, Seed
from animalcat.cli.shared.output import fail, print_json, say, wrote
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.remote import client_for, data_folder, place
from animalcat.text.counts import count_of

if TYPE_CHECKING:
    from animalcat.cli.shared.arena_outcomes import OnBattery
    from animalcat.cli.shared.earlier_outcomes import EarlierOutcomes, Repeats
    from animalcat.client import Client
    from animalcat.layouts.model.instances import OutcomeTable
    from animalcat.layouts.model.spec import Layout
    from animalcat.service.batteries.battery import Battery

OUTCOMES: Final = "Outcomes"
"""A group of options."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def calibrate(
    battery: Annotated[
        str,
        typer.Argument(
            metavar="BATTERY",
            help="The arenas that were played: the name of a battery, or a path to arena files.",
        ),
    ],
    layout: Annotated[
        str,
        typer.Option(
            metavar="NAME_OR_FILE",
            help="The measurement layout: a name from `layout show`, or a YAML file.",
            show_default="the one that the battery names, else aaio",
        ),
    ] = "",
    variant: VariantOfBattery = "",
    outcomes: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Outcomes of the agents: final rewards with a column `instance` and one column "
            "for each agent, or a table in the form of `profile export --format csv`.",
            rich_help_panel=OUTCOMES,
        ),
    ] = None,
    sessions: Annotated[
        list[str] | None,
        typer.Option(
            "--sessions",
            "--session",
            metavar="SESSION",
            help="A session whose outcomes count. Repeat it for several.",
            rich_help_panel=OUTCOMES,
        ),
    ] = None,
    pass_marks: PassMarks = None,
    taken_as: AsOption = None,
    keep_drawn: KeepDrawn = False,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="With --outcomes: take this agent's outcomes alone. Repeat it for several.",
            show_default="all agents of the table",
            rich_help_panel=OUTCOMES,
        ),
    ] = None,
    keep_unpassable: Annotated[
        bool,
        typer.Option(
            "--keep-unpassable",
            help="Learn from arenas that no play can pass too; without it they are set aside.",
            rich_help_panel=OUTCOMES,
        ),
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AGENT",
            help="Leave this agent out, so that it can be measured with the calibration. Repeat it "
            "for several.",
            rich_help_panel=OUTCOMES,
        ),
    ] = None,
    determinism: Annotated[
        str,
        typer.Option(
            metavar="RANDOM,DETERMINISTIC",
            help="The shares of agents that act fully at random and fully deterministically, for "
            "sessions with --repeats. The rest lies between.",
            show_default="what the repeats among the outcomes say",
        ),
    ] = "",
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Name of the calibration.",
            show_default="made of battery and layout",
        ),
    ] = "",
    check: Annotated[
        bool,
        typer.Option(
            help="Predict agents that are held out in turn, and say how well. It takes longer than "
            "the fit."
        ),
    ] = True,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.yaml",
            help="Write the calibrated layout to this file instead of the data directory.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Calibrate a layout: earlier agents' outcomes teach it how hard each arena is.

    A population over agents is fitted: where their capabilities lie, and what each arena asks for
    beyond its demands. The result is a layout of its own, which sessions use by `session run
    --calibration NAME`. An agent whose outcomes it used is refused there; leave it out with
    --without. The server extra is needed on this machine too.
    """
    from animalcat.cli.shared.arena_outcomes import mark_battery, on_battery
    from animalcat.cli.shared.earlier_outcomes import of_file, of_sessions
    from animalcat.cli.shared.outcome_table import or_fail
    from animalcat.layouts.adaptive.signs import wrong_signs
    from animalcat.layouts.inference.evidence import evidence_of_agent
    from animalcat.layouts.model.codec import SpecificationError
    from animalcat.service.errors import ServiceError
    from animalcat.service.library.layouts import layout_on

    if (outcomes is None) == (not sessions):
        fail("where are the outcomes? Give --outcomes, or --sessions for each session")
    if outcomes is None:
        for option, given in (
            *(("--pass-marks", pass_marks), ("--as", taken_as), ("--agent", agent)),
            ("--keep-drawn", keep_drawn),
        ):
            if given:
                fail(f"{option} goes with --outcomes")
    declared = _declared_shares(determinism)
    if name:
        _check_name(name)
    with client_for() as client, progress("reading outcomes", wait=0.0) as tell:
        known = _battery(client, battery, place())
        try:
            chosen = layout_on(known, layout or "", variant)
        except (ServiceError, SpecificationError) as error:
            fail(str(error))
        called = name or f"{Path(battery).stem}-{chosen.name}"
        _check_name(called)

        def read() -> tuple[EarlierOutcomes, OnBattery]:
            nonlocal known
            if outcomes is None:
                earlier = of_sessions(client, sessions or [], known)
            else:
                known = mark_battery(known, pass_marks, outcomes, taken_as)
                earlier = of_file(outcomes, known, agent or [], taken_as)
            return earlier, on_battery(
                chosen,
                known,
                earlier.outcomes,
                without or [],
                keep_drawn=keep_drawn,
                keep_unpassable=keep_unpassable,
                known=earlier.as_drawn,
            )

        earlier, on_this_battery = or_fail(outcomes or Path(battery), read)
        table = on_this_battery.outcomes.table
        # Sessions refuse the agents of the table alone, so nobody else may teach anything.
        repeats = {a: own for a, own in earlier.repeats.items() if a in table.agents}
        who = count_of(len(table.agents), "agent")
        tell(f"fitting {who} on {len(table.instances)} arenas", 0, 0)
        prior = declared or _learnt(repeats)
        calibrated = _calibrate(chosen, table, called, seed, prior, check=check)
    path = output or data_folder() / CALIBRATIONS / f"{called}.yaml"
    _write(calibrated, path)
    wrong = wrong_signs(chosen, table)
    evidence = {agent: evidence_of_agent(chosen, table, agent) for agent in table.agents}
    _report(calibrated, path, on_this_battery, [*wrong, *earlier.notes], evidence)


def _check_name(name: str) -> None:
    from animalcat.layouts.library import LAYOUTS

    if not _NAME.fullmatch(name) or len(name) > 100:
        fail(
            f"--name {name!r}: give letters, digits, '.', '_' and '-', beginning with a letter "
            "or a digit"
        )
    if name in (*LAYOUTS, NO_CALIBRATION):
        what = (
            "stands for no calibration"
            if name == NO_CALIBRATION
            else "is the name of a shipped layout"
        )
        fail(f"--name {name!r} {what}; give the calibration another name")


def _battery(client: Client, battery: str, where: str) -> Battery:
    from animalcat.lab.received import receive_battery

    return receive_battery(client, find_battery(client, battery, where=where))


def _declared_shares(text: str) -> tuple[float, float] | None:
    """The shares of --determinism; None if it was not given."""
    if not text:
        return None
    from animalcat.layouts.adaptive.retest import DeterminismPrior

    try:
        random, fixed = map(float, text.split(","))
        DeterminismPrior(random, fixed)
    except ValueError as error:
        fail(f"--determinism {text}: give two shares, as in 0.5,0.5 ({error})")
    return random, fixed


def _learnt(repeats: Mapping[str, Repeats]) -> tuple[float, float] | None:
    """The shares that the repeats of earlier agents say; None without any."""
    if not repeats:
        return None
    from animalcat.layouts.adaptive.retest import learnt_prior

    prior = learnt_prior(repeats.values())
    return round(prior.random, 4), round(prior.deterministic, 4)


def _calibrate(
    layout: Layout,
    table: OutcomeTable,
    name: str,
    seed: int,
    determinism: tuple[float, float] | None,
    *,
    check: bool,
) -> Layout:
    from importlib.metadata import version

    from animalcat.layouts.calibrating.assessment import judge
    from animalcat.layouts.calibrating.calibrate import calibrate as calibrated

    packages = ("animalcat", "numpy")
    try:
        return calibrated(
            layout,
            table,
            name,
            seed,
            versions=[(package, version(package)) for package in packages],
            determinism=determinism,
            held_out=judge(layout, table, seed) if check else None,
        )
    except ValueError as error:
        fail(str(error))


def _write(layout: Layout, path: Path) -> None:
    import yaml

    from animalcat.layouts.model.spec import to_dict
    from animalcat.machine.files import write_whole

    said = to_dict(layout)
    text = yaml.safe_dump(
        said, sort_keys=False, allow_unicode=True, width=1000, default_flow_style=None
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    except OSError as error:
        fail(f"{path}: cannot be written: {error.strerror}")


def _report(
    layout: Layout, path: Path, left: OnBattery, merged: Sequence[str], evidence: Mapping[str, str]
) -> None:
    from animalcat.cli.shared.arena_outcomes import UNKNOWN

    calibration = layout.calibration
    assert calibration is not None  # it was calibrated
    fit = dict(calibration.fit)
    row: dict[str, Any] = {
        "calibration": calibration.name,
        "layout": calibration.base[0],
        "variant": calibration.base[1],
        "agents": list(calibration.agents),
        "episodes": calibration.episodes,
        "instances": len(calibration.instances),
        "outcomes": calibration.outcomes,
        "determinism": calibration.determinism,
        "fit": fit,
        "without_row": left.unplayed,
        "not_in_battery": left.left.get(UNKNOWN, 0),
        "not_covered": {why: n for why, n in left.left.items() if why != UNKNOWN},
        "agents_without_outcomes": list(left.agents),
        "notes": list(left.outcomes.notes),
        "remarks": list(merged),
        "evidence": dict(evidence),
        "file": str(path),
    }
    if common().as_json:
        print_json(row)
        return
    for note in _notes(layout, left, merged):
        say(f"note: {note}", err=True)
    say(
        f"{calibration.base[0]} ({calibration.base[1]}) calibrated by {len(calibration.agents)} "
        f"agents, {calibration.episodes} outcomes on {len(calibration.instances)} arenas, "
        f"which differ by {fit['spread']:.1f} logits beyond their demands"
    )
    for number in sorted(int(k.split("_")[1]) for k in fit if k.endswith("_as_written")):
        ours, written = fit[f"brier_{number}"], fit[f"brier_{number}_as_written"]
        say(
            f"agents held out, after {number} of their episodes: Brier score {ours:.3f}, "
            f"{written:.3f} by the layout as written"
        )
    if calibration.determinism is not None:
        random, fixed = calibration.determinism
        say(
            f"{random:.0%} of agents act fully at random and {fixed:.0%} fully deterministically; "
            "sessions with --repeats begin with that"
        )
    wrote(f"calibration {calibration.name}", path)
    say(f"use it with: animalcat session run --calibration {calibration.name} ...")


def _notes(layout: Layout, left: OnBattery, merged: Sequence[str]) -> list[str]:
    notes: list[str] = []
    calibration = layout.calibration
    assert calibration is not None  # it was calibrated
    fit = dict(calibration.fit)
    if fit.get("held_out") == 0.0:
        notes.append(
            "no agent was held out and predicted, since the others alone are too few, or too much "
            "alike: how well the calibration predicts new agents was not checked"
        )
    elif (lost := len(calibration.agents) - fit.get("held_out", len(calibration.agents))) > 0.0:
        notes.append(
            f"{lost:.0f} agents were not held out and predicted, since the others alone are too "
            "few, or too much alike"
        )
    elif "held_out" in fit and not any(key.startswith("brier") for key in fit):
        notes.append("fewer than two agents have more than 15 outcomes, so none was predicted")
    notes += merged
    for why, number in left.left.items():
        notes.append(f"left out {count_of(number, 'instance')} with outcomes: {why}")
    notes += left.outcomes.notes
    if left.unplayed:
        notes.append(
            f"{left.unplayed} arenas of the battery have no row, since no agent played them: "
            "sessions predict them by their demands alone"
        )
    if left.agents:
        notes.append(f"no outcome that counts: {', '.join(left.agents)}")
    return notes
