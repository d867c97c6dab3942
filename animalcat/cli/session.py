"""`animalcat session`: run, list, show, resume and cancel test sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from animalcat import names
from animalcat.cli.agent_process import AgentProcess, check_reference, follow
from animalcat.cli.output import FAILED, UNREACHABLE, fail, print_json, print_rows, progress_console
from animalcat.cli.remote import AsJson, Data, Server, SessionArgument, client_for, session_row
from animalcat.cli.session_plan import stopping_rule, why
from animalcat.cli.tables import NODE_COLUMNS, profile_rows
from animalcat.client import Client
from animalcat.envs.backends import AUTOMATIC
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from animalcat.errors import AnimalcatError
from animalcat.service.settings import Settings
from animalcat.v1 import sessions_pb2, types_pb2

app = typer.Typer(help="Run, list, show, resume and cancel test sessions.", no_args_is_help=True)


@app.command()
def run(
    agent: Annotated[str, typer.Option(help="builtin:NAME, or path/to/file.py:Class.")],
    battery: Annotated[
        str, typer.Option(help="Name of a battery or a family, or a folder of arena files.")
    ],
    layout: Annotated[str, typer.Option(help="Name of a layout; see `layout list`.")] = "aaio",
    variant: Annotated[str, typer.Option(help="Variant of the layout.")] = "",
    preset: Annotated[
        str, typer.Option(help="Stopping rule: quick, standard or thorough.")
    ] = "standard",
    max_episodes: Annotated[int | None, typer.Option(min=1, help="Most episodes.")] = None,
    target_sd: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Enough at this SD, a share of the range; 0: never."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SHARE", help="Target of one capability; may be repeated."),
    ] = None,
    target_width: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Greatest width of 90 % intervals, a share of the range."),
    ] = None,
    futility: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Enough when 25 more would gain less; 0: never."),
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Most seconds of play.")] = None,
    stop: Annotated[str, typer.Option(help="any: what comes first; all: when all came.")] = "any",
    stop_at_alarm: Annotated[
        bool, typer.Option(help="Stop when the layout turns out not to describe the agent.")
    ] = False,
    policy: Annotated[
        str, typer.Option(help="variance, information, threshold, stratified or random.")
    ] = "variance",
    random_share: Annotated[float, typer.Option(min=0, max=1, help="Share drawn at random.")] = 0.3,
    repeats: Annotated[
        int, typer.Option(min=0, help="How often an arena may be played; 0: any number of times.")
    ] = 1,
    per_second: Annotated[bool, typer.Option(help="Prefer short episodes.")] = False,
    about: Annotated[
        list[str] | None,
        typer.Option(help='Capability that "information" is about; may be repeated.'),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the whole session.")] = 0,
    backend: Annotated[
        str, typer.Option(help="What plays: sim, unity:auto, or unity:PATH of a Unity build.")
    ] = "sim",
    camera: Annotated[
        int | None, typer.Option(min=4, max=512, help="Side of a camera image; none if not given.")
    ] = None,
    decision_period: Annotated[int, typer.Option(min=1, max=20, help="Physics steps.")] = 3,
    action_timeout: Annotated[float, typer.Option(help="Seconds for one action.")] = 60.0,
    record_pixels: Annotated[bool, typer.Option(help="Keep camera images.")] = False,
    certify: Annotated[bool, typer.Option(help="Check the live posterior by NUTS.")] = True,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Measure an agent: play until the layout's capabilities are known, or the budget is spent."""
    check_reference(agent)
    spec = ObservationSpec(
        camera=CameraSpec(camera) if camera else None,
        rays=RaySpec(),
        decision_period=decision_period,
    )
    rule = stopping_rule(
        preset,
        target or [],
        {
            "max_episodes": max_episodes,
            "target_sd": target_sd,
            "target_width": target_width,
            "futility": futility,
            "max_seconds": max_seconds,
            "stop_at_alarm": stop_at_alarm,
            "combine": stop,
        },
    )
    chooses = sessions_pb2.SelectionPolicy(
        name=policy,
        random_share=random_share,
        exposures=repeats,
        per_second=per_second,
        about=about or [],
    )
    backend, builds = _backend(backend, server)
    with client_for(server, data, builds=builds) as client:
        session = client.create_session(
            agent=agent,
            battery=_battery(client, battery, seed),
            layout=layout,
            layout_variant=variant,
            stop=rule,
            policy=chooses,
            seed=seed,
            backend=backend,
            observation_spec=spec,
            action_timeout_seconds=action_timeout,
            record_pixels=record_pixels,
            certify=certify,
        )
        _report(client, play(client, session, agent), server, data, as_json)


