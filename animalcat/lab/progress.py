"""How far a session is: a table in a notebook, a bar on a terminal, lines in a pipe."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from types import TracebackType
from typing import Any, Final, Self

from animalcat.machine.compiling import SIMULATOR, while_compiling
from animalcat.text.showing import line_html, stacked_html, table_html
from animalcat.text.terminals import harmless
from animalcat.values import Session, SessionEvent

_UPDATE_SECONDS: Final = 0.25
"""How often what is shown changes at most."""
_SOON: Final = 2.0
"""After how long what comes before the first episode is said in a pipe."""
_LINE_SECONDS: Final = 30.0
"""How often a line is printed in a pipe at least, beside one at each tenth."""
_COLUMNS: Final = ("capability", "estimate", "90 % interval", "status")


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, whose cells can show things."""
    shell: Any = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and hasattr(running, "kernel")


class Progress:
    """Shows what is done for as long as a `with` block lasts; silent if it is told to be."""

    def __init__(self, *, shown: bool = True) -> None:
        """Show nothing yet.

        Args:
            shown: Whether anything is ever shown.
        """
        self._session: Session | None = None
        self._words = "beginning"
        self._last = 0.0
        self._show: _Notebook | _Terminal | _Lines | None = None
        if shown:
            piped = not sys.stderr.isatty()
            self._show = _Notebook() if in_notebook() else _Lines() if piped else _Terminal()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._show is not None:
            self._show.end(self._session)
        known = self._session
        if kind is KeyboardInterrupt and not (known and known.over):
            kept = f"{known.id} keeps every episode that ended" if known else "nothing was played"
            _print(f"interrupted: {kept}; the same call goes on")

    def phase(self, words: str) -> None:
        """Say what is being done now."""
        self._words = words
        self._draw()

    def tell(self, event: SessionEvent) -> None:
        """Take in what happened in the session."""
        self.know(event.session)

    def know(self, session: Session) -> None:
        """Take in how far the session is."""
        self._session = session
        self._words = _phase(session)
        now = time.monotonic()
        if now - self._last >= _UPDATE_SECONDS or session.over:
            self._last = now
            self._draw()

    def _draw(self) -> None:
        if self._show is not None:
            self._show.draw(self._words, self._session)


def _phase(session: Session) -> str:
    """What a session does now."""
    most = session.spec.stop.max_episodes or 0
    if not session.over and most and session.episodes >= most:
        return "the last fit (NUTS)"
    if not session.over and not session.episodes:
        return while_compiling("waiting for the first episode", SIMULATOR)
    return session.waits_for and f"waiting for {session.waits_for}"


def _head(words: str, session: Session | None) -> str:
    """How far it is, in a line."""
    if session is None:
        return words
    most = session.spec.stop.max_episodes or 0
    of = f" of at most {most}" if most and not session.over else ""
    played = f"{session.id}: {session.episodes}{of} episodes, {session.successes} passed"
    ends = f"; {session.state}: {session.reason}" if session.over and session.reason else ""
    return f"{played}{ends}" + (f"; {words}" if words and not session.over else "")


def _rows(session: Session) -> list[tuple[str, str, str, str]]:
    return [(c.name, c.value, c.interval, c.status or "") for c in session.capabilities]


def _live_html(words: str, session: Session | None) -> str:
    """How far a session is, with the estimates so far."""
    parts = [line_html(_head(words, session))]
    if session is not None and session.capabilities and not session.over:
        most = session.spec.stop.max_episodes or 1
        parts.append(f'<progress max="{most}" value="{session.episodes}"></progress>')
        parts.append(table_html(_COLUMNS, _rows(session)))
    return stacked_html(*parts)


class _Notebook:
    """A cell's display that is drawn over; it needs no widgets."""

    def __init__(self) -> None:
        self._handle: Any = None

    def draw(self, words: str, session: Session | None) -> None:
        self._put(_live_html(words, session))

    def end(self, session: Session | None) -> None:
        if self._handle is not None and session is not None:
            self._put(line_html(_head("", session)))

    def _put(self, html: str) -> None:
        shown: Any = import_module("IPython.display")
        bundle: Mapping[str, str] = {"text/html": html, "text/plain": ""}
        if self._handle is None:
            self._handle = shown.display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


class _Terminal:
    """A bar on standard error."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        from animalcat.text.plain_console import PlainConsole

        text = TextColumn("{task.description}", markup=False)
        console = PlainConsole(stderr=True)
        self._bar = Progress(SpinnerColumn(), text, BarColumn(), console=console, transient=True)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def draw(self, words: str, session: Session | None) -> None:
        done = 0 if session is None else session.episodes
        most = None if session is None else session.spec.stop.max_episodes
        self._bar.update(
            self._task, description=_head(words, session), completed=done, total=most or None
        )

    def end(self, session: Session | None) -> None:
        self._bar.stop()


class _Lines:
    """A line on standard error at each tenth, and now and then while nothing happens."""

    def __init__(self) -> None:
        self._tenth = 0
        self._head = ""
        self._pause = _SOON
        self._over = False
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._say_what_lasts, daemon=True)
        self._thread.start()

    def draw(self, words: str, session: Session | None) -> None:
        most = (session.spec.stop.max_episodes or 0) if session is not None else 0
        tenth = 10 * session.episodes // most if session is not None and most else 0
        self._head = _head(words, session)
        if tenth > self._tenth:
            self._tenth, self._pause = tenth, _LINE_SECONDS
            _print(self._head)
        elif session is None:
            self._pause = _SOON
        else:
            return
        self._news.set()

    def _say_what_lasts(self) -> None:
        while not self._over:
            if self._news.wait(self._pause):
                self._news.clear()
            elif self._head:
                self._pause = _LINE_SECONDS
                _print(self._head)

    def end(self, session: Session | None) -> None:
        self._over = True
        self._news.set()
        self._thread.join()


def _print(words: str) -> None:
    sys.stderr.write(f"{harmless(words)}\n")
    sys.stderr.flush()
