"""`animalcat demo`: the main job, end to end, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.progress import track

from animalcat.cli.session.commands import run_agent
from animalcat.cli.shared.output import FAILED, fail, progress_console
from animalcat.cli.shared.remote import client_for, session_row
from animalcat.cli.shared.tables import print_profile
from animalcat.service.recording import read_episode, verify

AGENT: Final = "builtin:braitenberg"


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

    A server is started and an agent connected. Its profile is written to a file, and its episodes
    are played again.
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
        )
        row = session_row(run_agent(client, session, AGENT))
        profile = client.profile(session)
        home = data / "profiles" / str(row["session"])
        home.mkdir(parents=True, exist_ok=True)
        (home / "profile.json").write_bytes(client.export_profile(session, "json"))
        (home / "profile.html").write_bytes(client.export_profile(session, "html"))
        (home / "outcomes.csv").write_bytes(client.export_profile(session, "csv"))
    print_profile(
        profile,
        f"{AGENT}: {row['successes']} of {row['episodes']} episodes passed; {row['reason']}",
    )
    recordings = data / "recordings" / session.id
    _replay(recordings)
    typer.echo(f"profile   {home / 'profile.json'}")
    typer.echo(f"page      {home / 'profile.html'}")
    typer.echo(f"outcomes  {home / 'outcomes.csv'}")
    typer.echo(f"episodes  {recordings}/")


def _replay(recordings: Path) -> None:
    """Play every recorded episode again and compare every number."""
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
