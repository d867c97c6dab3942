"""`animalcat episode replay`: shows recordings, and plays them again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import typer
from PIL import Image

from animalcat.cli.episode.sources import Source, sources_of
from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import (
    BAD_INPUT,
    FAILED,
    MISSING,
    UNREACHABLE,
    fail,
    print_json,
    say,
)
from animalcat.cli.shared.progress import progress
from animalcat.envs.types import PHYSICS_STEP
from animalcat.errors import AnimalcatError
from animalcat.machine.marks import mark
from animalcat.service.recording.reader import RecordingError
from animalcat.service.recording.verify import (
    Verification,
    camera_images,
    other_motion,
    stage,
    verify,
)
from animalcat.service.recording.video import check_video, write_video
from animalcat.v1 import types_pb2
from animalcat.wire.codec import word
from animalcat.wire.steps import spec_from_proto

PIXELS: Final = 84
"""Side of pictures in pixels where none is asked for."""
PAGE_PIXELS: Final = 256
"""The same on the page, as large as that of `arena play`."""


class Page(NamedTuple):
    """Where an episode is shown: the port, 0 for any free one, and whether to open a browser."""

    port: int
    browser: bool


def play_again(
    what: str,
    episode: str,
    *,
    check: bool,
    pictures: Path | None,
    video: Path | None,
    speed: float,
    page: Page | None,
    resolution: int | None,
    backend: str,
) -> None:
    """Show recordings, and verify or render them; the parameters are the command's options."""
    rows: list[dict[str, Any]] = []
    bad = False
    recordings = sources_of(what, episode)
    side = resolution or PIXELS
    try:
        if video is not None:
            check_video(video)
        if video is not None or page is not None:
            recordings = iter(first := list(islice(recordings, 2)))
            if len(first) > 1:
                shown = "a video" if page is None else "the page"
                fail(f"{shown} shows one episode: say which, as in `episode replay {what} 0`")
        for source in recordings:
            row = _summary(source)
            bad |= bool(source.recording.damage)
            if check:
                verification = verify(source.recording, backend=backend)
                bad |= verification.difference is not None
                row["verification"] = _findings(verification)
            if pictures is not None:
                row["frames"] = _render(source, pictures, side, backend)
            if video is not None:
                row["video"] = _film(source, video, side, speed, backend)
            if pictures is not None or video is not None:
                header = source.recording.header
                row["drawn_anew"] = other_motion(header, stage(header, backend)) is not None
            rows.append(row)
            if not common().as_json:
                _show(row)
            if page is not None:
                _watch(source, page, resolution or PAGE_PIXELS, backend)
    except ImportError as error:
        fail(str(error), MISSING)
    except AnimalcatError as error:
        fail(str(error), UNREACHABLE if error.code == "UNAVAILABLE" else BAD_INPUT)
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    if common().as_json:
        print_json(rows)
    if bad:
        raise typer.Exit(FAILED)


def _render(source: Source, folder: Path, resolution: int, backend: str) -> str:
    """Write a picture a step; the pattern of their names."""
    folder.mkdir(parents=True, exist_ok=True)
    mark(folder)
    stem = Path(source.label).stem
    for number, image in enumerate(camera_images(source.recording, resolution, backend=backend)):
        Image.fromarray(image).save(folder / f"{stem}-{number:04}.png")
    return str(folder / f"{stem}-*.png")


def _film(source: Source, path: Path, resolution: int, speed: float, backend: str) -> str:
    """Write a video at the pace of the episode; its path."""
    from animalcat.service.recording.film import film

    steps = len(source.recording.steps)
    if not steps:
        raise RecordingError(f"{source.label}: no step is recorded, so there is nothing to draw")
    period = spec_from_proto(source.recording.header.observation_spec).decision_period
    rate = speed / (PHYSICS_STEP * period)
    with progress("drawing") as tell:

        def film_with_progress() -> Iterator[npt.NDArray[np.uint8]]:
            for number, picture in enumerate(film(source.recording, resolution, backend), 1):
                tell(f"drawing {source.label}", number, steps)
                yield picture

        write_video(path, film_with_progress(), rate)
    return str(path)


