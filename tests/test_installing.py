"""What messages say of extras that are missing."""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from animalcat.extending.installing import command, install


def test_the_command_names_what_this_was_installed_from() -> None:
    """What was installed from a checkout is not looked for in an index."""
    origin = json.loads(distribution("animalcat").read_text("direct_url.json") or "{}")
    path = origin["url"].removeprefix("file://")
    assert Path(path, "pyproject.toml").is_file()
    assert install("server", "ray") == f"pip install -e '{path}[server,ray]'"


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ({}, "pip install 'animalcat[server]==0.1.0'"),  # after a release, from an index
        (
            {"url": "https://example.org/animalcat-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'animalcat[server] @ https://example.org/animalcat-0.1.0-py3-none-any.whl'",
        ),
        (
            {"url": "file:///home/my%20own/animalcat", "dir_info": {}},
            "pip install '/home/my own/animalcat[server]'",
        ),
        (
            {"url": "file:///tmp/animalcat-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install '/tmp/animalcat-0.1.0-py3-none-any.whl[server]'",
        ),
        (
            {"url": "https://example.org/animalcat.git", "vcs_info": {"vcs": "git"}},
            "pip install 'animalcat[server] @ git+https://example.org/animalcat.git'",
        ),
    ],
)
def test_every_way_to_install_has_its_command(origin: dict[str, Any], words: str) -> None:
    assert command(origin, ("server",), "0.1.0") == words
