"""Lists what people have played from the recordings alone, because no store knows of it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from animalcat.service.recording.reader import Recording, RecordingError, read_episode
from animalcat.service.storage.artefacts import PERSONS, recording_path
from animalcat.text import names
from animalcat.v1 import sessions_pb2, types_pb2


def sessions(data: Path) -> list[str]:
    """List the ids of people's sessions in a data directory, sorted."""
    folders = (data / "recordings").glob(f"{PERSONS}*")
    return sorted(folder.name for folder in folders if any(folder.glob("*.mcap")))


def places(data: Path, session: str) -> list[tuple[int, int]]:
    """List the numbers and attempts of a person's episodes in the order played, unread.

    Args:
        data: Data directory.
        session: Id of the session, already checked to be a name component.

    Returns:
        Nothing if there is no such session.
    """
    if not session.startswith(PERSONS):
        return []
    found: set[tuple[int, int]] = set()
    for path in (data / "recordings" / session).glob("*.mcap"):
        with suppress(names.BadNameError):  # not the file of an episode
            _, number, attempt = names.parse_episode(f"sessions/{session}/episodes/{path.stem}")
            found.add((number, attempt or 0))
    return sorted(found)


def episode(data: Path, session: str, number: int, attempt: int) -> sessions_pb2.EpisodeSummary:
    """Return what is known of a person's episode.

    One with an unreadable or damaged recording has that as its cause.

    Args:
        data: Data directory.
        session: Id of the session.
        number: Number of the episode.
        attempt: Which attempt at it.
    """
    try:
        recording = read_episode(recording_path(data, session, number, attempt))
        return _summary(recording, session, number, attempt)
    except (RecordingError, OSError) as error:
        return sessions_pb2.EpisodeSummary(
            name=names.episode_name(session, number, attempt),
            episode=number,
            attempt=attempt,
            decision=sessions_pb2.Decision(reason=sessions_pb2.REASON_PERSON),
            cause=f"its recording cannot be read: {error}",
        )


def episodes(data: Path, session: str) -> list[sessions_pb2.EpisodeSummary]:
    """List a person's episodes in the order played; empty if there is no such session."""
    return [episode(data, session, *place) for place in places(data, session)]


def _summary(
    recording: Recording, session: str, number: int, attempt: int
) -> sessions_pb2.EpisodeSummary:
    header, footer = recording.header, recording.footer
    summary = sessions_pb2.EpisodeSummary(
        name=names.episode_name(session, number, attempt),
        episode=number,
        attempt=attempt,
        instance=header.instance,
        steps=max(0, len(recording.steps) - 1),
        decision=sessions_pb2.Decision(instance=header.instance, reason=sessions_pb2.REASON_PERSON),
        cause=f"its recording is damaged: {recording.damage}" if recording.damage else "",
    )
    if footer is not None:
        summary.outcome = footer.outcome or types_pb2.OUTCOME_UNSPECIFIED
        summary.episode_return = footer.episode_return
        summary.ended_by = footer.ended_by
    return summary
