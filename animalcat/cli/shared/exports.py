"""Prints what a session exports."""

from __future__ import annotations

import tempfile
from pathlib import Path

from animalcat.cli.shared.output import insist_no_terminal, remark, status, to_standard_output
from animalcat.client import Client


def print_export(client: Client, session: str, form: str) -> None:
    """Print the profile or the outcomes of a session, of which little is held at a time.

    Args:
        client: Where the session is.
        session: Its id.
        form: As `Client.export_profile` takes it.
    """
    insist_no_terminal(form)
    with tempfile.TemporaryDirectory(prefix="animalcat-") as folder:
        path = Path(folder) / "export"
        with status("writing it"):
            left_out = client.save_profile(session, path, form)
        for note in left_out:
            remark(note)
        with path.open("rb") as file:
            for line in file:
                to_standard_output(line, form)
