"""Says which characters texts of messages may have, before anything of a message is believed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from animalcat.service.errors import Code, ServiceError
from animalcat.text.terminals import STEERS

MOST: Final = 4096
"""Most characters of a text that is not in the tables below."""
_V1: Final = "animalcat.v1"
LINES: Final = frozenset(
    {
        f"{_V1}.NoteSessionRequest.text",
        f"{_V1}.InvalidateEpisodeRequest.reason",
        f"{_V1}.AgentFingerprint.OptionsEntry.value",
        f"{_V1}.AgentFingerprint.EnvironmentEntry.value",
    }
)
"""Fields that may have several lines, and as many characters as who reads them takes."""
DOCUMENTS: Final = frozenset(
    {
        f"{_V1}.SessionSpec.layout_definition",
        f"{_V1}.Recipe.text",
        f"{_V1}.Recipe.FamiliesEntry.value",
    }
)
"""Fields that are files; such may end their lines as Windows does."""
WRITTEN_OUT: Final = frozenset(
    {
        f"{_V1}.Note.text",
        f"{_V1}.Leave.failure",
        f"{_V1}.DismissAgentsRequest.failure",
    }
)
"""Fields with what programs say, which is stored with such characters written out."""


def check_texts(message: Message) -> None:
    """Check every text of a message that has come.

    Raises:
        ServiceError: One is too long, or has characters that steer a terminal.
    """
    for field, text in texts_of(message):
        if field.full_name in WRITTEN_OUT:
            continue
        document = field.full_name in DOCUMENTS
        if not document and field.full_name not in LINES:
            if len(text) > MOST:
                raise _refusal(field, f"has {len(text):,} characters; give {MOST:,} at most")
            if not text.isprintable() and (found := set(text) & {"\n", "\t"}):
                raise _refusal(field, f"has the character {found.pop()!a}; leave it out")
        if found := STEERS.search(text.replace("\r\n", "\n") if document else text):
            raise _refusal(field, f"has the character {found[0]!a}; leave it out")


def texts_of(message: Message) -> Iterator[tuple[FieldDescriptor, str]]:
    """Return all texts in a message, keys and values of maps too, each after its field."""
    for field, value in message.ListFields():
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            yield from _texts(entry.fields_by_name["key"], value)
            yield from _texts(entry.fields_by_name["value"], value.values())
        else:
            yield from _texts(field, value if field.is_repeated else [value])


def _texts(field: FieldDescriptor, values: Any) -> Iterator[tuple[FieldDescriptor, str]]:
    for value in values:
        if isinstance(value, str):
            yield field, value
        elif isinstance(value, Message):
            yield from texts_of(value)


async def read_checked(context: Any) -> Any:
    """Return the next frame of a stream, whose texts have been checked.

    Raises:
        ServiceError: As of `check_texts`.
    """
    frame = await context.read()
    if frame is not grpc.aio.EOF:
        check_texts(frame)
    return frame


def _refusal(field: FieldDescriptor, why: str) -> ServiceError:
    return ServiceError(Code.INVALID_REQUEST, f"{field.full_name.removeprefix(f'{_V1}.')} {why}")
