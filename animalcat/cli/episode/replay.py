"""`animalcat episode replay`: shows recordings, and plays them again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer
from PIL import Image

from animalcat import names
from animalcat.cli.episode.words import ended_by_word, outcome_word
from animalcat.cli.shared.output import BAD_INPUT, FAILED, UNREACHABLE, fail, print_json
from animalcat.cli.shared.remote import data_folder
from animalcat.client import Client, connect
from animalcat.client.connection import translated_errors
from animalcat.errors import AnimalcatError
from animalcat.service.recording import (
    Recording,
    RecordingError,
    Verification,
    camera_images,
    other_motion,
    read_episode,
    stage,
    verify,
)
from animalcat.v1 import results_pb2, results_pb2_grpc


class Source(NamedTuple):
    """A recording and what to call it."""

    label: str
    recording: Recording


def play_again(
    what: str,
    episode: str,
    *,
    check: bool,
    pictures: Path | None,
    resolution: int,
    backend: str,
    server: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Show recordings, and verify or render them; the parameters are the command's options."""
    rows: list[dict[str, Any]] = []
    bad = False
    try:
        for source in _sources(what, episode, server, data):
            row = _summary(source)
            bad |= bool(source.recording.damage)
            if check:
                found = verify(source.recording, backend=backend)
                bad |= found.difference is not None
                row["verification"] = _found(found)
            if pictures is not None:
                row["frames"] = _render(source, pictures, resolution, backend)
                header = source.recording.header
                row["drawn_anew"] = other_motion(header, stage(header, backend)) is not None
            rows.append(row)
            if not as_json:
                _show(row)
    except AnimalcatError as error:
        fail(str(error), UNREACHABLE if error.code == "UNAVAILABLE" else BAD_INPUT)
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    if as_json:
        print_json(rows)
    if bad:
        raise typer.Exit(FAILED)


def _sources(what: str, episode: str, server: str | None, data: Path | None) -> Iterator[Source]:
    """The recordings that are meant, in order of number and attempt."""
    if what.endswith(".mcap"):
        yield Source(what, read_episode(Path(what)))
    elif server:
        session = names.parse_session(what) if "/" in what else what
        with connect(server) as client:
            for number, attempt in _from_server(client, session, episode):
                yield Source(
                    f"{session}/{number}-{attempt}", _streamed(client, session, number, attempt)
                )
    else:
        session = names.parse_session(what) if "/" in what else names.check_component(what)
        folder = data_folder(data) / "recordings" / session
        for path in _from_folder(folder, session, episode):
            yield Source(f"{session}/{path.stem}", read_episode(path))


def _from_folder(folder: Path, session: str, episode: str) -> list[Path]:
    found = {
        (name.number, name.attempt or 0): path
        for path in folder.glob("*.mcap")
        if (name := names.parse_episode(f"sessions/{session}/episodes/{path.stem}"))
    }
    if not found:
        raise RecordingError(
            f"{folder}: no recordings of session {session!r} there; "
            "name the data directory with --data, or a server with --server"
        )
    return [found[key] for key in _wanted(sorted(found), session, episode)]


def _from_server(client: Client, session: str, episode: str) -> list[tuple[int, int]]:
    return _wanted([(e.number, e.attempt) for e in client.episodes(session)], session, episode)


def _wanted(there: list[tuple[int, int]], session: str, episode: str) -> list[tuple[int, int]]:
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


def _streamed(client: Client, session: str, number: int, attempt: int) -> Recording:
    """A recording that a server streams, as the messages that a file of it holds."""
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


