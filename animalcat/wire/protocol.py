"""Which protocol this version speaks, and what to tell a client or server of another one."""

from __future__ import annotations

import importlib.metadata
from typing import Final

PROTOCOL: Final = 1
"""The number that this version speaks. It rises when an older peer would misunderstand a newer one;
what only adds fields, methods or values does not raise it. 0: no number is said."""
OLDEST: Final = 1
"""The oldest number that a server of this version still speaks."""


def version() -> str:
    """Version of this installation."""
    return importlib.metadata.version("animalcat")


def refusal(client: int, client_version: str) -> str:
    """What a server tells a client whose protocol it does not speak; empty where it speaks it.

    Args:
        client: Number of the client's protocol; 0 where it says none.
        client_version: Version of the client, for people; may be empty.
    """
    who = f"the agent's client ({_version_words(client_version)}) speaks protocol {client}"
    if client < OLDEST:
        return (
            f"{who}, which is too old: this server, animalcat {version()}, speaks {_range()}. "
            f"Update the client to animalcat {version()} or newer, from where it was installed"
        )
    if client > PROTOCOL:
        return (
            f"{who}, which is too new: this server, animalcat {version()}, speaks {_range()}. "
            f"Update the server, or install animalcat {version()} where the client is"
        )
    return ""


def server_refusal(server: int, server_version: str) -> str:
    """What a client of this version says to a server that does not speak its protocol; or empty.

    Args:
        server: Number that the server's welcome says; 0 where it says none.
        server_version: Version of the server, for people; may be empty.
    """
    if server == PROTOCOL:
        return ""
    return (
        f"the server ({_version_words(server_version)}) speaks protocol {server}, and this client, "
        f"animalcat {version()}, speaks {PROTOCOL}; update the older of the two"
    )


def _range() -> str:
    return str(PROTOCOL) if OLDEST == PROTOCOL else f"{OLDEST} to {PROTOCOL}"


def _version_words(text: str) -> str:
    return f"animalcat {text[:40]}" if text else "of unknown version"
