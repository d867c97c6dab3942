"""`animalcat agent`: agents, their limits, and running one; needs nothing but the base install."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Final

import typer

from animalcat.cli.shared.command_help import PlayedSession, SameAgent
from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.output import (
    BAD_INPUT,
    FAILED,
    UNREACHABLE,
    fail,
    print_json,
    print_rows,
    progress_console,
    say,
)
from animalcat.client import connect
from animalcat.client.evaluation import EvaluationSummary, PlayedEpisode
from animalcat.client.staying import Pauses, Stay, Wish
from animalcat.envs.agents.limits.catalogue import LIMITS, limits_of
from animalcat.envs.agents.limits.reference import read_reference
from animalcat.envs.agents.load import ABOUT, BUILTIN, AgentLoadError, check_name, make_agent
from animalcat.envs.agents.watching import Watch
from animalcat.errors import AnimalcatError
from animalcat.extending import plugins
from animalcat.text.counts import count_of

INTERRUPTED: Final = 130
"""Exit code of an agent that was told to end."""

app = typer.Typer(
    help="Run an agent on a server, and list agents and their limits.", no_args_is_help=True
)


@app.command()
@without("--server", "--data")
def run(
    server: Annotated[
        str, typer.Option("--connect", metavar="HOST:PORT", help="The server to play on.")
    ],
    reference: Annotated[
        str,
        typer.Option(
            "--agent",
            metavar="REFERENCE",
            help="The agent: builtin:NAME, plugin:NAME, or path/to/file.py:Class, with "
            "+LIMIT=STRENGTH. The file is run, so name only one that you trust.",
        ),
    ],
    session: PlayedSession = "",
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The name of the agent, which must be the one that the session is for.",
            show_default="what --agent says",
        ),
    ] = "",
    stay: Annotated[
        bool,
        typer.Option(
            "--stay",
            help="Stay: reconnect after broken connections and restarts of the server, with "
            "growing pauses, and end only where waiting cannot help. Without --session, "
            "play every session that waits for this name.",
        ),
    ] = False,
    same_agent: SameAgent = False,
) -> None:
    """Play a session to its end, on a running server."""
    progress = progress_console()

    pauses = Pauses()

    def tell(episode: PlayedEpisode) -> None:
        pauses.begin_anew()  # all was well until now
        fault = ", a fault of the backend" if episode.fault else ""
        progress.print(
            f"episode {episode.episode}: return {episode.episode_return:.3f} "
            f"in {episode.steps} decisions{fault}"
        )

    try:
        read = check_name(reference)
        watch = Watch(read)
        with watch:
            loaded = make_agent(read)

        wish = Wish(name or reference, session)

        def play() -> EvaluationSummary | None:
            with connect(server) as client:
                wanted = wish.choose(client) if stay else session
                if wanted is None:
                    return None
                return client.evaluate(
                    loaded,
                    wanted,
                    name=name or reference,
                    on_episode=tell,
                    fingerprint=watch,
                    same_agent=same_agent,
                )

        if stay:
            _end_by_sigterm()
            staying = Stay(play, _say_pause, pauses)
            if not session:
                for summary in staying.all():
                    _show(summary, server)
            summary = staying.one()
        else:
            summary = play()
            assert summary is not None  # only who stays waits for a session
    except AgentLoadError as error:
        if error.__cause__ is not None:  # raised by the agent's code
            traceback.print_exception(error.__cause__)
        fail(str(error))
    except AnimalcatError as error:
        message = "\n".join([str(error), *getattr(error, "__notes__", ())])
        fail(message, UNREACHABLE if error.code == "UNAVAILABLE" else BAD_INPUT)
    except Exception as error:  # noqa: BLE001  the agent is foreign code
        traceback.print_exc()
        fail(f"agent {reference}: {type(error).__name__}: {error}", FAILED)
    except KeyboardInterrupt:
        if not stay:
            raise
        fail("the agent was ended, and has left its session", INTERRUPTED)
    _show(summary, server)
    if summary.state != "finished":
        raise typer.Exit(FAILED)


def _show(summary: EvaluationSummary, server: str) -> None:
    """Print how a session went, and where its profile is."""
    if common().as_json:
        print_json(asdict(summary))
        return
    say(
        f"{summary.session} {summary.state}: {count_of(summary.counted, 'episode')} counted, "
        f"{len(summary.episodes)} played here{_faults(summary.episodes)}"
    )
    name = summary.session.removeprefix("sessions/")
    say(f"profile: animalcat profile show {name} --server {server}")


def _say_pause(words: str, seconds: float) -> None:
    """Say on standard error why the agent waits."""
    say(f"{words}; coming again in {seconds:.0f} s", err=True)


def _end_by_sigterm() -> None:
    """Let a supervisor's SIGTERM do what Ctrl-C does: the agent leaves in order."""

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)


@app.command("list")
@without("--server", "--data")
def list_agents(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="[AGENT]",
            help="List the limits that this agent takes: builtin:NAME, plugin:NAME, or "
            "path/to/file.py:Class.",
            show_default="none",
        ),
    ] = "",
) -> None:
    """List the agents that come with animalcat and with other packages, or the limits of one.

    Limits have a known strength, follow an agent's name and can be combined, as in
    builtin:planner+memory=2+lapses=0.1.
    """
    if reference:
        _list_limits(reference)
        return
    rows = [
        {
            "agent": f"builtin:{name}",
            "about": ABOUT[name],
            "privileged": read_reference(f"builtin:{name}").privileged,
            "limits": list(limits_of(name)),
        }
        for name in BUILTIN
    ]
    rows += [
        {
            "agent": f"plugin:{plugin.name}",
            "about": f"comes with {plugin.distribution} {plugin.version}",
            "privileged": False,
            "limits": list(limits_of("")),
        }
        for plugin in plugins.every("agent")
    ]
    print_rows(rows, ["agent", "privileged", "about"])


def _list_limits(reference: str) -> None:
    """Print the limits that an agent can be given."""
    try:
        names = limits_of(check_name(reference).builtin)
    except AgentLoadError as error:
        fail(str(error))
    rows = [
        {
            "limit": name,
            "takes": limit.range,
            "unit": limit.unit,
            "about": limit.about,
            "otherwise": limit.otherwise,
            "example": f"{name}={limit.example}",
        }
        for name, limit in LIMITS.items()
        if name in names
    ]
    print_rows(rows, ["limit", "takes", "unit", "about"])


def _faults(episodes: Iterable[PlayedEpisode]) -> str:
    """How many of the attempts count for nothing, since the backend failed."""
    number = sum(episode.fault for episode in episodes)
    return f", of which the backend failed at {number}" if number else ""
