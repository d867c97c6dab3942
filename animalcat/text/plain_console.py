"""The console of rich through which everything is printed that has more than plain lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from animalcat.text.terminals import harmless


class PlainConsole(Console):
    """A console that prints text as it is, without markup, and writes out what steers terminals."""

    def __init__(self, **options: Any) -> None:
        """Take the options of rich's console."""
        super().__init__(markup=False, emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render something; rich's own controls, which move the cursor, stay."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else harmless(text), style, control)
