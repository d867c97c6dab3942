"""What a recording's mcap file holds: its channels, their schemas, and simulation time."""

from __future__ import annotations

from enum import Enum
from typing import Final

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import Message

from animalcat.envs.types import PHYSICS_STEP
from animalcat.v1 import results_pb2

LIBRARY: Final = "animalcat"
"""Stands in the file's header in place of the mcap library's version, so that bytes repeat."""

NANOSECONDS_PER_PHYSICS_STEP: Final = round(PHYSICS_STEP * 1e9)


class Channel(Enum):
    """A channel: its topic and the wire message that it carries."""

    HEADER = ("header", results_pb2.EpisodeHeader)
    STEP = ("step", results_pb2.RecordedStep)
    FOOTER = ("footer", results_pb2.EpisodeFooter)

    def __init__(self, topic: str, message: type[Message]) -> None:
        self.topic = topic
        self.message = message

    @property
    def schema_name(self) -> str:
        """Full name of the message."""
        return self.message.DESCRIPTOR.full_name

    def schema(self) -> bytes:
        """The message's serialised FileDescriptorSet, which mcap's protobuf schemas are."""
        files = descriptor_pb2.FileDescriptorSet()
        _add_file(files, self.message.DESCRIPTOR.file.name, set())
        return files.SerializeToString(deterministic=True)


def log_time(step: int, decision_period: int) -> int:
    """Nanoseconds of simulation time after a number of decisions."""
    return step * decision_period * NANOSECONDS_PER_PHYSICS_STEP


def _add_file(files: descriptor_pb2.FileDescriptorSet, name: str, seen: set[str]) -> None:
    """Add a file after those that it imports, each once."""
    if name in seen:
        return
    seen.add(name)
    file = descriptor_pb2.FileDescriptorProto()
    descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
    for dependency in file.dependency:
        _add_file(files, dependency, seen)
    files.file.append(file)
