"""`python -m benchmarks.reproduce PAPER`: a paper's tables, ours beside the printed ones."""

from __future__ import annotations

import typer

from animalcat.cli.shared.command_help import GroupedCommand
from benchmarks.reproduce.command import command

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command(cls=GroupedCommand)(command)

if __name__ == "__main__":
    app(prog_name="python -m benchmarks.reproduce")
