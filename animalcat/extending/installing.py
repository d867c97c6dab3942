"""How to install what is missing: the one place that words it."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from animalcat.errors import MissingExtraError

ELSEWHERE: Final = "/path/to/animalcat"
"""Stands for a checkout where this was not installed at all."""


def install(*extras: str) -> str:
    """The command that installs extras of animalcat here.

    It names what this was installed from: a checkout, a wheel, a repository, or else a package
    index, of which no trace is left (PEP 610). So it is right before a release and after it.

    Args:
        extras: Names of extras, such as "server"; none for the base.
    """
    try:
        found = distribution("animalcat")
    except PackageNotFoundError:  # it runs from a folder on Python's path
        return command({"url": f"file://{ELSEWHERE}"}, extras)
    text = found.read_text("direct_url.json")
    return command(json.loads(text) if text else {}, extras, found.version)


@contextmanager
def needing(what: str, *extras: str) -> Generator[None]:
    """Say of an import within this that fails which extra brings what is missing.

    Args:
        what: What needs it, such as "animalcat.layouts.fit".
        extras: Names of extras.

    Raises:
        animalcat.errors.MissingExtraError: A module is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        from animalcat.errors import MissingExtraError

        if isinstance(error, MissingExtraError):
            raise
        raise missing(what, error, *extras) from None


def missing(what: str, error: ImportError, *extras: str) -> MissingExtraError:
    """The error that says which extra brings what is missing.

    Args:
        what: What needs it, such as "animalcat.layouts.fit".
        error: The error of the import.
        extras: Names of extras.
    """
    from animalcat.errors import MissingExtraError  # brings gRPC along

    named = " and ".join(f"`{extra}`" for extra in extras)
    return MissingExtraError(
        f"{what} needs the extra {named} ({error.name or error} is missing): {install(*extras)}",
        error.name,
    )


def command(origin: dict[str, Any], extras: tuple[str, ...], version: str = "") -> str:
    """The command for an origin.

    Args:
        origin: What PEP 610 has in direct_url.json; empty for a package index.
        extras: Names of extras.
        version: The version that is installed, which an index is asked for.
    """
    named = f"[{','.join(extras)}]" if extras else ""
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        return f"pip install 'animalcat{named} @ {origin['vcs_info']['vcs']}+{url}'"
    if not url:
        return f"pip install 'animalcat{named}=={version}'"
    if not url.startswith("file://"):  # a wheel of a web page
        return f"pip install 'animalcat{named} @ {url}'"
    path = unquote(urlsplit(url).path)
    edits = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {edits}'{path}{named}'"