def _render(source: Source, folder: Path, resolution: int, backend: str) -> str:
    """Write a picture a step; the pattern of their names."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = Path(source.label).stem
    for number, image in enumerate(camera_images(source.recording, resolution, backend=backend)):
        Image.fromarray(image).save(folder / f"{stem}-{number:04}.png")
    return str(folder / f"{stem}-*.png")


def _summary(source: Source) -> dict[str, Any]:
    header, footer = source.recording.header, source.recording.footer
    return {
        "recording": source.label,
        "name": header.name,
        "attempt": header.attempt,
        "instance": header.instance,
        "agent": header.agent,
        "backend": header.backend,
        "seed": header.seed,
        "complete": source.recording.complete,
        "damage": source.recording.damage,
        "checked": source.recording.checked,
        "outcome": outcome_word(footer.outcome) if footer else "open",
        "return": footer.episode_return if footer else None,
        "steps": max(0, len(source.recording.steps) - 1),
        "ended_by": ended_by_word(footer.ended_by) if footer else "",
    }


def _found(found: Verification) -> dict[str, Any]:
    return {
        "equal": found.difference is None,
        "steps": found.steps,
        "difference": found.difference
        and {
            "step": found.difference.step,
            "field": found.difference.field,
            "recorded": found.difference.recorded,
            "replayed": found.difference.replayed,
        },
        "backend": found.backend,
        "course": found.comparison
        and {
            "metres": found.comparison.metres,
            "ended_by": [end and end.name.lower() for end in found.comparison.ended_by],
            "return": list(found.comparison.episode_return),
            "steps": list(found.comparison.steps),
        },
        "looks": found.looks and {"recorded": found.looks.recorded, "here": found.looks.here},
        "motion": found.motion and {"recorded": found.motion.recorded, "here": found.motion.here},
        "versions": {v.name: {"recorded": v.recorded, "here": v.here} for v in found.versions},
    }


def _show(row: dict[str, Any]) -> None:
    end = "cut short"
    if row["return"] is not None:
        end = f"{row['outcome']}, return {row['return']:.6g}"
    why = f", ended by {row['ended_by'].replace('_', ' ')}" if row["ended_by"] else ""
    typer.echo(
        f"{row['recording']}: {row['agent']} on {row['instance']}: {end}, "
        f"{row['steps']} decisions{why}"
    )
    if row["damage"]:
        typer.echo(f"  damaged: {row['damage']}")
    elif row["complete"] and row["checked"] is False:
        typer.echo("  no check sums over all of the file: recorded by an older version")
    if "verification" in row:
        found = row["verification"]
        if found["backend"] != row["backend"]:
            typer.echo(f"  played again on {found['backend']}; recorded on {row['backend']}")
        if found["motion"] and found["equal"]:
            motion = found["motion"]
            typer.echo(
                f"  not compared: it was played under rules of motion {motion['recorded']}, which "
                f"are {motion['here']} here; what is recorded stands as it was"
            )
        elif found["equal"]:
            typer.echo(f"  verified: all numbers of {found['steps']} steps came out again")
        else:
            first = found["difference"]
            typer.echo(
                f"  differs at step {first['step']}: {first['field']} was {first['recorded']}, "
                f"now {first['replayed']}"
            )
        if found["looks"]:
            looks = found["looks"]
            typer.echo(
                f"  camera images were not compared: they were drawn under looks "
                f"{looks['recorded']}, which are {looks['here']} here"
            )
        if found["course"] and (found["motion"] or not found["equal"]):
            course = found["course"]
            was, now = (str(end or "nothing").replace("_", " ") for end in course["ended_by"])
            typer.echo(
                f"  at most {course['metres']:.3g} m apart; ended by {was} after "
                f"{course['steps'][0]} decisions with return {course['return'][0]:.6g}, now by "
                f"{now} after {course['steps'][1]} with {course['return'][1]:.6g}"
            )
        for name, version in found["versions"].items():
            typer.echo(
                f"  {name} was {version['recorded'] or 'absent'}, "
                f"here it is {version['here'] or 'absent'}"
            )
    if "frames" in row:
        typer.echo(f"  pictures: {row['frames']}")
        if row["drawn_anew"]:
            typer.echo(
                "  these pictures show the actions under today's rules of motion, not what the "
                "agent saw"
            )