def _watch(source: Source, page: Page, resolution: int, backend: str) -> None:
    """Show an episode on a page until the person presses Ctrl-C."""
    from animalcat.cli.shared.page import serve_page
    from animalcat.service.web.filming import film_alone
    from animalcat.service.web.replaying import Replayed

    # What cannot be played is said before the page is opened.
    show = Replayed(source.recording, source.label, resolution, backend)
    serve_page(film_alone(lambda: show, source.label), "watch", page.port, page.browser)


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
        "outcome": (word(types_pb2.Outcome, footer.outcome) if footer else "") or "open",
        "return": footer.episode_return if footer else None,
        "steps": max(0, len(source.recording.steps) - 1),
        "ended_by": word(types_pb2.EndedBy, footer.ended_by) if footer else "",
    }


def _findings(verification: Verification) -> dict[str, Any]:
    return {
        "equal": verification.difference is None,
        "steps": verification.steps,
        "difference": verification.difference
        and {
            "step": verification.difference.step,
            "field": verification.difference.field,
            "recorded": verification.difference.recorded,
            "replayed": verification.difference.replayed,
        },
        "backend": verification.backend,
        "course": verification.comparison
        and {
            "metres": verification.comparison.metres,
            "ended_by": [end and end.name.lower() for end in verification.comparison.ended_by],
            "return": list(verification.comparison.episode_return),
            "steps": list(verification.comparison.steps),
        },
        "looks": verification.looks
        and {"recorded": verification.looks.recorded, "here": verification.looks.here},
        "motion": verification.motion
        and {"recorded": verification.motion.recorded, "here": verification.motion.here},
        "versions": {
            v.name: {"recorded": v.recorded, "here": v.here} for v in verification.versions
        },
    }


def _show(row: dict[str, Any]) -> None:
    end = "cut short"
    if row["return"] is not None:
        end = f"{row['outcome']}, return {row['return']:.6g}"
    why = f", ended by {row['ended_by'].replace('_', ' ')}" if row["ended_by"] else ""
    say(
        f"{row['recording']}: {row['agent']} on {row['instance']}: {end}, "
        f"{row['steps']} decisions{why}"
    )
    if row["damage"]:
        say(f"  damaged: {row['damage']}")
    if "verification" in row:
        verification = row["verification"]
        if verification["backend"] != row["backend"]:
            say(f"  played again on {verification['backend']}; recorded on {row['backend']}")
        if verification["motion"] and verification["equal"]:
            motion = verification["motion"]
            say(
                f"  not compared: it was played under rules of motion {motion['recorded']}, which "
                f"are {motion['here']} here; the recording itself is unchanged"
            )
        elif verification["equal"]:
            say(f"  verified: all numbers of {verification['steps']} steps were reproduced")
        else:
            first = verification["difference"]
            say(
                f"  differs at step {first['step']}: {first['field']} was {first['recorded']}, "
                f"now {first['replayed']}"
            )
        if verification["looks"]:
            looks = verification["looks"]
            say(
                f"  camera images were not compared: they were drawn under looks "
                f"{looks['recorded']}, which are {looks['here']} here"
            )
        if verification["course"] and (verification["motion"] or not verification["equal"]):
            course = verification["course"]
            was, now = (str(end or "nothing").replace("_", " ") for end in course["ended_by"])
            say(
                f"  at most {course['metres']:.3g} m apart; ended by {was} after "
                f"{course['steps'][0]} decisions with return {course['return'][0]:.6g}, now by "
                f"{now} after {course['steps'][1]} with {course['return'][1]:.6g}"
            )
        for name, version in verification["versions"].items():
            say(
                f"  {name} was {version['recorded'] or 'absent'}, "
                f"here it is {version['here'] or 'absent'}"
            )
    for what in ("frames", "video"):
        if what in row:
            say(f"  {'pictures' if what == 'frames' else what}: {row[what]}")
    if row.get("drawn_anew"):
        say(
            "  these pictures show the actions under today's rules of motion, not what the "
            "agent saw"
        )
