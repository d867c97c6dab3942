"""`animalcat demo`: the main job, end to end, with an agent whose limit is known."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import typer
from rich.progress import track

from animalcat.cli.session.commands import run_agent
from animalcat.cli.shared.batteries import find_battery
from animalcat.cli.shared.common import common, keep_common, without
from animalcat.cli.shared.output import FAILED, console, fail, progress_console, say, status
from animalcat.cli.shared.remote import client_for, data_folder, place, session_row
from animalcat.cli.shared.tables import print_profile, print_verdict
from animalcat.client.blocking_client import Client
from animalcat.envs.agents.limits.reference import is_privileged
from animalcat.envs.types import ObservationSpec
from animalcat.layouts.explaining.wording import percent
from animalcat.machine.files import write_whole
from animalcat.text.counts import count_of
from animalcat.values import Episode, Session

if TYPE_CHECKING:
    from animalcat.maps.moving import Frame

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
EXPLAINED: Final = 4
"""How many of the most surprising episodes are explained, to find the most informative one."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """An agent with a limit that is known, and what is to find it.

    Attributes:
        agent: Reference of the agent.
        about: What the agent is and what it cannot do, in sentences.
        battery: Name of the battery.
        layout: Name of the layout.
        variant: Its variant.
        episodes: Most episodes.
        target_sd: When a capability is known well enough, as a share of its range.
        node: The capability that the limit limits.
        planted: Its limit, in the capability's unit.
        unit: That unit.
        typical: How often the limit is found, as `python -m benchmarks demo` counted.
    """

    agent: str
    about: str
    battery: str
    layout: str
    variant: str
    episodes: int
    target_sd: float
    node: str
    planted: float
    unit: str
    typical: str


WALKS: Final = Demonstration(
    "builtin:scout+path=15",
    "It explores by its rays, and stands still after 15 m in every episode.",
    "navigation",
    "aaio",
    "by-way",
    40,
    0.035,
    "navigationAbility",
    15.0,
    "m",
    "Of 50 sessions with other seeds, 50 contained it, and 50 verdicts named this limit.",
)
FORGETS: Final = Demonstration(
    "builtin:planner+memory=8+no-search",
    "It is told where things are, and forgets a goal that has been hidden for 8 s.",
    "object-permanence-separable",
    "object-permanence",
    "by-way",
    60,
    0.08,
    "memoryAbility",
    8.0,
    "s",
    "Of 50 sessions with other seeds, 47 contained it, and 36 verdicts named this limit.",
)


class Shown(NamedTuple):
    """An episode that is shown.

    Attributes:
        episode: The episode.
        why: Why it ended as it did, by the schema "episode_explain".
    """

    episode: Episode
    why: Mapping[str, Any]

    @property
    def taught(self) -> float:
        """How many times more likely its outcome is by what is known now than it was before."""
        before, now = self.episode.decision.predicted, self.why["expected"]
        if self.episode.outcome == "failure":
            before, now = 1.0 - before, 1.0 - now
        return now / max(before, 1e-9)

    @property
    def words(self) -> str:
        """What happened, what was expected, and what most likely decided it."""
        sentences = [
            sentence for sentence in self.why["sentences"] if sentence != self.why["happened"]
        ]
        before, now = self.episode.decision.predicted, self.why["expected"]
        expected = (
            f"Beforehand the layout gave it a chance of {percent(before)}; now that the session "
            f"is over, {percent(now)}."
        )
        return " ".join([self.why["happened"], expected, *sentences[1:2]]).strip()


@without("--server", "--json")
def command(
    max_episodes: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, help="End after so many episodes.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", min=0, help="The seed of everything that is left to chance."
        ),
    ] = 1,
    hidden: Annotated[
        bool,
        typer.Option(
            "--hidden", help="Measure an agent that forgets what is hidden; takes minutes."
        ),
    ] = False,
) -> None:
    """Measure an agent whose limit is known, and see whether it is found.

    A server is started and the agent connected. Its episodes are played again, its profile is
    written to files, with a report as a page, and the most informative failure becomes a video and
    a picture. What was planted and what was found are printed last, with what to try next.
    """
    demo = FORGETS if hidden else WALKS
    keep_common(replace(common(), data=common().data or Path("animalcat-demo")))
    with client_for() as client:
        say(f"server {client.address}, data in {data_folder()}/")
        _say(f"The agent is {demo.agent}. {demo.about} The session does not know that.")
        battery = find_battery(client, demo.battery, None, where=place())
        session = client.create_session(
            agent=demo.agent,
            battery=battery,
            layout=demo.layout,
            layout_variant=demo.variant,
            max_episodes=max_episodes or demo.episodes,
            target_sd=demo.target_sd,
            seed=seed,
            secret=SECRET,
            certify=False,  # the last fit is soon enough in a session so short
            observation_spec=agent_observation(demo.agent),
        )
        row = session_row(run_agent(client, session, demo.agent))
        profile = client.profile(session)
        home = data_folder() / "profiles" / str(row["session"])
        home.mkdir(parents=True, exist_ok=True)
        with status("drawing the report"):
            files = {name: client.export_profile(session, form) for name, form in FILES.items()}
        with status("looking for the most informative failure"):
            shown = _most_telling_failure(client, session)
    print_profile(
        profile,
        f"{demo.agent}: {row['successes']} of {row['episodes']} episodes passed; {row['reason']}",
        verdict=False,
    )
    recordings = data_folder() / "recordings" / session.id
    _replay(recordings)
    if shown:
        files["profile.html"] = _show(shown, recordings, home, files["profile.html"])
    for name, content in files.items():
        write_whole(home / name, content)
    print_verdict(profile)
    _compare(demo, profile)
    _what_next(demo, home)


DEMOS: Final = (WALKS, FORGETS)
"""All that there are; `python -m benchmarks demo` says how typical they are."""


def agent_observation(agent: str) -> ObservationSpec:
    """What an agent is shown: the true state if it has to be told it, else what is usual."""
    return replace(ObservationSpec(), privileged=is_privileged(agent))


def _say(sentences: str) -> None:
    console().print(sentences, highlight=False)


def _most_telling_failure(client: Client, session: Session) -> Shown | None:
    """The failure that what is known by now expects most where before it was not expected.

    That is what it taught, together with all that was played later. Of an agent that failed
    nowhere, it is the success that surprised most.
    """
    counted = [
        episode for episode in client.episodes(session) if episode.outcome in ("success", "failure")
    ]
    failed = [episode for episode in counted if episode.outcome == "failure"]

    def surprise(episode: Episode) -> float:
        predicted = episode.decision.predicted
        return predicted if episode.outcome == "failure" else 1.0 - predicted

    some = sorted(failed or counted, key=surprise, reverse=True)[:EXPLAINED]
    explained = [
        Shown(episode, client.explain_episode(session, episode.number)) for episode in some
    ]
    return max(explained, key=lambda failure: failure.taught, default=None)


def _show(shown: Shown, recordings: Path, home: Path, page: bytes) -> bytes:
    """Tell of an episode, film it, and return the report with its picture."""
    from animalcat.service.reporting.telling import with_episode

    episode = shown.episode
    heading = f"The most informative {episode.outcome}: episode {episode.number}"
    console().print(f"\n{heading}", style="bold")
    _say(shown.words)
    video, picture = _video(recordings / f"{episode.number}-{episode.attempt}.mcap", home)
    say(f"video     {video}")
    say(f"picture   {picture}")
    return with_episode(page.decode(), heading, shown.words, picture.read_bytes()).encode()


def _video(recording: Path, home: Path) -> tuple[Path, Path]:
    """A short film of an episode, MP4 where the extra `video` is there, else GIF; and its end."""
    from PIL import Image

    from animalcat.service.recording.film import film
    from animalcat.service.recording.reader import read_episode
    from animalcat.service.recording.video import write_video

    read = read_episode(recording)
    path = home / ("episode.mp4" if find_spec("av") else "episode.gif")
    last: list[Frame] = []

    def frames() -> Iterator[Frame]:
        for frame in film(read):
            last[:] = [frame]
            yield frame

    with status("drawing the video"):
        write_video(path, frames(), max(RATE, len(read.steps) / MOST_SECONDS))
    picture = home / "episode.png"
    Image.fromarray(last[0]).save(picture, optimize=True)
    return path, picture


def _replay(recordings: Path) -> None:
    """Play every recorded episode again and compare every number."""
    from animalcat.service.recording.reader import read_episode
    from animalcat.service.recording.verify import verify

    paths = sorted(recordings.glob("*.mcap"))
    differing: list[str] = []
    steps = 0
    for path in track(paths, "replaying", console=progress_console(), transient=True):
        recording = read_episode(path)
        verification = verify(recording)
        steps += verification.steps
        if recording.damage:
            differing.append(f"{path.name}: {recording.damage}")
        if verification.difference is not None:
            differing.append(f"{path.name} from step {verification.difference.step}")
    if differing:
        fail(f"these episodes came out differently: {', '.join(differing)}", FAILED)
    say(f"replayed  {count_of(len(paths), 'episode')}, {steps} steps: every number was reproduced")


def _compare(demo: Demonstration, profile: Mapping[str, Any]) -> None:
    """Say what was planted and what was found."""
    node = profile["nodes"][demo.node]
    low, high = node["hdi"]
    interval = f"{node['mean']:.1f} {demo.unit} ({low:.1f} to {high:.1f})"
    contains = "contains" if low <= demo.planted <= high else "does not contain"
    console().print("\nPlanted and found", style="bold")
    _say(
        f"planted {demo.planted:g} {demo.unit}, found {interval}: the 90 % interval {contains} "
        f"the true value. {demo.typical}"
    )


def _what_next(demo: Demonstration, home: Path) -> None:
    """Say three commands to try."""
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    console().print("\nWhat to try next", style="bold")
    say("the report, with that picture:")
    say(f"  {opener} {shlex.quote(str(home / 'profile.html'))}")
    say("your own agent (docs/agents.md says what it must do):")
    say(f"  animalcat session run --agent my_agent.py:MyAgent --battery {demo.battery}")
    say("your own arenas (docs/arenas.md says what is in a file):")
    say("  animalcat battery import my_arenas/")
