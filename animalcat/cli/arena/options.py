"""Options that commands about arenas share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", help="Arena files, or folders of them.", show_default=False),
]
