"""Side channels: the messages that are sent along with actions and observations.

Source: reference/animal-ai.md section 6.7.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

from animalcat.arena_configs.loader import LoadedConfig, load_config, load_text

ENGINE: Final = UUID("e951342c-4f7e-11ea-b238-784f4387d1f7")
"""Window, quality and speed of the engine: accepted, and without effect on a simulator."""
ARENAS: Final = UUID("9c36c837-cad5-498a-b675-bc19c9370072")
"""Animal-AI's configurations: YAML text, or the path of a file."""
ANALYTICS: Final = UUID("b664a4a9-d86f-5a5f-95cb-e8353a7e8356")
"""Which library trains: accepted and not used."""

_LENGTH: Final = struct.Struct("<i")
_UUID_BYTES: Final = 16
_LONGEST_PATH: Final = 4096


class ChannelError(ValueError):
    """The bytes are not messages of side channels."""


def messages(data: bytes) -> Iterator[tuple[UUID, bytes]]:
    """Split the bytes into messages: the channel and the content of each.

    Raises:
        ChannelError: The bytes end within a message.
    """
    start = 0
    while start < len(data):
        body = start + _UUID_BYTES + _LENGTH.size
        if body > len(data):
            raise ChannelError(f"side channel: {len(data) - start} bytes are no message's head")
        [length] = _LENGTH.unpack_from(data, start + _UUID_BYTES)
        if not 0 <= length <= len(data) - body:
            raise ChannelError(
                f"side channel: a message of {length} bytes where {len(data) - body} are left"
            )
        yield UUID(bytes_le=data[start : start + _UUID_BYTES]), data[body : body + length]
        start = body + length


def read_arenas(content: bytes) -> LoadedConfig:
    """Read the configuration from a message of the channel `ARENAS`.

    Clients up to 5.x send the YAML text, later ones the path of a file. As in builds, the content
    is taken as a path if there is such a file.

    Raises:
        ArenaError: It is neither the path of a file nor a configuration that can be read.
    """
    text = content.decode("utf-8-sig", errors="replace")
    if "\n" not in text and len(text) <= _LONGEST_PATH and "\0" not in text:
        path = Path(text)
        if path.suffix.lower() in (".yaml", ".yml") or _is_file(path):
            return load_config(path, by_build=True)
    return load_text(text, "the arenas sent by the client", by_build=True)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no file can have such a name, for example because it is too long
        return False
