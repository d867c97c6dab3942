"""What every command is told of: the server and the data directory that are meant, and JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

_Command = TypeVar("_Command", bound=Callable[..., object])
CommonOption = Literal["--server", "--data", "--json"]
_LACKS: Final = "_lacks"


@dataclass(frozen=True, slots=True)
class Common:
    """The options that may stand before or behind any command.

    Attributes:
        server: Host and port of the server to ask; None for the one of the data directory.
        data: The data directory; None for the one of the settings.
        as_json: Print JSON instead of tables.
    """

    server: str | None = None
    data: Path | None = None
    as_json: bool = False

    @property
    def words(self) -> list[str]:
        """The options that name the same place again."""
        if self.server:
            return ["--server", self.server]
        return ["--data", str(self.data)] if self.data else []

    def given(self) -> list[str]:
        """Names of the options that were given."""
        values = {"--server": self.server, "--data": self.data, "--json": self.as_json}
        return [name for name, value in values.items() if value]


_CALL: Final = [Common()]
"""Of the call of the command line that goes on in this process."""


def common() -> Common:
    """What this call of the command line says for all commands."""
    return _CALL[0]


def keep_common(options: Common) -> None:
    """Let a call of the command line begin, which says this."""
    _CALL[0] = options


def without(*names: CommonOption) -> Callable[[_Command], _Command]:
    """Mark a command to which some of the common options mean nothing."""

    def mark(command: _Command) -> _Command:
        vars(command)[_LACKS] = names
        return command

    return mark


def lacks(command: object) -> tuple[str, ...]:
    """The common options that mean nothing to a command."""
    return getattr(command, _LACKS, ())
