"""What commands that talk to a server share: their options, and errors as one clear sentence."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from animalcat.cli.shared.command_help import OUTPUT
from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import BAD_INPUT, UNREACHABLE, fail, say, status
from animalcat.errors import AnimalcatError
from animalcat.text import names

if TYPE_CHECKING:
    from animalcat.client import Client
    from animalcat.values import Episode, Session


Every = Annotated[
    bool,
    typer.Option("--all", help="List all, not only the first 100.", rich_help_panel=OUTPUT),
]
Margin = Annotated[
    float,
    typer.Option(
        "--margin",
        metavar="SHARE",
        min=0.001,
        max=0.999,
        help="Largest difference of success rates of agents that are called alike.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=1,
        help="List at most this many.",
        show_default="100, and all with --json",
        rich_help_panel=OUTPUT,
    ),
]
EpisodeArgument = Annotated[
    str,
    typer.Argument(
        metavar="SESSION/NUMBER[-ATTEMPT]",
        help="The session's id and the number of the episode, as in mine-1a2b3c4d/7.",
    ),
]
AllowBuild = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PATH",
        help="Let sessions run this Unity build. Repeat it for several.",
        rich_help_panel=OUTPUT,
    ),
]
AllowPlugin = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-plugin",
        metavar="PACKAGE_OR_FILE",
        help="Let the server run plugins of this package, or the policies in this file. Their code "
        "can do all that the server may. Repeat it for several.",
        rich_help_panel=OUTPUT,
    ),
]
SessionArgument = Annotated[
    str, typer.Argument(metavar="SESSION", help="The id of a session, from `session list`.")
]


def data_folder() -> Path:
    """The data directory that is meant: the one given, else that of the settings."""
    if (given := common().data) is not None:
        return given
    # As the settings read it, whose reader takes long to load; letters may be small there.
    said = {name.upper(): value for name, value in os.environ.items()}
    return Path(said.get("ANIMALCAT_HOME", ".animalcat"))


def place() -> str:
    """Where the options have batteries and sessions kept, in words."""
    return f"at {common().server}" if common().server else f"in {data_folder()}"


def same_place() -> str:
    """The options that name the same place again, as they follow a command."""
    return "".join(f" {word}" for word in common().words)


TOLD_AGENTS: Final = frozenset(
    ("session", "agent", "privileged", "allowance", "state", "episodes", "max_episodes", "created")
)
"""What of a session's row an agent's token is told."""
WITHHELD: Final = (
    "the token is an agent's, so what its sessions play and find is kept from it: `-`, or null"
)


def say_pages(path: str) -> None:
    """Say where something is watched in a browser, if the server that a command uses has pages.

    Args:
        path: The page.
    """
    if common().server:
        return
    from animalcat.service.access.tokens import TokenError
    from animalcat.service.host.lock import web_address
    from animalcat.service.web.visits import link_to, visits_of

    home = data_folder()
    if url := web_address(home):
        with suppress(TokenError, OSError):  # the directory is another user's
            say(f"watch it at {link_to(url, visits_of(home).ticket(), path)}", err=True)


@contextmanager
def client_for(*, builds: Sequence[Path] = (), plugins: Sequence[str] = ()) -> Generator[Client]:
    """A client of the server that the options mean; errors end the command with a sentence.

    Args:
        builds: Unity builds that a private server may run.
        plugins: Packages whose plugins it may run.
    """
    from animalcat.client import connect  # gRPC, which what lists files does without

    try:
        with ExitStack() as stack:
            if server := common().server:
                with status("connecting"):
                    client = stack.enter_context(connect(server))
            else:
                # Brings the whole server, which a client of another machine's does without.
                from animalcat.service.host.private import proof_for_own, server_for

                with status("starting"):
                    given = None, common().data, builds, plugins
                    address = stack.enter_context(server_for(*given))
                    client = stack.enter_context(connect(address, **proof_for_own(data_folder())))
            yield client
    except AnimalcatError as error:
        unreachable = error.code in ("UNAVAILABLE", "SHUTTING_DOWN")
        fail(str(error), UNREACHABLE if unreachable else BAD_INPUT)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def timestamp(time: datetime) -> str:
    """A time in UTC as JSON has it."""
    return time.isoformat().replace("+00:00", "Z")


def parse_episode(text: str) -> tuple[str, int, int | None]:
    """The session, the number and the attempt of an episode; fails with a sentence if it is none.

    Args:
        text: SESSION/NUMBER[-ATTEMPT], or the whole resource name.
    """
    parts = text.split("/")
    if len(parts) == 2:
        parts = ["sessions", parts[0], "episodes", parts[1]]
    try:
        return names.parse_episode("/".join(parts))
    except names.BadNameError:
        fail(
            f"{text!r} is not an episode; give SESSION/NUMBER, as `animalcat episode list` shows it"
        )


def session_row(session: Session) -> dict[str, Any]:
    """A session as lists and JSON show it; what is kept from an agent's token is None."""
    observed, known = session.spec.observation_spec, session.identity.fingerprint
    row: dict[str, Any] = {
        "session": session.id,
        "agent": session.spec.agent,
        "fingerprint": "" if known is None else known.short,
        "battery": session.spec.battery,
        "layout": session.spec.layout,
        "variant": session.spec.layout_variant,
        "privileged": observed.privileged,
        "fresh": session.spec.fresh,
        "practice": session.spec.practice,
        "keep_unpassable": session.spec.keep_unpassable,
        "battery_digest": session.spec.battery_digest,
        "practised": session.practised,
        "allowance": asdict(session.spec.allowance),
        "state": session.state or "",
        "episodes": session.episodes,
        "successes": session.successes,
        "max_episodes": session.spec.stop.max_episodes,
        "seed": session.spec.seed,
        "reason": session.reason,
        "misfit": session.misfit,
        "paused": session.paused,
        "unjudged": list(session.unjudged),
        "waits_for": session.waits_for,
        "created": timestamp(session.created),
        "owner": session.owner,
        "capabilities": [
            {**asdict(capability), "status": capability.status or ""}
            for capability in session.capabilities
        ],
    }
    shown = TOLD_AGENTS if session.withheld else row
    return {name: value if name in shown else None for name, value in row.items()}


def episode_row(episode: Episode) -> dict[str, Any]:
    """An attempt at an episode as lists and JSON show it."""
    return {
        "session": episode.session,
        "episode": episode.number,
        "attempt": episode.attempt,
        "instance": episode.instance,
        "outcome": episode.outcome or "open",
        "return": episode.episode_return,
        "steps": episode.steps,
        "ended_by": episode.ended_by or "",
        "reason": episode.decision.reason or "",
        "score": episode.decision.score,
        "propensity": episode.decision.propensity,
        "predicted": episode.decision.predicted,
        "margins": dict(episode.decision.margins),
        "cause": episode.cause,
        "ruling": episode.ruling or "",
        "seen": episode.seen,
        "practice": episode.practice,
        "spent": asdict(episode.spent),
    }