@app.command()
def resume(
    session: SessionArgument,
    agent: Annotated[
        str, typer.Option(help="What to run; by default what the session was started with.")
    ] = "",
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a session where it stopped; nothing that was stored is played again."""
    with client_for(server, data) as client:
        found = client.get_session(session)
        if found.state <= sessions_pb2.SESSION_STATE_RUNNING:
            reference = agent or found.spec.agent
            check_reference(reference)
            found = play(client, found, reference)
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
    last: Annotated[int, typer.Option(min=0, help="How many of the last choices to explain.")] = 3,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show where a session stands, and why it chose the last arenas."""
    with client_for(server, data) as client:
        _show(client.get_session(session), as_json)
        if last and not as_json:
            for episode in client.episodes(session)[-last:]:
                typer.echo(why(episode))


@app.command()
def cancel(
    session: SessionArgument, server: Server = None, data: Data = None, as_json: AsJson = False
) -> None:
    """End a session; what it learnt stays."""
    with client_for(server, data) as client:
        _show(client.cancel_session(session), as_json)


def _backend(backend: str, server: str | None) -> tuple[str, list[Path]]:
    """A backend's name for the server, and the builds that a server of our own may run.

    A path is meant from here unless the server was given, which may be on another machine.
    """
    kind, _, path = backend.partition(":")
    if kind != "unity" or not path or f"{kind}:{path}" == AUTOMATIC or server:
        return backend, []
    build = Path(path).expanduser().absolute()
    return f"{kind}:{build}", [build]


def _battery(client: Client, battery: str, seed: int) -> str:
    """Id of a battery; a path is imported first."""
    path = Path(battery)
    known = {names.parse_battery(b.name) for b in client.list_batteries()}
    written_as_path = "/" in battery or path.suffix in (".yaml", ".yml")
    if not written_as_path and (battery in known or not path.exists()):
        return battery
    if not path.exists():
        fail(f"{battery}: no such file or folder")
    with progress_console().status(f"importing {battery}"):
        made = client.import_battery(path, seed=seed)
    for problem in made.problems[:5]:
        typer.echo(f"note: {problem}", err=True)
    if len(made.problems) > 5:
        typer.echo(f"note: and {len(made.problems) - 5} more; see `battery list --json`", err=True)
    return names.parse_battery(made.name)


def play(client: Client, session: sessions_pb2.Session, reference: str) -> sessions_pb2.Session:
    """Run an agent in a process of its own until the session is over, and show progress.

    Args:
        client: Of the server that has the session.
        session: Waits for its agent.
        reference: What to run: builtin:NAME, or path/to/file.py:Class.

    Returns:
        The session after it.

    Raises:
        typer.Exit: The agent ended before the session did; said so.
    """
    name = names.parse_session(session.name)
    typer.echo(f"session {name}", err=True)
    process = AgentProcess(client.address, session.name, session.spec.agent, reference)
    console = progress_console()
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
    ) as progress:
        task = progress.add_task("starting", total=session.spec.stop.max_episodes)

        def tell(event: sessions_pb2.WatchSessionResponse) -> None:
            now = event.session
            known = "  ".join(f"{c.name} {c.mean:.2f} ± {c.sd:.2f}" for c in now.capabilities)
            progress.update(task, completed=now.episodes, description=known or "starting")
            if event.HasField("episode"):
                progress.console.print(_line(event.episode), highlight=False)

        try:
            client.connection.run(follow(client, session.name, process, tell))
        except AnimalcatError as error:
            progress.stop()
            hint = f"{error}; when a server runs again, animalcat session resume {name}"
            fail(hint, UNREACHABLE if error.code == "UNAVAILABLE" else FAILED)
        except KeyboardInterrupt:
            progress.stop()
            fail(f"stopped; go on with: animalcat session resume {name}", 130)
        finally:
            process.close()
    found = client.get_session(session.name)
    if found.state <= sessions_pb2.SESSION_STATE_RUNNING:
        typer.echo(process.output(), err=True)
        fail(
            f"the agent ended before the session did; go on with: animalcat session resume {name}",
            FAILED,
        )
    return found


def _line(episode: sessions_pb2.EpisodeSummary) -> str:
    outcome = types_pb2.Outcome.Name(episode.outcome).removeprefix("OUTCOME_").lower()
    cause = f" ({episode.cause})" if episode.cause else ""
    return (
        f"episode {episode.episode:3}  {episode.instance:20} {outcome:8} "
        f"return {episode.episode_return:7.3f} in {episode.steps} decisions{cause}"
    )


def _report(
    client: Client,
    session: sessions_pb2.Session,
    server: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """What was learnt, and where it is."""
    name = names.parse_session(session.name)
    profile = client.profile(session.name)
    recordings = None if server else str((data or Settings().home) / "recordings" / name)
    if as_json:
        print_json({**session_row(session), "profile": profile, "recordings": recordings})
    else:
        row = session_row(session)
        print_rows(
            profile_rows(profile),
            NODE_COLUMNS,
            as_json=False,
            title=f"{row['agent']}: {row['successes']} of {row['episodes']} episodes passed; "
            f"{row['state']}: {row['reason']}",
        )
        where = " ".join(["", *_same_server(server, data)])
        typer.echo(f"profile:  animalcat profile export {name} --format html{where}")
        typer.echo(f"episodes: {recordings or f'animalcat episode list {name}{where}'}")
    if session.state != sessions_pb2.SESSION_STATE_FINISHED:
        raise typer.Exit(FAILED)


def _same_server(server: str | None, data: Path | None) -> list[str]:
    """The options that name the same server again."""
    if server:
        return ["--server", server]
    return ["--data", str(data)] if data else []


def _show(session: sessions_pb2.Session, as_json: bool) -> None:
    row = session_row(session)
    if as_json:
        print_json(row)
        return
    for key, value in row.items():
        if key != "capabilities" and value not in ("", None):
            typer.echo(f"{key:13} {value}")
    rows = [{"capability": c["name"], "estimate": c["mean"], **c} for c in row["capabilities"]]
    columns = ["capability", "estimate", "sd", "unit", "status", "episodes_needed"]
    print_rows(rows, columns, as_json=False)
