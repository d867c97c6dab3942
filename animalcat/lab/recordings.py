"""Recordings that a server has, as those of a file are: to be replayed, drawn and filmed."""

from __future__ import annotations

from typing import Any

from animalcat.client import Client
from animalcat.client.connection import translated_errors
from animalcat.errors import AnimalcatError
from animalcat.service.recording.reader import Recording
from animalcat.text import names
from animalcat.v1 import results_pb2, results_pb2_grpc


def received_recording(client: Client, session: str, number: int, attempt: int) -> Recording:
    """A recording that a server streams, as the messages that a file of it holds.

    Args:
        client: Of the server.
        session: Id of the session.
        number: Number of the episode.
        attempt: Which try at it.

    Raises:
        AnimalcatError: There is none.
    """
    header = results_pb2.EpisodeHeader()
    footer: results_pb2.EpisodeFooter | None = None
    steps: list[results_pb2.RecordedStep] = []
    damage = ""
    stub: Any = results_pb2_grpc.EpisodesStub(client.aio.channel)
    request = results_pb2.StreamEpisodeRequest(name=names.episode_name(session, number, attempt))

    async def read() -> None:
        nonlocal header, footer
        async for frame in stub.StreamEpisode(request):
            match frame.WhichOneof("frame"):
                case "header":
                    header = frame.header
                case "step":
                    steps.append(frame.step)
                case _:
                    footer = frame.footer

    try:
        with translated_errors(client.address):
            client.run(read())
    except AnimalcatError as error:
        if error.code != "RECORDING_DAMAGED" or not header.name:
            raise
        damage = str(error)
    return Recording(header, tuple(steps), footer, damage)
