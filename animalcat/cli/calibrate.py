"""`animalcat battery calibrate`: let earlier agents teach a layout how hard arenas are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from animalcat.cli.shared.calibrations import CALIBRATIONS
from animalcat.cli.shared.command_help import OUTPUT
from animalcat.cli.shared.output import FAILED, fail, print_json, wrote
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.remote import AsJson, Data, Server, client_for, data_folder

if TYPE_CHECKING:
    import pandas as pd

    from animalcat.client import Client
    from animalcat.layouts.model.instances import OutcomeTable
    from animalcat.layouts.model.spec import Layout
    from animalcat.service.batteries.battery import Battery

OUTCOMES: Final = "Outcomes"
"""A group of options."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Outcomes = dict[str, dict[str, float]]
"""Successes (1) and failures (0) by agent and instance."""
Repeats = dict[str, list[tuple[bool, float]]]
"""By agent, each repeat: whether it came out as before, and how probable its outcome was."""


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
            help="The measurement layout: a name from `layout list`, or a YAML file.",
        ),
    ] = "aaio",
    variant: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="A variant of the layout.", show_default="that of new sessions"
        ),
    ] = "",
    outcomes: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Outcomes of the agents: final rewards with a column `instance` and one column "
            "for each agent, or a table in the form of `outcomes export`.",
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
    pass_marks: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE.csv",
            help="With final rewards: the reward above which an arena is passed, in columns "
            "`instance` and `pass_mark`.",
            show_default="what the arena files say",
            rich_help_panel=OUTCOMES,
        ),
    ] = None,
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
    draws: Annotated[
        int, typer.Option(metavar="NUMBER", min=100, help="Draws of each of the four chains.")
    ] = 2000,
    check: Annotated[
        bool,
        typer.Option(
            help="Predict agents that are held out in turn, and say how well. It takes as long as "
            "the fit again."
        ),
    ] = True,
    seed: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", min=0, help="The seed of everything that is left to chance."
        ),
    ] = 0,
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
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Let the outcomes of earlier agents teach a layout how hard each arena is.

    A population over agents is fitted (by NUTS): where their capabilities lie, how sharp the limits
    are, and what each arena asks for beyond its demands. The result is a layout of its own, which
    sessions use by `session run --calibration NAME`. An agent that it was calibrated by is refused
    there; leave it out with --without.

    The exit code is 1 when the fit has not converged; nothing is written then. The server extra is
    needed on this machine too.
    """
    from animalcat.cli.layout.show import load

    if (outcomes is None) == (not sessions):
        fail("where are the outcomes? Give --outcomes, or --sessions for each session")
    if pass_marks is not None and outcomes is None:
        fail("--pass-marks goes with --outcomes")
    chosen = load(layout, variant)
    declared = _declared(determinism)
    called = name or f"{Path(battery).stem}-{chosen.name}"
    _check_name(called)
    with client_for(server, data) as client, progress("reading outcomes", wait=0.0) as tell:
        known = _battery(client, battery, seed)
        repeats: Repeats = {}
        merged: list[str] = []
        if sessions:
            played = _of_sessions(client, sessions, known, repeats, merged)
        else:
            assert outcomes is not None  # one of both is there
            played = _of_file(outcomes, known, pass_marks, repeats, merged)
        table, notes = _table(chosen, known, played, without or [], merged)
        # Sessions refuse the agents of the table alone, so nobody else may teach anything.
        repeats = {agent: repeats[agent] for agent in table.agents if agent in repeats}
        who = f"{len(table.agents)} agent{'s' * (len(table.agents) != 1)}"
        tell(f"fitting {who} on {len(table.instances)} arenas", 0, 0)
        prior = declared or _learnt(repeats)
        made = _calibrated(chosen, table, called, seed, draws, prior, check=check)
    path = output or data_folder(data) / CALIBRATIONS / f"{called}.yaml"
    _write(made, path)
    _report(made, path, notes, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Left:
    """What was left out of the outcomes.

    Attributes:
        unknown: Instances with outcomes that the battery does not have.
        uncovered: Reasons why the layout does not cover instances with outcomes, with counts.
        unplayed: Instances of the battery that nobody played, and that have no row.
        agents: Agents without any outcome that counts.
        merged: What was left out or merged as no new evidence, in sentences.
    """

    unknown: int
    uncovered: Mapping[str, int]
    unplayed: int
    agents: tuple[str, ...]
    merged: tuple[str, ...]


def _check_name(name: str) -> None:
    from animalcat.layouts.library import LAYOUTS

    if not _NAME.fullmatch(name) or len(name) > 100:
        fail(f"--name {name!r}: give letters, digits, '.', '_' and '-', beginning with one of both")
    if name in LAYOUTS:
        fail(f"--name {name!r} is the name of a shipped layout; give the calibration another name")


def _battery(client: Client, battery: str, seed: int) -> Battery:
    from animalcat.cli.battery_report import received
    from animalcat.cli.session.options import find_battery

    return received(client, find_battery(client, battery, seed))


def _declared(text: str) -> tuple[float, float] | None:
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


def _learnt(repeats: Repeats) -> tuple[float, float] | None:
    """The shares that the repeats of earlier agents say; None without any."""
    if not repeats:
        return None
    from animalcat.layouts.adaptive.retest import learnt_prior

    prior = learnt_prior(repeats.values())
    return round(prior.random, 4), round(prior.deterministic, 4)


def _of_sessions(
    client: Client,
    sessions: Sequence[str],
    battery: Battery,
    repeats: Repeats,
    merged: list[str],
) -> Outcomes:
    """Outcomes of sessions by agent; of repeats of an instance the first."""
    import pandas as pd

    played: Outcomes = {}
    frames: list[pd.DataFrame] = []
    for session in sessions:
        spec = client.get_session(session).spec
        if spec.battery_digest != battery.digest:
            fail(
                f"session {session} played battery {spec.battery} with another content (digest "
                f"{spec.battery_digest[:12]} instead of {battery.digest[:12]}); its arenas may be "
                "others of the same names. Give the battery that it played"
            )
        frames.append(client.outcomes(session))
    merged += _add(played, pd.concat(frames, ignore_index=True), "the sessions", repeats)
    return played


def _of_file(
    path: Path,
    battery: Battery,
    pass_marks: Path | None,
    repeats: Repeats,
    merged: list[str],
) -> Outcomes:
    """Outcomes of a table of either form."""
    import numpy as np

    from animalcat.arena_configs.outcome import success
    from animalcat.cli.shared.outcome_table import read_pass_marks, read_rewards
    from animalcat.outcomes import OutcomesError, read_outcomes

    try:
        header = path.open(encoding="utf-8-sig").readline().strip().split(",")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text in UTF-8"
        if path.suffix != ".parquet":
            fail(f"{path}: {reason}")
        header = ["outcome", "agent"]
    played: Outcomes = {}
    if path.suffix == ".parquet" or {"outcome", "agent"} <= set(header):
        if pass_marks is not None:
            fail(f"--pass-marks goes with final rewards; {path} says what was passed")
        try:
            merged += _add(played, read_outcomes(path), str(path), repeats)
        except (OutcomesError, OSError) as error:
            fail(f"{path}: {error}")
        return played
    rewards = read_rewards(path)
    marks = {one.name: one.pass_mark for one in battery.instances}
    if pass_marks is not None:
        given = read_pass_marks(pass_marks)
        marks = {str(k): float(v) for k, v in given.items() if not np.isnan(v)}
        if lost := [str(i) for i in rewards.index if str(i) in battery.index and i not in marks]:
            fail(f"{pass_marks}: {lost[0]} has no pass mark")
    for agent in rewards.columns:
        values = rewards[agent]
        played[str(agent)] = {
            str(i): float(success(float(r), marks.get(str(i), 0.0)))
            for i, r in values.items()
            if not np.isnan(r)
        }
    return played


def _add(played: Outcomes, table: pd.DataFrame, where: str, repeats: Repeats) -> list[str]:
    """Add outcomes, and what repeats within one table say of an agent's determinism.

    Of repeats the first counts, by session, episode and attempt.

    Returns:
        What was left out or merged, in sentences.
    """
    from animalcat.cli.shared.evidence import evidence_of
    from animalcat.layouts.adaptive.pooling import ContradictionError

    try:
        found = evidence_of(table)
    except ContradictionError as error:
        fail(f"{where}: {error}")
    nameless = table["agent"].isna() & table["outcome"].isin(["success", "failure"])
    if nameless.any():
        instance = table["instance"][nameless].iloc[0]
        fail(f"{where}: an outcome on {instance} names no agent")
    before: dict[tuple[str, str], bool] = {}
    for row in found.frame.to_dict("records"):
        agent, instance = str(row["agent"]), str(row["instance"])
        passed = row["outcome"] == "success"
        played.setdefault(agent, {}).setdefault(instance, float(passed))
        predicted = row.get("predicted")
        if (agent, instance) in before and isinstance(predicted, float) and predicted == predicted:
            chance = predicted if passed else 1.0 - predicted
            repeats.setdefault(agent, []).append((before[agent, instance] == passed, chance))
        before[agent, instance] = passed
    return [f"{where}: {note}" for note in found.notes]


def _table(
    layout: Layout,
    battery: Battery,
    played: Outcomes,
    without: Sequence[str],
    merged: Sequence[str],
) -> tuple[OutcomeTable, _Left]:
    """Outcomes on the instances that the layout covers, and what was left out."""
    import numpy as np

    from animalcat.layouts.model.instances import Instances, OutcomeTable
    from animalcat.service.errors import ServiceError
    from animalcat.service.measuring.coverage import some_coverage

    for agent in without:
        if agent not in played:
            fail(f"--without {agent}: no such agent; agents: {', '.join(played) or 'none'}")
    try:
        covered = some_coverage(layout, battery)
    except ServiceError as error:
        fail(error.message)
    with_outcomes = {name for own in played.values() for name in own}
    if not with_outcomes & set(battery.index):
        first = next(iter(with_outcomes), "none")
        fail(f"no instance with outcomes is in the battery (the first is {first!r})")
    names = [name for name in covered.features if name in with_outcomes]
    if not names:
        fail(f"layout {layout.name} covers none of the instances with outcomes: {covered.gaps}")
    kept = [a for a, own in played.items() if a not in set(without) and set(own) & set(names)]
    outcomes = np.array([[played[a].get(n, np.nan) for n in names] for a in kept])
    features = np.array([covered.features[name] for name in names], np.float64)
    why: dict[str, int] = {}
    for name in sorted(with_outcomes & set(covered.reasons)):
        why[covered.reasons[name]] = why.get(covered.reasons[name], 0) + 1
    left = _Left(
        len(with_outcomes - set(battery.index)),
        why,
        len(covered.features) - len(names),
        tuple(a for a in played if a not in kept and a not in without),
        tuple(merged),
    )
    instances = Instances(layout.feature_names, features, names=tuple(names))
    return OutcomeTable(instances, tuple(kept), outcomes.reshape(len(kept), len(names))), left


def _calibrated(
    layout: Layout,
    table: OutcomeTable,
    name: str,
    seed: int,
    draws: int,
    determinism: tuple[float, float] | None,
    *,
    check: bool,
) -> Layout:
    from importlib.metadata import version

    from animalcat.layouts.calibrating.assessment import judge
    from animalcat.layouts.calibrating.calibrate import calibrate as calibrated
    from animalcat.layouts.calibrating.population import (
        QUICK,
        Effort,
        NotConvergedError,
    )

    packages = ("animalcat", "numpy", "nutpie", "pymc")
    try:
        return calibrated(
            layout,
            table,
            name,
            seed,
            effort=Effort(draws=draws),
            versions=[(package, version(package)) for package in packages],
            determinism=determinism,
            held_out=judge(layout, table, seed, QUICK) if check else None,
        )
    except NotConvergedError as error:
        fail(str(error), FAILED)
    except ValueError as error:
        fail(str(error))


def _write(layout: Layout, path: Path) -> None:
    import yaml

    from animalcat.files import write_whole
    from animalcat.layouts.model.spec import to_dict

    text = yaml.safe_dump(to_dict(layout), sort_keys=False, allow_unicode=True, width=1000)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    except OSError as error:
        fail(f"{path}: cannot be written: {error.strerror}")


def _report(layout: Layout, path: Path, left: _Left, *, as_json: bool) -> None:
    made = layout.calibration
    assert made is not None  # it was calibrated
    fit = dict(made.fit)
    row: dict[str, Any] = {
        "calibration": made.name,
        "layout": made.base[0],
        "variant": made.base[1],
        "agents": list(made.agents),
        "episodes": made.episodes,
        "instances": len(made.instances),
        "outcomes": made.outcomes,
        "determinism": made.determinism,
        "fit": fit,
        "without_row": left.unplayed,
        "not_in_battery": left.unknown,
        "not_covered": dict(left.uncovered),
        "agents_without_outcomes": list(left.agents),
        "no_new_evidence": list(left.merged),
        "file": str(path),
    }
    if as_json:
        print_json(row)
        return
    for note in _notes(layout, left):
        typer.echo(f"note: {note}", err=True)
    typer.echo(
        f"{made.base[0]} ({made.base[1]}) calibrated by {len(made.agents)} agents, "
        f"{made.episodes} outcomes on {len(made.instances)} arenas; R-hat {fit['rhat']:.3f}, "
        f"ESS {fit['ess_bulk']:.0f}"
    )
    for told in sorted(int(k.split("_")[1]) for k in fit if k.endswith("_as_written")):
        ours, written = fit[f"brier_{told}"], fit[f"brier_{told}_as_written"]
        typer.echo(
            f"agents held out, after {told} of their episodes: Brier score {ours:.3f}, "
            f"{written:.3f} by the layout as written"
        )
    if made.determinism is not None:
        random, fixed = made.determinism
        typer.echo(
            f"{random:.0%} of agents act fully at random and {fixed:.0%} fully deterministically; "
            "sessions with --repeats begin with that"
        )
    wrote(f"calibration {made.name}", path)
    typer.echo(f"use it by: animalcat session run --calibration {made.name} ...")


def _notes(layout: Layout, left: _Left) -> list[str]:
    notes: list[str] = []
    made = layout.calibration
    assert made is not None  # it was calibrated
    fit = dict(made.fit)
    if fit.get("held_out") == 0.0:
        notes.append(
            "no agent was held out and predicted, since the others alone are too few, or too much "
            "alike: how well the calibration predicts new agents was not checked"
        )
    elif (lost := len(made.agents) - fit.get("held_out", len(made.agents))) > 0.0:
        notes.append(
            f"{lost:.0f} agents were not held out and predicted, since the others alone are too "
            "few, or too much alike"
        )
    elif "held_out" in fit and not any(key.startswith("brier") for key in fit):
        notes.append("fewer than two agents have more than 15 outcomes, so none was predicted")
    notes += left.merged
    if left.unknown:
        notes.append(f"left out {_instances(left.unknown)} that the battery does not have")
    for why, number in left.uncovered.items():
        notes.append(f"left out {_instances(number)} that the layout does not cover: {why}")
    if left.unplayed:
        notes.append(
            f"{left.unplayed} arenas of the battery have no row, since no agent played them: "
            "sessions predict them by their demands alone"
        )
    if left.agents:
        notes.append(f"no outcome that counts: {', '.join(left.agents)}")
    return notes


def _instances(number: int) -> str:
    return f"{number} instance{'s' * (number != 1)} with outcomes"
