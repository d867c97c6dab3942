"""`animalcat campaign`: measure several agents on one battery, and compare them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final

import typer

from animalcat.apart import AgentProcess, Bounds, Permission, give_up
from animalcat.apart.process import GRACE_SECONDS
from animalcat.cli.campaign_tables import agents_words, campaign_row, show_campaign
from animalcat.cli.session.options import (
    Battery,
    Features,
    Layout,
    Variant,
    arena_folders,
    bounds_of,
    parse_backend,
)
from animalcat.cli.shared.agent_options import (
    AgentEnv,
    AgentMay,
    AgentSees,
    check_apart,
    check_reference,
    failed_words,
)
from animalcat.cli.shared.batteries import find_battery, say_coverage, say_layout
from animalcat.cli.shared.command_help import AGENT, SameAgent
from animalcat.cli.shared.common import common
from animalcat.cli.shared.option_table import SHARES, observation_of, read_options, with_options
from animalcat.cli.shared.output import (
    FAILED,
    UNREACHABLE,
    complain,
    fail,
    print_rows,
    say,
    some,
    status,
)
from animalcat.cli.shared.progress import PipeLines, bar
from animalcat.cli.shared.remote import (
    AllowPlugin,
    Every,
    Limit,
    Margin,
    client_for,
    data_folder,
    place,
    say_pages,
)
from animalcat.cli.shared.same_agent import check_campaign
from animalcat.cli.shared.table import Column
from animalcat.cli.shared.unplayable import fail_if_unplayable
from animalcat.cli.shared.whose import Everybodys, OfOwner, owner_column, whose
from animalcat.client import Client
from animalcat.envs.agents.limits.reference import is_privileged, pictures_of
from animalcat.errors import AnimalcatError
from animalcat.machine.compiling import LAYOUTS, while_compiling
from animalcat.values import Campaign, Session
from animalcat.values.options import CampaignOptions

app = typer.Typer(
    help="Measure several agents on one battery and compare them.", no_args_is_help=True
)

_POLL_SECONDS: Final = 0.5
_AGAIN: Final = "run the same command again"
"""What goes on with a campaign."""


def run(
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REFERENCE",
            help="An agent to measure: builtin:NAME, plugin:NAME, or path/to/file.py:Class, with "
            "+LIMIT=STRENGTH; or llm:MODEL, with +TONGUE. Give it twice or more.",
            rich_help_panel=AGENT,
        ),
    ] = None,
    battery: Battery = "",
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="EPISODES",
            min=1,
            help="How many episodes all agents together play, each an equal share.",
            rich_help_panel=SHARES,
        ),
    ] = None,
    features: Features = None,
    layout: Layout = "",
    variant: Variant = "",
    same_agent: SameAgent = False,
    agent_may: AgentMay = Permission.PLAY,
    agent_sees: AgentSees = None,
    agent_env: AgentEnv = None,
    allow_plugin: AllowPlugin = None,
    **options: Any,
) -> None:
    """Measure several agents by as many episodes each, and compare them at the end.

    All agents play the same random arenas first, and then what is most informative about each. The
    same command again goes on with the same campaign.
    """
    chosen = read_options(CampaignOptions, options)
    if not agent or not battery or budget is None:
        fail("give --agent twice or more, --battery and --budget")
    for reference in agent:
        check_reference(reference, observation_of(CampaignOptions, chosen))
        if is_privileged(reference):
            fail(
                f"{reference} is shown the arena's true state, which no agent of a campaign may "
                f"be; let it play a session of its own: animalcat session run --agent {reference}"
            )
    if chosen.get("camera") is None and (side := max(map(pictures_of, agent))):
        chosen["camera"] = side
    bounds = bounds_of(agent_may, agent_sees, agent_env, same_agent=same_agent)
    check_apart(agent, bounds, None if common().server else data_folder())
    chosen["backend"], builds = parse_backend(chosen.get("backend", ""))
    with client_for(builds=builds, plugins=allow_plugin or ()) as client:
        arenas = find_battery(client, battery, features, where=place())
        say_layout(client, arenas, layout)
        with status(while_compiling("making the campaign", LAYOUTS)):
            campaign = client.create_campaign(
                agents=agent,
                battery=arenas,
                budget=budget,
                layout=layout,
                layout_variant=variant,
                **chosen,
            )
            bounds = replace(bounds, hide=arena_folders(battery, features))
        say_coverage(client, campaign.sessions[0], variant=bool(layout))
        say_pages(f"/campaigns/{campaign.id}")
        played = _play(client, campaign, bounds)
        show_campaign(client, played)
        fail_if_unplayable(client, played.sessions)


app.command("run")(with_options(run, CampaignOptions))


@app.command()
def show(
    campaign: Annotated[
        str, typer.Argument(metavar="CAMPAIGN", help="The id of a campaign.", show_default="all")
    ] = "",
    every: Every = False,
    limit: Limit = None,
    everybodys: Everybodys = False,
    owner: OfOwner = "",
    margin: Margin = 0.1,
) -> None:
    """Show the profiles of a campaign's agents side by side: their ranks, and how they differ.

    Without the id of one, your campaigns are listed, newest first.
    """
    with client_for() as client:
        if campaign:
            show_campaign(client, client.get_campaign(campaign), margin)
        else:
            asked = whose(everybodys, owner)
            _list(some(lambda most: client.campaigns(whose=asked, limit=most), every, limit))


def _list(campaigns: Iterable[Campaign]) -> None:
    """Print one row for each campaign."""
    columns = [
        "campaign",
        owner_column(4),
        Column("battery", 4),
        Column("layout", 5),
        Column("agents", 3),
        Column("episodes", 1),
        Column("budget", 6),
    ]
    rows = map(campaign_row, campaigns)
    if not common().as_json:
        rows = (row | {"agents": agents_words(row["agents"])} for row in rows)
    print_rows(rows, columns)


def _play(client: Client, campaign: Campaign, bounds: Bounds) -> Campaign:
    """Run every agent whose session is not over in a process of its own, until all are."""
    name = campaign.id
    say(f"campaign {name}", err=True)
    check_campaign(campaign, same_agent=bounds.same_agent)
    processes: dict[str, AgentProcess] = {}
    for session in campaign.sessions:
        if session.over:
            continue
        if session.unjudged:
            say(f"note: {failed_words(session, client.episodes(session))}", err=True)
            continue
        if session.paused:
            session = client.resume_session(session)
        processes[session.name] = AgentProcess(client, session, session.spec.agent, bounds)
    for note in dict.fromkeys(process.note for process in processes.values() if process.note):
        say(f"note: {note}", err=True)
    try:
        return _wait_for_end(client, name, processes)
    except AnimalcatError as error:
        hint = f"{error}; when a server runs again, {_AGAIN}"
        fail(hint, UNREACHABLE if error.code == "UNAVAILABLE" else FAILED)
    except KeyboardInterrupt:
        for session in campaign.sessions:  # before they are ended: it is no doing of theirs
            if session.name in processes and not processes[session.name].ended:
                client.dismiss_agents(session)
        fail(f"stopped; to go on, {_AGAIN}", 130)
    finally:
        for process in processes.values():
            process.close()


def _wait_for_end(client: Client, name: str, processes: Mapping[str, AgentProcess]) -> Campaign:
    """The campaign once it is over; its progress is shown until then.

    An agent whose process ends before its session is over stops that session alone. The command
    ends with it once the others have played what they can.
    """
    lost: dict[str, str] = {}
    with bar() as progress:
        lines = PipeLines(progress.console.quiet)
        task = progress.add_task("starting", total=None)
        first: tuple[int, float] | None = None
        while True:
            current = client.get_campaign(name)
            row = campaign_row(current)
            first = first or (row["episodes"], time.monotonic())
            left = _time_left(row["episodes"] - first[0], time.monotonic() - first[1], row)
            played = "  ".join(f"{s.spec.agent} {s.episodes}" for s in current.sessions) + left
            progress.update(
                task, description=played, completed=row["episodes"], total=row["budget"]
            )
            if lines.due(row["episodes"], row["budget"]):
                say(f"{row['episodes']} of {row['budget']} episodes: {played}", err=True)
            if all(s.over or s.id in lost or s.name not in processes for s in current.sessions):
                break
            for session in current.sessions:
                process = processes.get(session.name)
                if process is None or not process.ended or session.over or session.id in lost:
                    continue
                if words := _hold_session(client, session, process):
                    lost[session.id] = words
                    say(f"{process.output()}\n{words}", err=True)
            time.sleep(_POLL_SECONDS)
    for words in lost.values():
        complain(words)
    if not current.over:
        waits = "; ".join(f"{s.spec.agent}: {s.waits_for}" for s in current.sessions if not s.over)
        fail(f"the campaign waits for a person: {waits}. When that is done, {_AGAIN}", FAILED)
    return current


def _hold_session(client: Client, session: Session, process: AgentProcess) -> str:
    """Hold the session of an agent whose process has ended, so that the others go on.

    Returns:
        What has happened, and what to do; empty if the session is over after all.
    """
    now = session
    for _ in range(round(GRACE_SECONDS / _POLL_SECONDS)):
        client.run(give_up(client.aio, session, [process]))
        now = client.get_session(session)
        if now.state != "running":  # the server may miss a connection a moment later
            break
        time.sleep(_POLL_SECONDS)
    process.close()
    if now.over:
        return ""
    if failed := failed_words(now, client.episodes(now)):
        return f"{session.spec.agent}: {failed}"
    if not now.paused:
        client.pause_session(now)
    return (
        f"the agent {session.spec.agent} ended before its session did, between episodes; its "
        f"session {session.id} is paused until this command is run again"
    )


def _time_left(played: int, seconds: float, row: Mapping[str, Any]) -> str:
    """How long the rest of the budget takes at most, as fast as it went so far."""
    if not played:
        return ""
    rest = (row["budget"] - row["episodes"]) * seconds / played
    return f"  at most {rest / 60:.0f} min left" if rest > 90 else f"  at most {rest:.0f} s left"
