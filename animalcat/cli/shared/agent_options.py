"""The options of commands that run agents, and what these say where an agent cannot run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from animalcat import apart
from animalcat.apart import ApartError, Permission
from animalcat.cli.shared.command_help import AGENT
from animalcat.cli.shared.output import fail
from animalcat.values import Episode, Session

_P = ParamSpec("_P")

AgentMay = Annotated[
    Permission,
    typer.Option(
        "--agent-may",
        help="What the agent's process may do besides playing, where this command starts it: "
        "nothing (play), use the network, or anything that you may (all). With network or all it "
        "may find the server of this machine, and what that knows.",
        rich_help_panel=AGENT,
    ),
]
AgentSees = Annotated[
    list[Path] | None,
    typer.Option(
        "--agent-sees",
        metavar="PATH",
        help="A file, folder or device that the agent's process may read besides its own folder: "
        "weights, a data set, /dev/nvidia0. Repeat it for several.",
        show_default="its folder alone",
        rich_help_panel=AGENT,
    ),
]
AgentEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--agent-env",
        metavar="NAME",
        help="A variable of the environment that the agent's process gets, such as the key to a "
        "model elsewhere; NAME=VALUE sets it. Repeat it for several.",
        show_default="language, threads and ANIMALCAT_AGENT_...",
        rich_help_panel=AGENT,
    ),
]


def _ending_command(check: Callable[_P, None]) -> Callable[_P, None]:
    """The same check, which ends the command with a sentence."""

    @wraps(check)
    def run_check(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            check(*args, **kwargs)
        except ApartError as error:
            fail(str(error))

    return run_check


check_reference = _ending_command(apart.check_reference)
check_apart = _ending_command(apart.check_apart)


def failed_words(session: Session, episodes: Iterable[Episode]) -> str:
    """What became of a session where the agent's code failed, and what to do; empty if it did not.

    Args:
        session: The session.
        episodes: Its attempts.
    """
    waits = [episode for episode in episodes if episode.ruling == "awaited"]
    if not waits:
        return ""
    where = "; ".join(
        f"episode {episode.number} ({episode.instance}): {episode.cause}" for episode in waits
    )
    return (
        f"{where}. Session {session.id} is paused there, and the agent has seen this arena. Say "
        f"what the episode counts as: animalcat session resume {session.id} --as repeat (the same "
        "arena is played again, and the profile says so), --as failure, or --as fault (it was not "
        "the agent's doing)"
    )
