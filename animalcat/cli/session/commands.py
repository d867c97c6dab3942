"""`animalcat session`: run, create, list, show, resume and cancel test sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from animalcat.cli.session.options import Plan, takes_plan
from animalcat.cli.session.plan import unreachable, why
from animalcat.cli.session.reanalysis import reanalyse
from animalcat.cli.shared.agent_process import AgentProcess, check_reference, follow
from animalcat.cli.shared.output import (
    FAILED,
    UNREACHABLE,
    fail,
    print_json,
    print_rows,
    status,
)
from animalcat.cli.shared.progress import PipeLines, bar
from animalcat.cli.shared.remote import (
    AllowBuild,
    AsJson,
    Data,
    Server,
    SessionArgument,
    client_for,
    data_folder,
    session_row,
)
from animalcat.cli.shared.tables import print_profile
from animalcat.client import Client
from animalcat.client.values import Episode, Session, SessionEvent
from animalcat.errors import AnimalcatError

app = typer.Typer(
    help="Measure an agent, and list, show, resume, cancel and re-analyse test sessions.",
    no_args_is_help=True,
)
app.command()(reanalyse)


@app.command()
@takes_plan
def run(plan: Plan) -> None:
    """Measure an agent, and print its profile.

    The agent plays until every capability of the layout is known, or until a limit is reached.
    """
    check_reference(plan.agent)
    with plan.client() as client:
        session = plan.create(client)
        _report(
            client, run_agent(client, session, plan.agent), plan.server, plan.data, plan.as_json
        )


PRIVILEGED_NOTE: Final = "; privileged: the agent was shown the arena's true state"
"""What is added to the title of a profile that does not tell what an agent can do by itself."""


@app.command()
@takes_plan
def create(plan: Plan) -> None:
    """Create a session that waits for its agent, and print its id.

    The agent may have any name, and gives the same name when it connects. It can then play by
    `animalcat agent run`, as a RemoteEnv, or as code for Animal-AI on the stand-in
    (ANIMALCAT_SESSION).
    """
    with plan.client() as client:
        session = plan.create(client)
        if plan.as_json:
            print_json(session_row(session))
        else:
            typer.echo(session.id)


@app.command()
def resume(
    session: SessionArgument,
    agent: Annotated[
        str,
        typer.Option(
            metavar="REFERENCE",
            help="The agent to run: builtin:NAME, or path/to/file.py:Class.",
            show_default="the one of the session",
        ),
    ] = "",
    allow_build: AllowBuild = None,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a session where it stopped.

    Nothing is played twice.
    """
    builds = [build.absolute() for build in allow_build or ()]
    with client_for(server, data, builds=builds) as client:
        found = client.get_session(session)
        if not found.over:
            if found.paused:
                found = client.resume_session(found)
            reference = agent or found.spec.agent
            check_reference(reference)
            found = run_agent(client, found, reference)
        _report(client, found, server, data, as_json)


@app.command("list")
def list_sessions(server: Server = None, data: Data = None, as_json: AsJson = False) -> None:
    """List sessions, newest first."""
    with client_for(server, data) as client:
        rows = [session_row(session) for session in client.list_sessions()]
    columns = ["session", "agent", "battery", "layout", "state", "episodes", "successes", "reason"]
    print_rows(rows, columns, as_json=as_json)


