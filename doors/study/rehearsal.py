"""Rehearses a study with simulated participants: minutes, precision and dropouts to expect."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from animalcat.doors.study.file import Measured, Study
from animalcat.doors.study.participant import (
    Agreed,
    Answered,
    Arrived,
    DeviceFits,
    Event,
    PageLeft,
    Part,
    Participant,
    SessionMade,
    SessionOver,
    Stage,
    Trial,
    TrialOver,
    after,
    arrive,
)
from animalcat.doors.study.playing import PRACTICE_AIM
from animalcat.envs.types import PHYSICS_STEP
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.inference.randomness import rng
from animalcat.service.batteries.battery import Battery
from animalcat.service.library.layouts import layout_on
from animalcat.service.measuring.measurement import Measurement
from animalcat.v1 import sessions_pb2
from animalcat.values import SessionSpec
from animalcat.values.options import SessionOptions, given_options
from animalcat.wire.codec import decode, put

WORDS_A_MINUTE: Final = 200.0
"""How fast texts are read."""
QUESTION_SECONDS: Final = 15.0
DEVICE_SECONDS: Final = 20.0
BETWEEN_SECONDS: Final = 4.0
"""From the end of a round to the beginning of the next."""
PASSED_SHARE: Final = 0.5
"""Share of its time limit that a round takes which is passed; one that fails takes all of it."""
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """How a simulated participant went through a study: "done", "screened", or "left" too early.

    `precise` counts the capabilities that were at their target, or bounded. `known` is the share of
    each node's variance that was taken away, of who is done.
    """

    end: str
    minutes: float
    rounds: int
    passed: int
    precise: int
    known: Mapping[str, float]


def spec_of(play: Measured) -> SessionSpec:
    """Return the specification that a session of people gets, without what the server adds."""
    message = sessions_pb2.SessionSpec(agent="rehearsal", battery=f"batteries/{play.battery}")
    put(SessionSpec, message, given_options(SessionOptions, play.options))
    return decode(SessionSpec, message)


def rehearse(
    study: Study,
    battery: Callable[[str], Battery],
    people: int,
    leave_a_minute: float,
    seed: int = 0,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, list[Rehearsed]]:
    """Return how simulated people go through a study, by condition, and by the rules of real ones.

    What is true of each is drawn from the layout's prior, and rounds come out in the layout's own
    words. So precision is that of people whom the layout describes.

    Raises:
        ServiceError: The layout does not go with the battery.
    """
    names = [c.name for c in study.conditions] or [""]
    found: dict[str, list[Rehearsed]] = {}
    for at, name in enumerate(names):
        play = study.measured(name)
        known = battery(play.battery)
        spec = spec_of(play)
        measured = Measurement(spec, known, layout_on(known, play.layout, play.variant))
        found[name] = []
        for k in range(people):
            tell(at * people + k, len(names) * people)
            person = _Person(study, name, spec, measured, seed + k, leave_a_minute)
            found[name].append(person.go())
    return found


class _Person:
    """One simulated participant."""

    def __init__(
        self,
        study: Study,
        condition: str,
        spec: SessionSpec,
        measured: Measurement,
        seed: int,
        leave_a_minute: float,
    ) -> None:
        bank = measured.learner.bank
        self._study, self._bank, self._seed, self._stop = study, bank, seed, spec.stop
        self._chance = rng(seed, "rehearsed", 0)
        layout = bank.layout
        self._truth = layout.from_standard(self._chance.standard_normal(len(layout.latents)))
        self._learner = Learner(bank, spec.policy, spec.stop, seed=seed)
        self._rows = {name: row for row, name in enumerate(bank.names)}
        self._seconds = self._played = 0.0
        self._patience: float = math.inf
        if leave_a_minute:
            self._patience = self._chance.exponential(-60.0 / math.log1p(-leave_a_minute))
        self._seen = 0
        self._now = arrive("rehearsal-1", Arrived(_EPOCH, study.digest, condition))

    def go(self) -> Rehearsed:
        """Go through the study to its end, or until patience ends."""
        while not self._now.stage.over and self._seconds < self._patience:
            self._step()
        now, layout = self._now, self._bank.layout
        left = not now.stage.over
        verdict = self._learner.verdict(self._played)
        live: Mapping[str, str] = {} if verdict.facts is None else verdict.facts.live
        nodes = self._learner.summary()
        known = {
            latent.name: max(0.0, 1.0 - (nodes[k].sd / latent.prior.sd) ** 2)
            for k, latent in enumerate(layout.latents)
        }
        return Rehearsed(
            "left" if left else "done" if now.stage is Stage.DONE else "screened",
            self._seconds / 60.0,
            now.trials,
            now.passed,
            sum(stands != "open" for stands in live.values()),
            known if now.stage is Stage.DONE else {},
        )

    def _step(self) -> None:
        """Do what the stage asks for."""
        study, now = self._study, self._now
        match now.stage:
            case Stage.CONSENT:
                consent = study.consent
                self._spend(_reading(consent.text) + 2.0 * len(consent.ask))
                self._tell(Agreed(self._at, consent.version, consent.digest))
            case Stage.DEVICE:
                self._spend(DEVICE_SECONDS)
                self._tell(DeviceFits(self._at, 1200, 800, 1.0, 60.0, "keys"))
            case Stage.INSTRUCTIONS:
                self._spend(_reading(study.instructions[now.page]))
                self._tell(PageLeft(self._at, "read", now.page))
            case Stage.BEFORE | Stage.QUESTIONS | Stage.AFTER:
                asked, stage = study.asked(now.stage), now.stage
                self._spend(QUESTION_SECONDS * len(asked))
                self._tell(Answered(self._at, tuple(q.right or "" for q in asked), stage))
            case Stage.PRACTICE:
                self._round("practice", self._practise())
            case Stage.PLAY:
                self._play()
            case Stage.BREAK:
                self._spend(study.blocks.break_seconds)
                self._tell(PageLeft(self._at, "rested"))
            case _:
                self._spend(_reading(study.debrief))
                self._tell(PageLeft(self._at, "debriefed"))

    def _practise(self) -> int:
        """An arena that the person is expected to pass mostly."""
        bank = self._bank.at(self._seen)
        chances = bank.evaluator.probability(self._truth[None], bank.features)[0]
        near = np.argsort(np.abs(chances - PRACTICE_AIM))[: max(1, len(chances) // 10)]
        return int(self._chance.choice(near))

    def _play(self) -> None:
        choice = None
        if not self._learner.verdict(self._played).stop:
            choice = self._learner.ask(played_before=self._seen)
        if choice is None:
            self._tell(SessionOver(self._at, "play"))
            return
        row = self._rows[choice.instance]
        outcome = self._round("play", row)
        self._learner.tell(choice.instance, outcome)

    def _round(self, part: Part, row: int) -> float:
        if part not in self._now.sessions:
            self._tell(SessionMade(self._at, part, f"rehearsal-{part}"))
        bank = self._bank.at(self._seen)
        columns = bank.evaluator.columns(bank.features[[row]])
        outcome = bank.evaluator.simulate([self._truth], columns, self._chance)[0, 0]
        self._seen += 1
        first = float(np.ravel(outcome)[0])
        passed = first > 0.5
        limit = float(self._bank.seconds[row]) * PHYSICS_STEP * self._study.slower
        seconds = limit * (PASSED_SHARE if passed else 1.0)
        self._spend(seconds + BETWEEN_SECONDS)
        if part == "play":
            self._played += seconds
        self._tell(TrialOver(self._at, part, Trial(0, 0, seconds, 0, "played", passed)))
        return first

    def _spend(self, seconds: float) -> None:
        self._seconds += seconds

    @property
    def _at(self) -> datetime:
        return _EPOCH + timedelta(seconds=self._seconds)

    def _tell(self, event: Event) -> None:
        self._now: Participant = after(self._study, self._now, event)


def _reading(text: str) -> float:
    """Seconds that it takes to read a text."""
    return max(2.0, 60.0 * len(text.split()) / WORDS_A_MINUTE)


def rehearsal_values(found: Mapping[str, Sequence[Rehearsed]]) -> dict[str, Any]:
    """Return what a rehearsal found, as JSON values."""
    return {name: _sum_up(went) for name, went in found.items()}


def _sum_up(went: Sequence[Rehearsed]) -> dict[str, Any]:
    done = [one for one in went if one.end == "done"]
    ends = Counter(one.end for one in went)
    rounds = sum(one.rounds for one in went)
    nodes = {name: [one.known[name] for one in done] for name in (done[0].known if done else ())}
    return {
        "people": len(went),
        **{end: ends[end] / len(went) for end in ("done", "left", "screened")},
        "minutes": _spread([one.minutes for one in done]),
        "rounds": _spread([float(one.rounds) for one in done]),
        "passed": sum(one.passed for one in went) / rounds if rounds else None,
        "known": {name: round(float(np.median(values)), 3) for name, values in nodes.items()},
        "at_target": float(np.mean([one.precise for one in done])) if done else None,
    }


def _spread(values: Sequence[float]) -> list[float] | None:
    """Return the tenth, the middle and the ninetieth percent of some values."""
    return [round(float(v), 2) for v in np.quantile(values, (0.1, 0.5, 0.9))] if values else None
