"""Names of resources: the one place that builds and parses them.

A component holds letters, digits, '.', '_' and '-', never a slash, and is neither '.' nor '..';
so no path and no second component can be smuggled through an id.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_LABEL: Final = 200
"""Most characters of what people call something."""
MAX_COMPONENT: Final = 100
"""Most characters of one component."""

EVERY_SESSION: Final = "sessions/-"
"""Stands for all sessions where episodes are listed."""

_COMPONENT: Final = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
_EPISODE: Final = re.compile(r"(0|[1-9][0-9]{0,8})(?:-(0|[1-9][0-9]{0,8}))?", re.ASCII)
_NOT_COMPONENT: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


class BadNameError(ValueError):
    """A resource name that does not parse, or a component that may not be in one."""


class EpisodeName(NamedTuple):
    """What the name of an episode says.

    Attributes:
        session: Id of the session.
        number: Number of the episode within the session, from 0.
        attempt: Which try at the number, from 0; None where the name leaves it open, which means
            the last try.
    """

    session: str
    number: int
    attempt: int | None


def check_label(text: str, what: str) -> str:
    """The text, if it may stand in tables and on terminals as it is.

    A control character would move the cursor or set a title; a cell of a CSV file that begins with
    one of =+-@ is a formula for spreadsheets.

    Args:
        text: Candidate, such as the name of an agent or a part of a file's path.
        what: What it is, for the error.

    Raises:
        BadNameError: It may not.
    """
    if not 1 <= len(text) <= MAX_LABEL:
        raise BadNameError(
            f"{what} {_short(text)} has {len(text)} characters; give 1 to {MAX_LABEL}"
        )
    if not text.isprintable():
        raise BadNameError(
            f"{what} {_short(text)} has characters that do not print; leave them out"
        )
    if text != text.strip():
        raise BadNameError(f"{what} {_short(text)} begins or ends with white space; leave it out")
    if text[0] in "=+-@":
        raise BadNameError(
            f"{what} {_short(text)} begins with {text[0]}, which spreadsheets take for a formula; "
            "begin it otherwise"
        )
    return text


def check_unicode(name: str) -> str:
    """The name of a file, if it is text; archives of old leave names in Latin-1.

    Raises:
        BadNameError: It is none.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        shown = name.encode("utf-8", "backslashreplace").decode()
        raise BadNameError(
            f"{shown}: the name of this file is no UTF-8, and what is made of it is called so; "
            "rename it"
        ) from None
    return name


def check_component(text: str, what: str = "id") -> str:
    """The text, if it may be a component of a name.

    Args:
        text: Candidate.
        what: What it is, for the error.

    Raises:
        BadNameError: It may not.
    """
    if not _COMPONENT.fullmatch(text) or text in (".", ".."):
        raise BadNameError(
            f"{what} {_short(text)} is not 1 to {MAX_COMPONENT} of letters, digits, '.', '_', '-'"
        )
    return text


def to_component(text: str) -> str:
    """The nearest component to any text, for ids made from titles and file names."""
    cleaned = _NOT_COMPONENT.sub("-", text).strip("-.")[:MAX_COMPONENT]
    return cleaned or "unnamed"


def short_digest(digest: str) -> str:
    """The first characters of a digest, as people compare it."""
    return digest[:12]


def session_name(session: str) -> str:
    """`sessions/{session}`."""
    return f"sessions/{check_component(session, 'session')}"


def profile_name(session: str) -> str:
    """`sessions/{session}/profile`."""
    return f"{session_name(session)}/profile"


def episode_name(session: str, number: int, attempt: int | None = None) -> str:
    """`sessions/{session}/episodes/{number}-{attempt}`, or `.../{number}` for the last attempt.

    Raises:
        BadNameError: The session is no component, or a number is negative.
    """
    component = str(number) if attempt is None else f"{number}-{attempt}"
    if not _EPISODE.fullmatch(component):
        raise BadNameError(f"episode {component} is not NUMBER or NUMBER-ATTEMPT")
    return f"{session_name(session)}/episodes/{component}"


def battery_name(battery: str) -> str:
    """`batteries/{battery}`."""
    return f"batteries/{check_component(battery, 'battery')}"


def layout_name(layout: str) -> str:
    """`layouts/{layout}`, by its digest or by what it calls itself."""
    return f"layouts/{check_component(layout, 'layout')}"


def parse_layout(name: str) -> str:
    """Digest or title in `layouts/{layout}`; raises `BadNameError` for anything else."""
    (layout,) = _split(name, "layouts/{layout}")
    return layout


def operation_name(operation: str) -> str:
    """`operations/{operation}`."""
    return f"operations/{check_component(operation, 'operation')}"


def parse_operation(name: str) -> str:
    """Id in `operations/{operation}`; raises `BadNameError` for anything else."""
    (operation,) = _split(name, "operations/{operation}")
    return operation


def campaign_name(campaign: str) -> str:
    """`campaigns/{campaign}`."""
    return f"campaigns/{check_component(campaign, 'campaign')}"


def parse_campaign(name: str) -> str:
    """Id in `campaigns/{campaign}`; raises `BadNameError` for anything else."""
    (campaign,) = _split(name, "campaigns/{campaign}")
    return campaign


def parse_session(name: str) -> str:
    """Id in `sessions/{session}`; raises `BadNameError` for anything else."""
    (session,) = _split(name, "sessions/{session}")
    return session


def parse_profile(name: str) -> str:
    """Session in `sessions/{session}/profile`; raises `BadNameError` for anything else."""
    (session,) = _split(name, "sessions/{session}/profile")
    return session


def parse_battery(name: str) -> str:
    """Id in `batteries/{battery}`; raises `BadNameError` for anything else."""
    (battery,) = _split(name, "batteries/{battery}")
    return battery


def parse_episode(name: str) -> EpisodeName:
    """What `sessions/{s}/episodes/{e}` names; raises `BadNameError` for anything else."""
    session, episode = _split(name, "sessions/{session}/episodes/{episode}")
    match = _EPISODE.fullmatch(episode)
    if match is None:
        raise BadNameError(f"episode {_short(episode)} in {_short(name)} is not NUMBER[-ATTEMPT]")
    number, attempt = match.groups()
    return EpisodeName(session, int(number), None if attempt is None else int(attempt))


def _split(name: str, pattern: str) -> list[str]:
    """Components of a name at the places where the pattern has braces."""
    parts, wanted = name.split("/"), pattern.split("/")
    if len(parts) != len(wanted) or any(
        w != p for w, p in zip(wanted, parts, strict=True) if not w.startswith("{")
    ):
        raise BadNameError(f"name {_short(name)} is not of the form {pattern}")
    return [
        check_component(p, w.strip("{}"))
        for w, p in zip(wanted, parts, strict=True)
        if w.startswith("{")
    ]


def _short(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:117] + "...")
