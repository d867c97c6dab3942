"""`animalcat session`: run, list, show, export, resume and end sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from animalcat.apart import AgentProcess, ApartError, Bounds, Permission
from animalcat.apart import follow as follow_agents
from animalcat.apart.output import MARK, WAITS
from animalcat.cli.session.live import COLUMNS, FIRST, LiveSession
from animalcat.cli.session.options import SessionPlan, bounds_of, takes_plan
from animalcat.cli.session.plan import allowance_words, spent_words, unreachable, why
from animalcat.cli.session.watching import watch
from animalcat.cli.shared.agent_options import (
    AgentEnv,
    AgentMay,
    AgentSees,
    check_apart,
    check_reference,
    failed_words,
)
from animalcat.cli.shared.command_help import SameAgent
from animalcat.cli.shared.common import common
from animalcat.cli.shared.option_table import observation_of
from animalcat.cli.shared.output import (
    FAILED,
    UNREACHABLE,
    fail,
    print_json,
    print_rows,
    print_table,
    remark,
    say,
    some,
    status,
)
from animalcat.cli.shared.remote import (
    WITHHELD,
    AllowBuild,
    AllowPlugin,
    Every,
    Limit,
    SessionArgument,
    client_for,
    data_folder,
    same_place,
    say_pages,
    session_row,
)
from animalcat.cli.shared.same_agent import check_session
from animalcat.cli.shared.table import Column
from animalcat.cli.shared.tables import coverage_words, print_profile
from animalcat.cli.shared.unplayable import unplayable
from animalcat.cli.shared.whose import Everybodys, OfOwner, owner_column, whose
from animalcat.client import Client
from animalcat.client.credentials import is_local
from animalcat.envs.agents.fingerprint import SHORT
from animalcat.errors import AnimalcatError
from animalcat.extending import plugins
from animalcat.machine.compiling import SIMULATOR, while_compiling
from animalcat.values import NOTHING, Session
from animalcat.values.options import SessionOptions
from animalcat.wire.words import NOT_CONFINED

app = typer.Typer(
    help="Measure an agent, and list, show, export, resume and cancel sessions.",
    no_args_is_help=True,
)


class RulingName(StrEnum):
    """What an episode counts as at which the agent's code failed."""

    repeat = "repeat"
    failure = "failure"
    fault = "fault"


@app.command()
@takes_plan
def run(plan: SessionPlan) -> None:
    """Measure an agent, and print its profile.

    The agent plays until enough is known about every capability, or until a budget is used up.
    With --elsewhere the session waits for an agent that connects by itself: by `animalcat agent
    run`, as a RemoteEnv, or as code for Animal-AI on the stand-in (ANIMALCAT_SESSION).
    """
    if plan.elsewhere:
        with plan.client() as client:
            session = plan.create(client)
        if common().as_json:
            print_json(session_row(session))
        else:
            say(session.id)
        return
    check_reference(plan.agent, observation_of(SessionOptions, plan.options))
    check_apart([plan.agent], plan.bounds, None if common().server else data_folder())
    with plan.client() as client:
        session = plan.create(client)
        say_pages(f"/sessions/{session.id}")
        played = run_agent(client, session, plan.agent, plan.bounds, new=True)
        _report(client, played)


PRIVILEGED_NOTE: Final = "; privileged: the agent was shown the arena's true state"
"""What is added to the title of a profile that does not tell what an agent can do by itself."""


