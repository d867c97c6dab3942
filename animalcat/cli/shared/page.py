"""Serves a page on this machine for as long as a command runs."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import webbrowser
from collections.abc import Callable

import typer

from animalcat.service.person.web import PageServer, Show


def serve_page(show: Callable[[], Show], verb: str, port: int, browser: bool) -> None:
    """Show something on a page until the person presses Ctrl-C.

    Args:
        show: Makes what is shown.
        verb: What the person does there, for the line that names the address.
        port: Port of the page; 0 is any free one.
        browser: Open a browser.

    Raises:
        OSError: The port is taken.
        ArenaError: The arena cannot be built.
    """
    server = PageServer(show, secrets.token_urlsafe(24), port)
    try:
        typer.echo(f"{verb} at {server.url}\nCtrl-C ends")
        if browser:
            open_page(server.url)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve()
    finally:
        server.close()


def open_page(url: str) -> None:
    """Open a browser, if there is a display: without one Python would start one in the terminal."""
    if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(url)
