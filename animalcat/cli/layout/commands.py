"""`animalcat layout`: show measurement layouts, fit them and check them."""

from __future__ import annotations

import importlib
from typing import Final

import typer

from animalcat.cli.shared.command_help import stand_in

VERBS: Final[dict[str, tuple[str, str, str]]] = {
    "show": ("show", "show", "List layouts, show what one says, or draw it."),
    "fit": ("fit", "command", "Work out profiles from outcomes that you already have."),
    "check": ("check", "command", "Check whether a layout describes outcomes, or is calibrated."),
}
"""Verb -> its module in this package, the function there, and its help line."""


def app_for(verb: str) -> typer.Typer:
    """The verbs of layouts; only the module of the one that is named is imported.

    To fit and to check need seconds of imports, which a list does without.

    Args:
        verb: The one that the call names; empty: none.
    """
    app = typer.Typer(help="Show, fit and check measurement layouts.", no_args_is_help=True)
    for name, (module, function, text) in VERBS.items():
        if name == verb:
            loaded = importlib.import_module(f"animalcat.cli.layout.{module}")
            app.command(name)(getattr(loaded, function))
        else:
            app.command(name, help=text)(stand_in)
    return app
