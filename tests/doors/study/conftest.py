"""Studies as files, and a clock and ids that are the same every time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from animalcat.doors.study.file import Study, read_study
from animalcat.doors.study.store import Chance
from tests.service.conftest import fitter, service, start

__all__ = ["fitter", "service", "start"]  # servers of the tests of the service

STUDY = """
study: finding-things
title: Finding things
contact: Dr Example <someone@example.org>
consent: {version: "1", text: "You *may* leave at any time.", ask: ["I am 18 or older."]}
instructions: ["# Look\\n\\nFind the green ball.", "Walk with the arrow keys."]
understanding: {questions: [{ask: "What do you look for?", choices: [Ball, Wall], right: 1}]}
practice: {passes: 1, of: 2, most: 3}
blocks: {trials: 2, minutes: 0, break_seconds: 0}
play: {battery: tiny, max_episodes: 4, camera: 32}
debrief: "It was about finding."
completion:
  done: {link: "https://app.example.org/complete?cc=DONE"}
  screened: {code: OUT}
  withdrawn: {code: GONE}
  full: {code: FULL}
  technical: {code: BROKEN}
conditions: [{name: plain}, {name: scored, weight: 2, shown: {score: true}}]
"""


ASKED = (
    "practice:",
    """questions:
  before:
    - {name: age, ask: How old are you?, number: [18, 99]}
    - {name: games, ask: Which do you play?, choices: [None, Cards, Shooters], many: true}
  after:
    - {name: hard, ask: How hard was it?, scale: [Not at all, Very], points: 5, right: 5}
    - {name: said, ask: What else?, required: false}
careless: {idle: 0.5, one_key: 0.9}
practice:""",
)
"""What puts questions into the study."""


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Study]:
    """What writes a study file, with some of its text replaced, and reads it."""

    def write(*changes: tuple[str, str], text: str = STUDY) -> Study:
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        file = tmp_path / "study.yaml"
        file.write_text(text)
        return read_study(file)

    return write


class Clock:
    """A clock that goes on by a second whenever it is asked."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 27, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


@pytest.fixture
def chance() -> Chance:
    picks, keys = count(), count()
    return Chance(Clock(), lambda below: next(picks) * 7 % below, lambda: f"key-{next(keys)}")
