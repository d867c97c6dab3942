"""`animalcat demo`: the main job, end to end, on this machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from rich.progress import track

from animalcat.cli.session.commands import run_agent
from animalcat.cli.shared.output import FAILED, fail, progress_console, status
from animalcat.cli.shared.remote import client_for, session_row
from animalcat.cli.shared.tables import print_profile, print_verdict
from animalcat.files import write_whole
from animalcat.values import Episode

AGENT: Final = "builtin:braitenberg"
SECRET: Final = "demo"
"""So that the demo is the same everywhere; from our own agent there is nothing to keep."""
FILES: Final[Mapping[str, Literal["json", "html", "csv"]]] = {
    "profile.json": "json",
    "profile.html": "html",
    "outcomes.csv": "csv",
}
RATE: Final = 10.0
"""Steps a second of the video, unless it would be too long."""
MOST_SECONDS: Final = 30.0
"""Longest video."""


def command(
    data: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Everything is written to this folder.")
    ] = Path("animalcat-demo"),
    max_episodes: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="End after so many episodes.")
    ] = 40,
    seed: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", min=0, help="The seed of everything that is left to chance."
        ),
    ] = 0,
) -> None:
    """Measure a simple agent from start to end: the quickest way to see what animalcat does.

    A server is started and an agent connected. Its episodes are played again, its profile is
    written to files, with a report as a page, and the episode that tells most becomes a video. The
    verdict on the agent is printed last, and how to open the report and the video.
    """
    with client_for(None, data) as client:
        typer.echo(f"server {client.address}, data in {data}/")
        session = client.create_session(
            agent=AGENT,
            battery="navigation",
            layout="aaio",
            max_episodes=max_episodes,
            target_sd=0.1,
            futility=0.01,
            seed=seed,
            secret=SECRET,
        )
        row = session_row(run_agent(client, session, AGENT))
        profile = client.profile(session)
        home = data / "profiles" / str(row["session"])
        home.mkdir(parents=True, exist_ok=True)
        with status("drawing the report"):
            for name, form in FILES.items():
                write_whole(home / name, client.export_profile(session, form))
        shown = _worth_seeing(client.episodes(session))
    print_profile(
        profile,
        f"{AGENT}: {row['successes']} of {row['episodes']} episodes passed; {row['reason']}",
        verdict=False,
    )
    recordings = data / "recordings" / session.id
    _replay(recordings)
    typer.echo(f"profile   {home / 'profile.json'}")
    typer.echo(f"outcomes  {home / 'outcomes.csv'}")
    typer.echo(f"episodes  {recordings}/")
    video = shown and _video(recordings / f"{shown.number}-{shown.attempt}.mcap", home)
    print_verdict(profile)
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    typer.echo("\nOpen these in a browser, or with the commands:")
    typer.echo(f"  report  {opener} {shlex.quote(str(home / 'profile.html'))}")
    if shown and video:
        typer.echo(f"  video   {opener} {shlex.quote(str(video))}  (episode {shown.number})")


def _worth_seeing(episodes: Sequence[Episode]) -> Episode | None:
    """The episode whose outcome surprised most, a failure if there is one; None if none counts."""
    counted = [one for one in episodes if one.outcome in ("success", "failure")]
    failed = [one for one in counted if one.outcome == "failure"]

    def surprise(one: Episode) -> float:
        predicted = one.decision.predicted
        return predicted if one.outcome == "failure" else 1.0 - predicted

    return max(failed or counted, key=surprise, default=None)


def _video(recording: Path, home: Path) -> Path:
    """A short film of an episode: MP4 where the extra `video` is there, else GIF."""
    from animalcat.service.recording import read_episode
    from animalcat.service.recording.film import film
    from animalcat.service.recording.video import write_video

    read = read_episode(recording)
    path = home / ("episode.mp4" if find_spec("av") else "episode.gif")
    count = len(read.steps)
    with status("drawing the video"):
        write_video(path, film(read), max(RATE, count / MOST_SECONDS))
    return path


def _replay(recordings: Path) -> None:
    """Play every recorded episode again and compare every number."""
    from animalcat.service.recording import read_episode, verify

    paths = sorted(recordings.glob("*.mcap"))
    differing: list[str] = []
    steps = 0
    for path in track(paths, "replaying", console=progress_console(), transient=True):
        recording = read_episode(path)
        found = verify(recording)
        steps += found.steps
        if recording.damage:
            differing.append(f"{path.name}: {recording.damage}")
        if found.difference is not None:
            differing.append(f"{path.name} from step {found.difference.step}")
    if differing:
        fail(f"these episodes came out differently: {', '.join(differing)}", FAILED)
    typer.echo(f"replayed  {len(paths)} episodes, {steps} steps: every number came out again")
