"""Serves a page on this machine for as long as a command runs."""

from __future__ import annotations

import contextlib
import os
import sys
import webbrowser

from animalcat.cli.shared.output import say
from animalcat.service.web.application import MakePart
from animalcat.service.web.serving import show_pages


def serve_page(part: MakePart, verb: str, port: int, browser: bool) -> None:
    """Show something on a page until the person presses Ctrl-C.

    Args:
        part: What is shown.
        verb: What the person does there, for the line that names the address.
        port: Port of the page; 0 is any free one.
        browser: Open a browser.

    Raises:
        OSError: The port is taken.
    """
    with show_pages([part], port) as pages:
        link = pages.link()
        say(f"{verb} at {link}\nCtrl-C ends")
        if browser:
            open_page(link)
        with contextlib.suppress(KeyboardInterrupt):
            pages.serve()


def open_page(url: str) -> None:
    """Open a browser, if there is a display: without one Python would start one in the terminal."""
    if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(url)
