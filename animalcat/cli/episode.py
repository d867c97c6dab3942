"""`animalcat episode`: list recorded episodes, and play them again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from PIL import Image

from animalcat import names
from animalcat.cli.shared.output import BAD_INPUT, FAILED, UNREACHABLE, fail, print_json, print_rows
from animalcat.cli.shared.remote import AsJson, Data, Server, client_for
from animalcat.client import Client, connect
from animalcat.errors import AnimalcatError
from animalcat.service.host.settings import Settings
from animalcat.service.recording import (
    Recording,
    RecordingError,
    Verification,
    frames,
    read_episode,
    verify,
)
from animalcat.v1 import results_pb2, sessions_pb2, types_pb2
from animalcat.words import REASONS, word

app = typer.Typer(help="List and replay recorded episodes.", no_args_is_help=True)


class Source(NamedTuple):
    """A recording and what to call it."""

    label: str
    recording: Recording


@app.command("list")
def list_(
    session: Annotated[
        str, typer.Argument(help="Session, also one of `arena play`; all where left out.")
    ] = "",
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List the episodes of a session in the order they were played, all attempts.

    What a person played has the reason "person".
    """
    with client_for(server, data) as client:
        rows = [_row(episode) for episode in client.episodes(session or None)]
    columns = [
        "session",
        "episode",
        "attempt",
        "instance",
        "outcome",
        "return",
        "steps",
        "ended_by",
        "reason",
    ]
    print_rows(rows, columns, as_json=as_json)


@app.command()
def replay(
    what: Annotated[str, typer.Argument(metavar="FILE.mcap|SESSION", help="What to play again.")],
    episode: Annotated[
        str, typer.Argument(help="NUMBER, or NUMBER-ATTEMPT; all of the session where left out.")
    ] = "",
    check: Annotated[
        bool, typer.Option("--verify", help="Compare every recorded number; 1 if one differs.")
    ] = False,
    pictures: Annotated[
        Path | None, typer.Option("--frames", help="Folder for what the agent saw, as PNG.")
    ] = None,
    resolution: Annotated[
        int, typer.Option(min=4, max=512, help="Side of the pictures in pixels.")
    ] = 84,
    backend: Annotated[
        str,
        typer.Option(help="What plays it again; by default its own, and sim for a Unity build's."),
    ] = "",
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show recorded episodes; verify them or render them by playing them again.

    Exits with 1 where a recording is damaged, or does not come out again under --verify.
    """
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
        folder = (data or Settings().home) / "recordings" / session
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
    return _wanted([(e.episode, e.attempt) for e in client.episodes(session)], session, episode)


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
    header = results_pb2.EpisodeHeader()
    footer: results_pb2.EpisodeFooter | None = None
    steps: list[results_pb2.RecordedStep] = []
    damage = ""
    try:
        for frame in client.stream_episode(session, number, attempt):
            match frame.WhichOneof("frame"):
                case "header":
                    header = frame.header
                case "step":
                    steps.append(frame.step)
                case _:
                    footer = frame.footer
    except AnimalcatError as error:
        if error.code != "RECORDING_DAMAGED" or not header.name:
            raise
        damage = str(error)
    return Recording(header, tuple(steps), footer, damage)


def _render(source: Source, folder: Path, resolution: int, backend: str) -> str:
    """Write a picture a step; the pattern of their names."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = Path(source.label).stem
    for number, image in enumerate(frames(source.recording, resolution, backend=backend)):
        Image.fromarray(image).save(folder / f"{stem}-{number:04}.png")
    return str(folder / f"{stem}-*.png")


def _row(episode: sessions_pb2.EpisodeSummary) -> dict[str, Any]:
    return {
        "session": names.parse_episode(episode.name).session,
        "episode": episode.episode,
        "attempt": episode.attempt,
        "instance": episode.instance,
        "outcome": _outcome(episode.outcome),
        "return": episode.episode_return,
        "steps": episode.steps,
        "ended_by": _ended_by(episode.ended_by),
        "reason": word(episode.decision.reason, REASONS),
        "score": episode.decision.score,
        "propensity": episode.decision.propensity,
        "predicted": episode.decision.predicted,
        "margins": dict(episode.decision.margins),
        "cause": episode.cause,
    }


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
        "outcome": _outcome(footer.outcome) if footer else "open",
        "return": footer.episode_return if footer else None,
        "steps": max(0, len(source.recording.steps) - 1),
        "ended_by": _ended_by(footer.ended_by) if footer else "",
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
        "course": found.course
        and {
            "metres": found.course.metres,
            "ended_by": [end and end.name.lower() for end in found.course.ended_by],
            "return": list(found.course.episode_return),
            "steps": list(found.course.steps),
        },
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
        if found["equal"]:
            typer.echo(f"  verified: all numbers of {found['steps']} steps came out again")
        else:
            first = found["difference"]
            typer.echo(
                f"  differs at step {first['step']}: {first['field']} was {first['recorded']}, "
                f"now {first['replayed']}"
            )
        if found["course"] and not found["equal"]:
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


def _outcome(value: types_pb2.Outcome.ValueType) -> str:
    return types_pb2.Outcome.Name(value).removeprefix("OUTCOME_").lower() if value else "open"


def _ended_by(value: types_pb2.EndedBy.ValueType) -> str:
    return types_pb2.EndedBy.Name(value).removeprefix("ENDED_BY_").lower() if value else ""
