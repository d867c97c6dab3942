"""How to install what is missing: the one place that words it."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Final
from urllib.parse import unquote, urlsplit

ELSEWHERE: Final = "/path/to/animalcat"
"""Stands for a checkout or a wheel where it is not known from what this was installed."""


def install(*extras: str) -> str:
    """The command that installs extras of animalcat here.

    It names what this was installed from, since there is no release on a package index yet.

    Args:
        extras: Names of extras, such as "server".
    """
    try:
        text = distribution("animalcat").read_text("direct_url.json")
    except PackageNotFoundError:  # it runs from a folder on Python's path
        text = None
    return command(json.loads(text) if text else {}, extras)


def missing(what: str, error: ImportError, *extras: str) -> ModuleNotFoundError:
    """The error that says which extra brings what is missing.

    Args:
        what: What needs it, such as "animalcat.layouts.fit".
        error: The error of the import.
        extras: Names of extras.
    """
    named = " and ".join(f"`{extra}`" for extra in extras)
    return ModuleNotFoundError(
        f"{what} needs the extra {named} ({error.name or error} is missing): {install(*extras)}",
        name=error.name,
    )


def command(origin: dict[str, Any], extras: tuple[str, ...]) -> str:
    """The command for an origin.

    Args:
        origin: What PEP 610 has in direct_url.json; empty where it is not known.
        extras: Names of extras.
    """
    named = f"[{','.join(extras)}]"
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        return f"pip install 'animalcat{named} @ {origin['vcs_info']['vcs']}+{url}'"
    path = unquote(urlsplit(url).path) if url.startswith("file://") else ELSEWHERE
    edits = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {edits}'{path}{named}'"
