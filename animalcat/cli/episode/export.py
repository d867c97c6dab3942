"""`animalcat episode export`: recorded episodes as datasets, and for viewers."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from animalcat import names
from animalcat.cli.episode.sources import Source, sources_of
from animalcat.cli.shared.output import (
    BAD_INPUT,
    FAILED,
    MISSING,
    UNREACHABLE,
    complain,
    fail,
    print_json,
    status,
)
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.remote import client_for
from animalcat.errors import AnimalcatError
from animalcat.files import write_whole
from animalcat.service.recording import RecordingError
from animalcat.service.recording.minari_data import minari_folder, save_minari


def export_minari(
    what: str,
    episode: str,
    name: str,
    output: Path | None,
    *,
    server: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Write recordings as a Minari dataset; the parameters are the command's options."""
    dataset = name or f"animalcat/{names.to_component(Path(what).stem)}-v0"
    with _explained(), status("reading recordings") as say:
        sources = list(sources_of(what, episode, server, data))
        for source in sources:
            if source.recording.damage:
                raise RecordingError(f"{source.label} is damaged: {source.recording.damage}")
        say("writing the dataset")
        folder = output or minari_folder()
        path = save_minari([source.recording for source in sources], dataset, folder)
    row = {"dataset": dataset, "episodes": len(sources), "folder": str(path)}
    if as_json:
        print_json(row)
    else:
        typer.echo(f"{dataset}: {len(sources)} episodes -> {path}")


def export_for_viewer(
    form: str,
    what: str,
    episode: str,
    output: Path | None,
    resolution: int,
    backend: str,
    *,
    server: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Write each recording as a file for a viewer; the parameters are the command's options.

    What is right of a damaged recording is written and labelled; the exit code is then 1.
    """
    module: Any = import_module(f"animalcat.service.recording.{form}_file")
    write, suffix = getattr(module, f"{form}_bytes"), module.SUFFIX
    rows: list[dict[str, Any]] = []
    with _explained():
        with status("reading recordings"):
            sources = list(sources_of(what, episode, server, data))
        ending = Path(f"x{suffix}").suffix
        alone = output is not None and output.suffix == ending
        if alone and len(sources) > 1:
            fail(
                f"{output}: {len(sources)} episodes are meant, and a file holds one. Name a folder "
                f"with --output, or one episode, as in `episode export {what} 0`"
            )
        nodes = None if what.endswith(".mcap") else _nodes(what, server, data)
        with progress("exporting") as tell:
            for number, source in enumerate(sources):
                tell(f"exporting {source.label}", number, len(sources))
                folder = output or Path()
                path = folder if alone else folder / f"{_stem(source)}{suffix}"
                try:
                    content = write(source.recording, resolution, backend, nodes)
                except ValueError as error:
                    raise ValueError(f"{source.label}: {error}") from error
                write_whole(path, content)
                rows.append(
                    {
                        "recording": source.label,
                        "file": str(path),
                        "format": form,
                        "steps": max(0, len(source.recording.steps) - 1),
                        "bytes": len(content),
                        "posterior": nodes is not None,
                        "damage": source.recording.damage,
                    }
                )
    if as_json:
        print_json(rows)
    for row in rows:
        if not as_json:
            typer.echo(f"{row['recording']}: {row['steps']} decisions -> {row['file']}")
        if row["damage"]:
            complain(f"{row['recording']} is damaged: {row['damage']}")
    if any(row["damage"] for row in rows):
        raise typer.Exit(FAILED)


@contextmanager
def _explained() -> Generator[None]:
    """End the command with a sentence where something goes wrong that a user can mend."""
    try:
        yield
    except ImportError as error:
        fail(str(error), MISSING)
    except AnimalcatError as error:
        fail(str(error), UNREACHABLE if error.code == "UNAVAILABLE" else BAD_INPUT)
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _nodes(what: str, server: str | None, data: Path | None) -> Mapping[str, Any] | None:
    """The nodes of the session's profile; None where no session is kept, as of a person's."""
    session = names.parse_session(what) if "/" in what else what
    with client_for(server, data) as client:
        try:
            return client.profile(session)["nodes"]
        except AnimalcatError as error:
            if error.code != "UNKNOWN_SESSION":
                raise
            return None


def _stem(source: Source) -> str:
    """What to call a recording's file: the session with number and attempt, or the file's name."""
    label = source.label
    return Path(label).stem if label.endswith(".mcap") else label.replace("/", "-")