@app.command()
def resume(
    session: SessionArgument,
    episodes: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            help="Play at most this many more episodes, even if the session was finished.",
        ),
    ] = 0,
    target_sd: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="From now on the target of a capability is a standard deviation of this share of "
            "its range: for a session that ended because every target was reached.",
            show_default="as it was",
        ),
    ] = None,
    ruling: Annotated[
        RulingName | None,
        typer.Option(
            "--as",
            help="What the episode counts as in which the agent's code failed. repeat: the same "
            "arena is played again, though the agent has seen it. failure: the episode counts as "
            "a failure. fault: it was not the agent's doing, such as a full disk, and the arena "
            "is played again.",
            show_default="none",
        ),
    ] = None,
    agent: Annotated[
        str,
        typer.Option(
            metavar="REFERENCE",
            help="The agent to run: builtin:NAME, plugin:NAME, or path/to/file.py:Class, with "
            "+LIMIT=STRENGTH.",
            show_default="the one of the session",
        ),
    ] = "",
    same_agent: SameAgent = False,
    agent_may: AgentMay = Permission.PLAY,
    agent_sees: AgentSees = None,
    agent_env: AgentEnv = None,
    allow_build: AllowBuild = None,
    allow_plugin: AllowPlugin = None,
) -> None:
    """Go on with a session where it stopped, or give a finished one more episodes.

    Nothing is played twice, and what was played counts. The profile is made again at the end.
    """
    builds = [build.absolute() for build in allow_build or ()]
    with client_for(builds=builds, plugins=allow_plugin or ()) as client:
        current = client.get_session(session)
        if ruling is not None:
            current = client.judge_failure(current, ruling.value)
        bounds = bounds_of(agent_may, agent_sees, agent_env, same_agent=same_agent)
        if episodes or target_sd is not None:
            _look_at_agent(client, current, agent, bounds)  # before anything is stored
            budget = current.spec.stop.max_episodes or 0  # answers say it
            # What a session of earlier rules left of its budget is not lost.
            played = current.episodes if current.over else budget
            more = max(budget, played + episodes) if episodes else 0
            current = client.extend_session(current, more, target_sd)
        if current.over and agent:
            check_session(current, agent, same_agent=same_agent)
        if not current.over:
            reference = _look_at_agent(client, current, agent, bounds)
            if not reference:
                _await(client, current)
                return
            if current.paused:
                current = client.resume_session(current)
            say_pages(f"/sessions/{current.id}")
            current = run_agent(client, current, reference, bounds)
        _report(client, current)


@app.command("list")
def list_sessions(
    every: Every = False,
    limit: Limit = None,
    everybodys: Everybodys = False,
    owner: OfOwner = "",
) -> None:
    """List your sessions, newest first."""
    columns = [
        "session",
        owner_column(3),
        Column("agent", 4),  # the session's id has most of it
        Column("fingerprint", 7),
        Column("battery", 3),
        Column("layout", 6),
        "state",
        Column("episodes", 1),
        Column("successes", 2),
        Column("reason", 5),
    ]
    withheld = False

    def rows(client: Client) -> Iterator[dict[str, Any]]:
        nonlocal withheld
        listed = whose(everybodys, owner)
        sessions = some(lambda most: client.sessions(whose=listed, limit=most), every, limit)
        for session in sessions:
            withheld |= session.withheld
            yield session_row(session)

    with client_for() as client:
        print_rows(rows(client), columns)
    if withheld:
        remark(WITHHELD)


@app.command()
def show(
    session: SessionArgument,
    last: Annotated[
        int,
        typer.Option(metavar="NUMBER", min=0, help="How many of the last choices to explain."),
    ] = 3,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Follow it until it is over. With --json every event is a line of JSON.",
        ),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check that everything it rests on is as it was stored."),
    ] = False,
) -> None:
    """Show how far a session is, and why it chose the last arenas.

    --follow shows a changing table on a terminal, otherwise a line now and then. Ctrl-C ends only
    the following. The exit code is 1 when the session does not finish, or some of its arenas
    could not be played.

    --verify checks its records and recordings, the files of its fits, its arenas with their
    demands, and its layout. Everything that was changed, is gone or cannot be read is named; the
    exit code is then 1. The digest that is printed stands for all of it: note it elsewhere.
    """
    if follow or verify:
        (watch if follow else _verify)(session)
        return
    with client_for() as client:
        current = client.get_session(session)
        about = _provenance(client, current)
        voided: dict[str, Any] = about.get("voids_by_demand") or {}
        covered: dict[str, Any] | None = about.get("coverage")
        failed: dict[str, Any] = about.get("agent_failures") or {}
        looked: dict[str, Any] = about.get("withdrawals") or {}
        if common().as_json:
            about = {"spent": asdict(current.spent), "voids_by_demand": voided.get("demands", [])}
            about |= {"agent_failures": failed, "withdrawals": looked, "coverage": covered}
            about |= _identity(current)
            print_json({**session_row(current), **about})
            return
        _show(current)
        _show_agent(current)
        if covered and (words := coverage_words(covered)):
            say(words)
        if current.spent != NOTHING:
            say(f"{'spent':13} {spent_words(current.spent)}")
        for sentence in filter(None, (d.get("words") for d in (failed, looked, voided))):
            say(sentence)
        units = {capability.name: capability.unit for capability in current.capabilities}
        chosen = [*client.iter_episodes(session, limit=last, newest_first=True)] if last else []
        for episode in reversed(chosen):
            say(why(episode, units))


