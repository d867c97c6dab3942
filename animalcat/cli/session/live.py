"""A session as it goes on: a table that changes on a terminal, lines now and then in a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from animalcat.cli.session.plan import unreachable
from animalcat.cli.shared.output import long_wait, progress_console
from animalcat.cli.shared.progress import PipeLines
from animalcat.cli.shared.table import Column, lay_out
from animalcat.text.plain_console import PlainConsole
from animalcat.values import CapabilityStatus, Episode, Session, SessionEvent

FIRST: Final = "waiting for the first episode"
"""What is said until an episode is over."""
AN_AGENT: Final = "an agent"
"""What a session waits for at its beginning, as everybody knows who starts one."""
COLUMNS: Final = (
    Column("capability"),
    Column("estimate"),
    Column("about 90 %"),
    Column("status"),
    Column("needs", 3),
)
"""Columns of the table; "needs" is how many episodes more the target is expected to take."""


def episode_line(episode: Episode) -> str:
    """How an attempt at an episode ended, in a line."""
    outcome = episode.outcome or ""
    said = filter(None, ("practice" if episode.practice else "", episode.cause))
    cause = f" ({', '.join(said)})" if episode.practice or episode.cause else ""
    return (
        f"episode {episode.number:3}  {episode.instance:20} {outcome:8} "
        f"return {episode.episode_return:7.3f} in {episode.steps} decisions{cause}"
    )


class LiveSession:
    """Shows a session while a `with` block lasts: give it events.

    On a terminal it is a table below the lines of the episodes. In a pipe a line is printed at each
    tenth, and every half minute. What the battery cannot reach is said once, and taken back in a
    sentence where it was reached all the same.
    """

    def __init__(
        self, session: Session, console: PlainConsole | None = None, first: str = FIRST
    ) -> None:
        """Show a session.

        Args:
            session: As it stands.
            console: Where to; None for standard error, silent unless that is a terminal.
            first: What is said until an episode is over, where nothing else is to be said.
        """
        self._console = console or progress_console()
        self._errors = PlainConsole(stderr=True, width=10_000)
        self._session = session
        self._said: dict[str, str] = {}
        self._first = first
        self._waits_for = session.waits_for
        self._until_first = ExitStack()
        self._lines = PipeLines(self._console.quiet, session.episodes)
        self._live = Live(
            console=self._console,
            get_renderable=self._table,
            refresh_per_second=4,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._live.start()
        if self._console.quiet:
            self._until_first.enter_context(long_wait(self._first))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the table away; calling it twice is fine."""
        self._until_first.close()
        self._live.stop()

    def tell(self, event: SessionEvent) -> None:
        """Take in an event."""
        now = self._session = event.session
        for capability in now.capabilities:
            name, before = capability.name, self._said.get(capability.name)
            if capability.limit != (before or ""):
                self._said[name] = capability.limit
                again = capability.limit and before == ""
                told = f"{name}: its target is not reached any more" if again else ""
                self.say(f"note: {told or unreachable(capability)}")
        most = now.spec.stop.max_episodes or 1  # answers say it
        if now.waits_for != self._waits_for:
            self._waits_for = now.waits_for
            if self._console.quiet and now.waits_for not in ("", AN_AGENT):
                self.say(f"waits for {now.waits_for}")
        if self._lines.due(now.episodes, most):
            known = "  ".join(f"{c.name} {c.value} ({c.interval})" for c in now.capabilities)
            self.say(f"{now.episodes} of {most} episodes: {known}")
        if event.episode is not None:
            self._until_first.close()
            self._console.print(Text(episode_line(event.episode)), soft_wrap=True)

    def say(self, words: str) -> None:
        """Print a line in a terminal above the table, else on standard error."""
        console = self._errors if self._console.quiet else self._console
        console.print(Text(words), soft_wrap=True)

    def _table(self) -> RenderableType:
        session = self._session
        most = max(1, session.spec.stop.max_episodes or 1)
        left = most - session.episodes
        words = (
            f"{session.id}: {session.episodes} of at most {most} episodes, "
            f"{session.successes} passed, {left} left"
        )
        needed = [c.episodes_needed for c in session.capabilities if c.episodes_needed is not None]
        if needed and 0 < max(needed) < left:
            words += f", about {max(needed)} needed"
        if session.paused:
            words += "; paused"
        elif session.waits_for:
            words += f"; waits for {session.waits_for}"
        bar = ProgressBar(total=most, completed=session.episodes, width=20)
        head = Columns([bar, Text(words)])
        parts: list[RenderableType] = [head]
        if session.capabilities:
            parts.append(self._capabilities(session.capabilities))
        if not session.episodes:
            parts.append(Text(self._first))
        if session.misfit:
            parts.append(Text(f"alarm: the layout does not describe the agent {session.misfit}"))
        return Group(*parts)

    def _capabilities(self, capabilities: Sequence[CapabilityStatus]) -> Text:
        rows = [
            {
                "capability": c.name,
                "estimate": c.value,
                "about 90 %": c.interval,
                "status": c.status or "",
                "needs": "" if c.episodes_needed is None else str(c.episodes_needed),
            }
            for c in capabilities
        ]
        table = lay_out(rows, COLUMNS, self._console.width)
        return Text("\n").join(
            [*(Text(line, "bold") for line in table.head), *map(Text, table.body)]
        )
