"""Episodes of a result: what happened in them, why, and what it looked like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self, overload

from animalcat.errors import AnimalcatError
from animalcat.machine.files import write_whole
from animalcat.text.showing import line_html, stacked_html, table_html, table_text
from animalcat.values import Episode, RecordedStep

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from animalcat.client import Client
    from animalcat.service.recording.reader import Recording
    from animalcat.service.recording.verify import Verification


class Explanation(dict[str, Any]):
    """Why an episode ended as it did, by the schema `episode_explain`; it shows its sentences."""

    @property
    def text(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self["sentences"])

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return line_html(self.text)


class Video:
    """A film of an episode: it plays at the end of a notebook's cell.

    Attributes:
        content: The file's bytes.
        form: "mp4" or "gif".
    """

    def __init__(self, content: bytes, form: str) -> None:
        self.content, self.form = content, form

    def save(self, path: str | Path) -> Path:
        """Write it to a file.

        Raises:
            AnimalcatError: The ending is another form's.
        """
        target = Path(path)
        if target.suffix != f".{self.form}":
            raise AnimalcatError(
                f"{target}: this video is a .{self.form}; video('{target.name}') writes another "
                "form where its ending is .mp4 or .gif"
            )
        write_whole(target, self.content)
        return target

    def __repr__(self) -> str:
        return f"<Video: {self.form}, {len(self.content) / 1024:.0f} KiB>"

    def _repr_html_(self) -> str:
        import base64

        data = base64.b64encode(self.content).decode()
        if self.form == "gif":
            return f'<img alt="The episode" src="data:image/gif;base64,{data}">'
        source = f"data:video/mp4;base64,{data}"
        return f'<video controls loop style="max-width:100%" src="{source}"></video>'


@dataclass(frozen=True)
class LabEpisode(Episode):
    """One attempt at an episode, which can be explained, replayed, drawn and filmed.

    At the end of a notebook's cell it shows the agent's path on the map.

    Attributes:
        lab: Where it is kept.
    """

    lab: Client = field(kw_only=True, repr=False, compare=False)

    @classmethod
    def of(cls, episode: Episode, lab: Client) -> Self:
        """An episode, with where it is kept."""
        known = {each.name: getattr(episode, each.name) for each in fields(Episode)}
        return cls(**known, lab=lab)

    def explain(self) -> Explanation:
        """Why it ended as it did, by what is known of the agent now."""
        return Explanation(self.lab.explain_episode(self.session, self.number, self.attempt))

    def recording(self) -> Recording:
        """What was recorded of it."""
        from animalcat.lab.recordings import received_recording

        return received_recording(self.lab, self.session, self.number, self.attempt)

    def replay(self) -> Verification:
        """Play it again from its recording, and compare every number."""
        from animalcat.service.recording.verify import verify

        return verify(self.recording())

    def frames(self, resolution: int = 84) -> npt.NDArray[np.uint8]:
        """What the agent's camera sees, drawn anew from the recording.

        Args:
            resolution: Side of the images in pixels, 4 to 512.

        Returns:
            Pictures, uint8 (observations, resolution, resolution, 3).
        """
        import numpy as np

        from animalcat.service.recording.verify import camera_images

        return np.stack(list(camera_images(self.recording(), resolution)))

    def to_frame(self) -> pd.DataFrame:
        """What was recorded of it, one row an observation, the first one before any decision.

        Returns:
            By step: `action` (3 x move + turn; missing in step 0), `reward` since the step before,
            the agent's position `x`, `y`, `z` in metres, its velocity in its own frame `right`,
            `up` and `ahead` in m/s, and its `health` of 0 to 100.
        """
        import pandas as pd

        rows = [
            {
                "action": part.action,
                "reward": part.reward,
                **dict(zip(("x", "y", "z"), map(float, part.observation.position), strict=True)),
                **dict(
                    zip(
                        ("right", "up", "ahead"),
                        map(float, part.observation.velocity),
                        strict=True,
                    )
                ),
                "health": part.observation.health,
            }
            for part in self.lab.stream_episode(self.session, self.number, self.attempt)
            if isinstance(part, RecordedStep)
        ]
        frame = pd.DataFrame(rows).rename_axis("step")
        return frame.astype({"action": "Int64"})

    def video(self, path: str | Path | None = None, *, speed: float = 0.5) -> Video:
        """A film of it: what its camera sees beside the map with its path.

        Args:
            path: Where to write it too, .mp4 (with the extra `video`) or .gif. None: nowhere, and
                then it is MP4 where that can be written.
            speed: How fast it plays, beside the agent's own time.
        """
        from importlib.util import find_spec

        from animalcat.envs.types import PHYSICS_STEP
        from animalcat.service.recording.film import film
        from animalcat.service.recording.video import write_video
        from animalcat.wire.steps import spec_from_proto

        recording = self.recording()
        if not recording.steps:
            raise AnimalcatError(f"episode {self.number}: no step is recorded")
        period = spec_from_proto(recording.header.observation_spec).decision_period
        form = Path(path).suffix if path is not None else ".mp4" if find_spec("av") else ".gif"
        with TemporaryDirectory() as folder:
            target = Path(folder) / f"episode{form}" if path is None else Path(path)
            write_video(target, film(recording), speed / (PHYSICS_STEP * period))
            return Video(target.read_bytes(), target.suffix[1:])

    def __repr__(self) -> str:
        return f"<Episode {self.number} on {self.instance!r}: {self._words}>"

    @property
    def _words(self) -> str:
        if self.outcome is None:
            return "being played"
        cause = f" ({self.cause})" if self.cause else ""
        return f"{self.outcome}{cause}, return {self.episode_return:.3g} in {self.steps} decisions"

    def _repr_html_(self) -> str:
        from animalcat.lab.path import path_on_map

        title = f"Episode {self.number} on {self.instance}: {self._words}"
        try:
            drawn = path_on_map(self.recording())
        except AnimalcatError as error:  # an attempt without a recording
            return line_html(f"{title}; {error}")
        return stacked_html(line_html(title), drawn)


class Episodes(Sequence[LabEpisode]):
    """The attempts at a session's episodes, in the order of play.

    `episodes[3]` is the attempt at episode 3 that counts, or else the last one.
    """

    def __init__(self, attempts: Sequence[LabEpisode]) -> None:
        self._attempts = attempts

    @overload
    def __getitem__(self, number: int) -> LabEpisode: ...
    @overload
    def __getitem__(self, number: slice) -> Episodes: ...
    def __getitem__(self, number: int | slice) -> LabEpisode | Episodes:
        """The attempt at the episode of a number that counts; of negative ones from the end."""
        numbers = sorted({attempt.number for attempt in self._attempts})
        if isinstance(number, slice):
            kept = set(numbers[number])
            return Episodes([each for each in self._attempts if each.number in kept])
        if not isinstance(number, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"episodes are found by their number, such as 3; this is {number!r}")
        wanted = number if number >= 0 or not numbers else numbers[-1] + 1 + number
        tries = [attempt for attempt in self._attempts if attempt.number == wanted]
        if not tries:
            there = f"0 to {numbers[-1]}" if numbers else "none"
            raise IndexError(f"there is no episode {number}; there are: {there}")
        return next((each for each in tries if each.settled), tries[-1])

    def __iter__(self) -> Iterator[LabEpisode]:
        return iter(self._attempts)

    def __len__(self) -> int:
        return len(self._attempts)

    def to_frame(self) -> pd.DataFrame:
        """The attempts, one row each; `result.outcomes` has the demands too."""
        import pandas as pd

        columns = ["episode", "attempt", *_COLUMNS]
        return pd.DataFrame([_row(each) for each in self], columns=columns).set_index("episode")

    def __repr__(self) -> str:
        return table_text(("episode", *_COLUMNS), [tuple(_row_of(each).values()) for each in self])

    def _repr_html_(self) -> str:
        rows = [tuple(_row_of(each).values()) for each in self]
        return table_html(("episode", *_COLUMNS), rows, "Episodes")


_COLUMNS = ("instance", "outcome", "return", "steps", "chosen", "predicted", "cause")


def _row(episode: Episode) -> Mapping[str, Any]:
    return {
        "episode": episode.number,
        "attempt": episode.attempt,
        "instance": episode.instance,
        "outcome": str(episode.outcome or "open"),
        "return": episode.episode_return,
        "steps": episode.steps,
        "chosen": str(episode.decision.reason or ""),
        "predicted": episode.decision.predicted,
        "cause": episode.cause,
    }


def _row_of(episode: Episode) -> dict[str, Any]:
    row = dict(_row(episode))
    del row["attempt"]
    return row