def _provenance(client: Client, session: Session) -> Mapping[str, Any]:
    """What the profile says of a session as it stands; empty where it has none."""
    try:
        return client.profile(session)["provenance"]
    except AnimalcatError:  # it cannot be read, or another server has it
        return {}


@app.command()
def cancel(session: SessionArgument) -> None:
    """End a session before it is over.

    What it has found out is kept.
    """
    with client_for() as client:
        _show(client.cancel_session(session))


def _verify(session: str) -> None:
    """Print whether all that a session rests on is as it was stored; exit code 1 if not."""
    with client_for() as client:
        verification = client.verify_session(session)
    if common().as_json:
        print_json(asdict(verification))
    else:
        for problem in verification.problems:
            say(problem)
        for note in verification.notes:
            say(f"note: {note}")
        stands = "is not as it was stored" if verification.problems else "is as it was stored"
        digest = verification.head or "no digest"
        say(f"{session} {stands}: {verification.links} links, {digest}")
    if verification.problems:
        raise typer.Exit(1)


def run_agent(
    client: Client,
    session: Session,
    reference: str,
    bounds: Bounds = Bounds(),
    *,
    new: bool = False,
) -> Session:
    """Run an agent in a process for each slot until the session is over, and show progress.

    Args:
        client: Of the server that has the session.
        session: Waits for its agent.
        reference: What to run: builtin:NAME, plugin:NAME, or path/to/file.py:Class.
        bounds: Within what its processes play.
        new: Whether it was made for this: then it is taken back if its agent does not even start.

    Returns:
        The session after it.

    Raises:
        typer.Exit: All of them ended before the session did; said so.
    """
    name = session.id
    say(f"session {name}", err=True)
    try:
        processes = [
            AgentProcess(client, session, reference, bounds)
            for _ in range(max(1, session.spec.slots or 1))
        ]
    except ApartError as error:  # it cannot be started as it is asked for
        if new and session.identity.fingerprint is None and not session.practised:
            client.delete_session(session)
        fail(str(error))
    if processes[0].note:
        say(f"note: {processes[0].note}", err=True)
    here = is_local(client.address)
    with LiveSession(session, first=while_compiling(FIRST, SIMULATOR) if here else FIRST) as shown:

        async def tell_waits() -> None:
            told = dict.fromkeys(processes, "")
            while True:
                await asyncio.sleep(1.0)
                for process, before in told.items():
                    line = process.output().splitlines()[-1:]
                    if line and line[0] != before and line[0].startswith(f"{MARK}{WAITS}"):
                        told[process] = line[0]
                        shown.say(line[0])

        async def play() -> None:
            waits = asyncio.ensure_future(tell_waits())
            try:
                await follow_agents(client.aio, session, processes, shown.tell)
            finally:
                waits.cancel()

        try:
            client.run(play())
        except AnimalcatError as error:
            shown.stop()
            hint = f"{error}; when a server runs again, animalcat session resume {name}"
            fail(hint, UNREACHABLE if error.code == "UNAVAILABLE" else FAILED)
        except KeyboardInterrupt:
            shown.stop()
            client.dismiss_agents(session)  # before they are ended: it is no doing of theirs
            fail(f"stopped; go on with: animalcat session resume {name}", 130)
        finally:
            for process in processes:
                process.close()
    played = client.get_session(session)
    if not played.over:
        for output in dict.fromkeys(process.output() for process in processes):
            say(output, err=True)
        if new and played.identity.fingerprint is None and not played.practised:
            client.delete_session(played)
            fail("the agent did not start, so no session was kept; run it again", FAILED)
        if played.unjudged:
            failed = failed_words(played, client.episodes(played))
            fail(f"{failed}; then go on with: animalcat session resume {name}", FAILED)
        fail(
            f"the agent ended before the session did; go on with: animalcat session resume {name}",
            FAILED,
        )
    return played


