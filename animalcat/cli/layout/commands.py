"""`animalcat layout`: show measurement layouts, fit them, check them, compare by them."""

from __future__ import annotations

import typer

from animalcat.cli.layout import check as layout_check
from animalcat.cli.layout import compare as layout_compare
from animalcat.cli.layout import fit as layout_fit
from animalcat.cli.layout import reproduce as layout_reproduce
from animalcat.cli.layout import show as layout_show

app = typer.Typer(help="Show, fit, check and compare measurement layouts.", no_args_is_help=True)
app.command("list")(layout_show.list_layouts)
app.command("show")(layout_show.show)
app.command("fit")(layout_fit.command)
app.command("check")(layout_check.command)
app.command("compare")(layout_compare.command)
app.command("reproduce")(layout_reproduce.command)
