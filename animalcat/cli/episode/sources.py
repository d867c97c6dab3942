"""Finds the recordings that a command means: a file, or those of a session here or on a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from animalcat.cli.shared.common import common
from animalcat.cli.shared.remote import data_folder
from animalcat.client import Client, connect
from animalcat.lab.recordings import received_recording
from animalcat.service.recording.reader import Recording, RecordingError, read_episode
from animalcat.text import names


class Source(NamedTuple):
    """A recording and what to call it."""

    label: str
    recording: Recording


def sources_of(what: str, episode: str) -> Iterator[Source]:
    """The recordings that are meant, in order of number and attempt."""
    if what.endswith(".mcap") or ("." in what and Path(what).is_file()):
        yield Source(what, read_episode(Path(what)))
    elif server := common().server:
        session = names.parse_session(what) if "/" in what else what
        with connect(server) as client:
            for number, attempt in _from_server(client, session, episode):
                yield Source(
                    f"{session}/{number}-{attempt}",
                    received_recording(client, session, number, attempt),
                )
    else:
        session = names.parse_session(what) if "/" in what else names.check_component(what)
        folder = data_folder() / "recordings" / session
        for path in _from_folder(folder, session, episode):
            recording = read_episode(path)
            _, number, _ = names.parse_episode(own := recording.header.name)
            if path.stem not in (str(number), f"{number}-{recording.header.attempt}"):
                raise RecordingError(f"{path}: it holds {own}; give the file its own name back")
            yield Source(f"{session}/{path.stem}", recording)


def _from_folder(folder: Path, session: str, episode: str) -> list[Path]:
    files = {
        (name.number, name.attempt or 0): path
        for path in folder.glob("*.mcap")
        if (name := names.parse_episode(f"sessions/{session}/episodes/{path.stem}"))
    }
    if not files:
        raise RecordingError(
            f"{folder}: no recordings of session {session!r} there; "
            "name the data directory with --data, or a server with --server"
        )
    return [files[key] for key in _attempts_named(sorted(files), session, episode)]


def _from_server(client: Client, session: str, episode: str) -> list[tuple[int, int]]:
    return _attempts_named(
        [(e.number, e.attempt) for e in client.episodes(session)], session, episode
    )


def _attempts_named(
    there: list[tuple[int, int]], session: str, episode: str
) -> list[tuple[int, int]]:
    """Numbers and attempts that an argument names; the last attempt where it names none."""
    if not episode:
        return there
    _, number, attempt = names.parse_episode(f"sessions/{session}/episodes/{episode}")
    tries = [key for key in there if key[0] == number and attempt in (None, key[1])]
    if not tries:
        numbers = sorted({key[0] for key in there})
        last = f"0 to {numbers[-1]}" if numbers else "none"
        raise RecordingError(f"session {session!r} has no episode {episode}; there are: {last}")
    return tries[-1:]