def _identity(session: Session) -> dict[str, Any]:
    """What the agent is, as JSON values."""
    known = session.identity.fingerprint
    return {
        "agent_fingerprint": None if known is None else known.to_dict(),
        "other_fingerprints": [fingerprint.to_dict() for fingerprint in session.identity.others],
        "agent_changes": list(session.identity.changes),
        "simulator_environment": dict(session.identity.simulator),
        "unconfined": session.identity.unconfined,
        "plugins": [asdict(plugin) for plugin in session.spec.plugins],
    }


def _show_agent(session: Session) -> None:
    """Print what the agent is, what differed later, and what of other packages is used."""
    if used := session.spec.plugins:
        say(f"{'plugins':13} {plugins.in_words(used)}")
    known = session.identity.fingerprint
    if known is None:
        return
    say(f"{'identity':13} {known.words}")
    if session.identity.unconfined:
        say(f"{'':13} {NOT_CONFINED}")
    for name, digest in known.files.items():
        say(f"{'':13} {digest[:SHORT]} {name}")
    for kind, variables in (
        ("agent", known.environment),
        ("simulator", session.identity.simulator),
    ):
        for name, value in variables.items():
            say(f"{'':13} {name}={value} (of the {kind})")
    for change in session.identity.changes:
        say(f"{'changed':13} {change}")


def _look_at_agent(client: Client, session: Session, agent: str, bounds: Bounds) -> str:
    """Look whether a session can go on with an agent; ends the command where it cannot.

    Args:
        client: Of the server that has the session.
        session: The session.
        agent: The agent that is asked for; empty for the one of the session.
        bounds: Within what it is to play.

    Returns:
        What to run; empty where the agent comes by itself.
    """
    reference = agent or session.spec.agent
    if not agent and ":" not in reference:
        if common().server is None:
            fail(
                f"{session.id} is for an agent called {reference!r}, which cannot be started from "
                "here; say what to run with --agent builtin:NAME or path/to/file.py:Class"
            )
        return ""
    check_reference(reference, session.spec.observation_spec)
    check_apart([reference], bounds)
    if session.unjudged:
        fail(f"{failed_words(session, client.episodes(session))}; then resume it", FAILED)
    check_session(session, reference, same_agent=bounds.same_agent)
    return reference


def _await(client: Client, session: Session) -> None:
    """Let a session go on whose agent is none that can be started here: it comes by itself."""
    name = session.spec.agent
    if session.paused:
        client.resume_session(session)
    say(
        f"{session.id} goes on when its agent comes: animalcat agent run "
        f"--connect {common().server} --session {session.id} --agent FILE.py:CLASS --name {name}"
    )


def _report(
    client: Client,
    session: Session,
) -> None:
    """What was learnt, and where it is."""
    name = session.id
    with status("reading the profile"):
        profile = client.profile(session)
    recordings = None if common().server else str(data_folder() / "recordings" / name)
    if common().as_json:
        print_json({**session_row(session), "profile": profile, "recordings": recordings})
    else:
        row = session_row(session)
        where = same_place()
        print_profile(
            profile,
            f"{row['agent']}: {row['successes']} of {row['episodes']} episodes passed; "
            f"{row['state']}: {row['reason']}{PRIVILEGED_NOTE if row['privileged'] else ''}",
            where=where,
        )
        say("")
        say(f"profile:  animalcat profile export {name} --format html{where}")
        say(f"episodes: {recordings or f'animalcat episode list {name}{where}'}")
    if session.state != "finished" or unplayable(profile):
        raise typer.Exit(FAILED)


def _show(session: Session) -> None:
    row = session_row(session)
    if common().as_json:
        print_json(row)
        return
    for key, value in row.items():
        shown = allowance_words(session.spec.allowance) if key == "allowance" else value
        if key != "capabilities" and shown not in ("", None):
            say(f"{key:13} {shown}")
    rows = [
        {
            "capability": c.name,
            "estimate": c.value,
            "about 90 %": c.interval,
            "status": c.status or "",
            "needs": c.episodes_needed,
        }
        for c in session.capabilities
    ]
    print_table(rows, COLUMNS)
    for c in session.capabilities:
        if c.limit:
            say(unreachable(c))