@app.command()
def show(
    session: SessionArgument,
    last: Annotated[
        int,
        typer.Option(metavar="NUMBER", min=0, help="How many of the last choices to explain."),
    ] = 3,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show how far a session is, and why it chose the last arenas."""
    with client_for(server, data) as client:
        _show(client.get_session(session), as_json)
        if last and not as_json:
            for episode in client.episodes(session)[-last:]:
                typer.echo(why(episode))


@app.command()
def cancel(
    session: SessionArgument, server: Server = None, data: Data = None, as_json: AsJson = False
) -> None:
    """End a session before it is over.

    What it has found out stays.
    """
    with client_for(server, data) as client:
        _show(client.cancel_session(session), as_json)


def run_agent(client: Client, session: Session, reference: str) -> Session:
    """Run an agent in a process for each slot until the session is over, and show progress.

    Args:
        client: Of the server that has the session.
        session: Waits for its agent.
        reference: What to run: builtin:NAME, or path/to/file.py:Class.

    Returns:
        The session after it.

    Raises:
        typer.Exit: All of them ended before the session did; said so.
    """
    name = session.id
    typer.echo(f"session {name}", err=True)
    processes = [
        AgentProcess(client.address, session.name, session.spec.agent, reference)
        for _ in range(max(1, session.spec.slots or 1))
    ]
    with bar() as progress:
        most = session.spec.stop.max_episodes or 1  # answers say it
        task = progress.add_task("starting", total=most)
        said: set[str] = set()
        lines = PipeLines(progress, session.episodes)

        def tell(event: SessionEvent) -> None:
            now = event.session
            for c in now.capabilities:
                if c.limit and c.name not in said:
                    said.add(c.name)
                    typer.echo(f"note: {unreachable(c)}", err=True)
            known = "  ".join(f"{c.name} {c.mean:.2f} ± {c.sd:.2f}" for c in now.capabilities)
            progress.update(task, completed=now.episodes, description=known or "starting")
            if lines.due(now.episodes, most):
                typer.echo(f"{now.episodes} of {most} episodes: {known}", err=True)
            if event.episode is not None:
                progress.console.print(_line(event.episode), highlight=False)

        try:
            client.run(follow(client.aio, session, processes, tell))
        except AnimalcatError as error:
            progress.stop()
            hint = f"{error}; when a server runs again, animalcat session resume {name}"
            fail(hint, UNREACHABLE if error.code == "UNAVAILABLE" else FAILED)
        except KeyboardInterrupt:
            progress.stop()
            fail(f"stopped; go on with: animalcat session resume {name}", 130)
        finally:
            for process in processes:
                process.close()
    found = client.get_session(session)
    if not found.over:
        for output in dict.fromkeys(process.output() for process in processes):
            typer.echo(output, err=True)
        fail(
            f"the agent ended before the session did; go on with: animalcat session resume {name}",
            FAILED,
        )
    return found


def _line(episode: Episode) -> str:
    outcome = episode.outcome or ""
    cause = f" ({episode.cause})" if episode.cause else ""
    return (
        f"episode {episode.number:3}  {episode.instance:20} {outcome:8} "
        f"return {episode.episode_return:7.3f} in {episode.steps} decisions{cause}"
    )


def _report(
    client: Client,
    session: Session,
    server: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """What was learnt, and where it is."""
    name = session.id
    with status("reading the profile"):
        profile = client.profile(session)
    recordings = None if server else str(data_folder(data) / "recordings" / name)
    if as_json:
        print_json({**session_row(session), "profile": profile, "recordings": recordings})
    else:
        row = session_row(session)
        print_profile(
            profile,
            f"{row['agent']}: {row['successes']} of {row['episodes']} episodes passed; "
            f"{row['state']}: {row['reason']}{PRIVILEGED_NOTE if row['privileged'] else ''}",
        )
        where = " ".join(["", *_same_server(server, data)])
        typer.echo(f"profile:  animalcat profile export {name} --format html{where}")
        typer.echo(f"episodes: {recordings or f'animalcat episode list {name}{where}'}")
    if session.state != "finished":
        raise typer.Exit(FAILED)


def _same_server(server: str | None, data: Path | None) -> list[str]:
    """The options that name the same server again."""
    if server:
        return ["--server", server]
    return ["--data", str(data)] if data else []


def _show(session: Session, as_json: bool) -> None:
    row = session_row(session)
    if as_json:
        print_json(row)
        return
    for key, value in row.items():
        if key != "capabilities" and value not in ("", None):
            typer.echo(f"{key:13} {value}")
    rows = [{"capability": c["name"], "estimate": c["mean"], **c} for c in row["capabilities"]]
    columns = ["capability", "estimate", "sd", "unit", "status", "episodes_needed", "best_sd"]
    print_rows(rows, columns, as_json=False)
    for c in session.capabilities:
        if c.limit:
            typer.echo(unreachable(c))
