"""A measurement that goes on while the next cells run."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from animalcat.errors import AnimalcatError
from animalcat.lab.progress import Progress
from animalcat.text.showing import line_html
from animalcat.values import Session

if TYPE_CHECKING:
    from animalcat.lab.result import Result


class Measures(Protocol):
    """What measures, over a connection of its own: a `Lab`."""

    def measure(self, agent: Any, battery: Any, **options: Any) -> Result:
        """See `Lab.measure`."""
        ...

    def interrupt(self) -> None:
        """Interrupt it, from another thread."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Running:
    """A measurement in a thread of its own, over a connection of its own."""

    def __init__(self, lab: Measures, agent: Any, battery: Any, options: Mapping[str, Any]) -> None:
        """Begin.

        Args:
            lab: What measures; it is closed at the end.
            agent: As for `Lab.measure`.
            battery: Likewise.
            options: Likewise.
        """
        self._lab = lab
        self._progress = Progress(shown=False)
        self._result: Result | None = None
        self._error: BaseException | None = None

        asked = {**options, "progress": self._progress}

        def work() -> None:
            try:
                self._result = self._lab.measure(agent, battery, **asked)
            except BaseException as error:  # noqa: BLE001  it is for whoever asks for the result
                self._error = error
            finally:
                self._lab.close()

        self._thread = threading.Thread(target=work, name="measuring", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()

    @property
    def session(self) -> Session | None:
        """The session as it stands; None until there is one."""
        return self._progress.session

    def stop(self) -> None:
        """Interrupt it; the same call of `measure` goes on with it."""
        self._lab.interrupt()
        self._thread.join()

    def result(self, timeout: float | None = None) -> Result:
        """Wait for its end, and give what it found out.

        Args:
            timeout: Most seconds to wait; None for as long as it takes.

        Raises:
            TimeoutError: It goes on still.
            Exception: What it ended with.
        """
        self._thread.join(timeout)
        if not self.over:
            raise TimeoutError("it is still being measured")
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise AnimalcatError("the measurement ended without a result")
        return self._result

    def __repr__(self) -> str:
        if self._result is not None:
            return repr(self._result)
        if self._error is not None:
            return f"stopped: {self._error or type(self._error).__name__}"
        return self._progress.text

    def to_html(self) -> str:
        """What a notebook shows."""
        if self._result is not None:
            return self._result.to_html()
        return line_html(repr(self)) if self.over else self._progress.html

    _repr_html_ = to_html
