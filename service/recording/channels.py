"""Defines the channels of a recording's mcap file, their schemas and their time."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.message import Message

from animalcat.envs.types import PHYSICS_STEP
from animalcat.v1 import results_pb2

LIBRARY: Final = "animalcat"
"""Replaces the mcap library's version in the file's header, so that bytes are reproducible."""

NANOSECONDS_PER_PHYSICS_STEP: Final = round(PHYSICS_STEP * 1e9)


class Channel(Enum):
    """A channel: its topic, the wire message that it carries, and its number in the file."""

    HEADER = ("header", results_pb2.EpisodeHeader)
    STEP = ("step", results_pb2.RecordedStep)
    FOOTER = ("footer", results_pb2.EpisodeFooter)

    def __init__(self, topic: str, message: type[Message]) -> None:
        self.topic = topic
        self.message = message
        self.number = len(type(self).__members__) + 1

    @property
    def schema_name(self) -> str:
        """Full name of the message."""
        return self.message.DESCRIPTOR.full_name

    def schema(self) -> bytes:
        """Return the message's serialised FileDescriptorSet, as mcap's protobuf schemas need it."""
        return schema_of(self.schema_name)


def log_time(step: int, decision_period: int) -> int:
    """Return the simulation time after a number of decisions.

    Args:
        step: Number of decisions taken.
        decision_period: Physics steps per decision.

    Returns:
        Time in nanoseconds.
    """
    return step * decision_period * NANOSECONDS_PER_PHYSICS_STEP


def schema_of(name: str) -> bytes:
    """Return a serialised FileDescriptorSet of a message and the types it is made of.

    All other types are left out, because whole files would make the schemas larger than a short
    episode.

    Args:
        name: Full name of the message.
    """
    message = descriptor_pool.Default().FindMessageTypeByName(name)
    needed: dict[str, set[str]] = {}
    _need(message, needed)
    files = descriptor_pb2.FileDescriptorSet()
    for path in _importing_last(message.file.name):
        if path not in needed:
            continue
        file = _file(path)
        file.ClearField("service")
        for types in (file.message_type, file.enum_type):
            kept = [type_ for type_ in types if type_.name in needed[path]]
            del types[:]
            types.extend(kept)  # pyright: ignore[reportArgumentType]  each list has one type
        imported = [other for other in file.dependency if other in needed]
        file.dependency[:] = imported
        files.file.append(file)
    return files.SerializeToString(deterministic=True)


def _need(type_: Descriptor | EnumDescriptor, needed: dict[str, set[str]]) -> None:
    """Add a type, and the types it is made of, to `needed` by file and outermost name."""
    outer = type_
    while outer.containing_type is not None:
        outer = outer.containing_type
    needed.setdefault(type_.file.name, set()).add(outer.name)
    if isinstance(type_, Descriptor):
        for field in type_.fields:
            for part in (field.message_type, field.enum_type):
                if part is not None:
                    _need(part, needed)


def _importing_last(name: str) -> Iterator[str]:
    """Return a file and everything it imports, each once and after its own imports."""
    ordered: dict[str, None] = {}

    def visit(file: str) -> None:
        for dependency in _file(file).dependency:
            visit(dependency)
        ordered.setdefault(file)

    visit(name)
    return iter(ordered)


def _file(name: str) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto()
    descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
    return file
