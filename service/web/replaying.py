"""Shows a recorded episode on the page, with a time line: it is drawn ahead of what is watched."""

from __future__ import annotations

import threading
import zlib
from typing import Any, Final, NamedTuple

import numpy as np

from animalcat.envs.types import PHYSICS_STEP
from animalcat.maps.moving import PANEL, Map
from animalcat.service.recording.about import (
    NOTABLE,
    action_words,
    colour_of,
    labels,
    outcome_words,
    who,
    words_of_demands,
)
from animalcat.service.recording.reader import Recording, RecordingError
from animalcat.service.recording.verify import other_motion, replay_with_camera, stage
from animalcat.service.web.stage import Shown
from animalcat.wire.steps import ended_by_from_proto, spec_from_proto

_MARKS: Final = 200
"""Most rewards that are marked on the time line."""
_WORDS: Final = 300
"""Most letters of a remark that are shown."""


class _Picture(NamedTuple):
    """What the agent saw and the map, compressed; at 84 pixels a step takes 10 kB."""

    camera: bytes
    plan: bytes


class Replayed:
    """A recorded episode on the page."""

    def __init__(
        self, recording: Recording, title: str, resolution: int = 256, backend: str = ""
    ) -> None:
        """Begin to draw.

        Args:
            recording: The episode; a cut one is shown as far as it goes.
            title: Title of the page.
            resolution: Side of the camera's picture in pixels, 4 to 512.
            backend: What plays it again; empty for the default of `verify.stage`.

        Raises:
            ArenaError: The recorded arena cannot be built.
            ValueError: There is no step, the backend is unknown here, or the resolution is out of
                range.
        """
        if not recording.steps:
            raise RecordingError("no step is recorded, so there is nothing to show")
        self._recording, self._resolution = recording, resolution
        self._pictures: list[_Picture] = []
        self._closed = self._over = False
        self._failed = ""
        header = recording.header
        anew = other_motion(header, stage(header, backend)) is not None
        self._totals: list[float] = []
        total = 0.0
        for step in recording.steps:
            total += step.reward
            self._totals.append(total)
        spec = spec_from_proto(header.observation_spec)
        self._period = spec.decision_period * PHYSICS_STEP
        self._about: dict[str, Any] = {
            "title": title,
            "who": who(header),
            "outcome": outcome_words(recording),
            "asked_for": words_of_demands(recording),
            "labels": labels(recording, anew),
            "marks": [
                [step.step, round(step.reward, 3)]
                for step in recording.steps
                if abs(step.reward) > NOTABLE
            ][:_MARKS],
        }
        self._drawing = replay_with_camera(recording, resolution, backend=backend, state=True)
        self._map = Map(colour_of)
        self._plan = np.empty((PANEL, PANEL, 3), np.uint8)
        self._draw_next()  # what cannot be played is said before the page is opened
        self._thread = threading.Thread(target=self._draw, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop drawing."""
        self._closed = True
        self._thread.join()
        self._drawing.close()

    def state(self) -> Shown:
        """Return the first step, and what is to be known of the episode."""
        state, pixels = self.frame(0)
        return Shown({**state, **self._about}, pixels)

    def frame(self, wanted: int) -> Shown:
        """Return a step; instead of one that is not drawn yet, the last one that is.

        Raises:
            ValueError: There is no such step.
        """
        drawn = len(self._pictures)
        last = len(self._recording.steps) - 1
        if not 0 <= wanted <= last:
            raise ValueError(f"step is {wanted}; give 0 to {last}")
        shown = min(wanted, drawn - 1)
        state = self._state(shown, drawn, last)
        picture = self._pictures[shown]
        pixels = zlib.decompress(picture.camera) + zlib.decompress(picture.plan)
        return Shown(state, pixels)

    def _state(self, number: int, drawn: int, last: int) -> dict[str, Any]:
        step = self._recording.steps[number]
        ended_by = ended_by_from_proto(step.ended_by)
        notes = " ".join(note.text for note in step.notes if note.text)
        return {
            "step": number,
            "last": last,
            "drawn": drawn,
            "over": self._over,
            "failed": self._failed,
            "seconds": number * self._period,
            "period": self._period,
            "action": action_words(step.action) if step.HasField("action") else "",
            "health": step.observation.health,
            "reward": step.reward,
            "return": self._totals[number],
            "speed": sum(float(v) ** 2 for v in step.observation.velocity) ** 0.5,
            "ended_by": ended_by.name.lower() if ended_by else None,
            "note": notes if len(notes) <= _WORDS else f"{notes[:_WORDS]}…",
            "resolution": self._resolution,
            "map": PANEL,
        }

    def _draw(self) -> None:
        try:
            while not self._closed and self._draw_next():
                pass
        except Exception as error:  # noqa: BLE001 - the page says it
            self._failed = f"drawing stopped at step {len(self._pictures)}: {error}"
        self._over = True  # last: who sees it over asks no more, and must know why it stopped

    def _draw_next(self) -> bool:
        """Draw one step more; False where there is none."""
        step = next(self._drawing, None)
        if step is None:
            return False
        assert step.observation.camera is not None
        self._map.draw(step, self._plan)
        self._pictures.append(
            _Picture(
                zlib.compress(step.observation.camera.tobytes(), 1),
                zlib.compress(self._plan.tobytes(), 1),
            )
        )
        return True
