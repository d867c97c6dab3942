"""Reads profiles from files: of one agent as exported, of several as fits write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from animalcat.cli.shared.output import fail
from animalcat.layouts.checking.compare import Posterior
from animalcat.text.json_text import read_json


def read_profiles(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Profiles of a file with the names of their agents; ends the command where it has none.

    Args:
        path: What `profile export` or `layout fit -o` wrote, or what `campaign show --json` prints.
    """
    try:
        content = read_json(path.read_bytes())
        if isinstance(content, list):
            entries = cast("list[dict[str, Any]]", content)
            taken = [(str(entry["agent"]), entry) for entry in entries]
        elif "profiles" in content:
            taken = [(str(name), profile) for name, profile in content["profiles"].items()]
        else:
            taken = [(str(content["provenance"].get("agent", path.stem)), content)]
        for name, profile in taken:
            Posterior.of_profile(name, profile)
    except OSError as error:
        fail(f"{path}: {error.strerror or 'cannot be read'}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        fail(f"{path}: not a profile: {error}")
    return taken
