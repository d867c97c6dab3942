"""What would close what a profile leaves open."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.adaptive.statuses import BOUNDED, PRECISE
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.library import load_layout
from animalcat.layouts.reporting.profile import Profile
from animalcat.service.measuring.next_steps import next_steps
from animalcat.values import Session, SessionSpec, SessionState

LAYOUT = load_layout("one-capability", "success")
SPEC = SessionSpec("tests:agent", "mine", stop=StoppingRule(20))
ENDED = Session(
    "s-1", SPEC, SessionState.FINISHED, "used up", datetime(2026, 1, 1, tzinfo=UTC), episodes=20
)


def profile(limit: float, status: str = "budget") -> Profile:
    """Of an agent that passes what is easier than its limit."""
    rows = np.linspace(0.0, 9.5, 20).reshape(-1, 1)
    learner = Learner(Bank(LAYOUT, rows, ["a"] * 20), None, SPEC.stop)
    for k, (difficulty,) in enumerate(rows.tolist()):
        learner.tell(str(k), float(difficulty < limit), k)
    made, _ = verdict_of(learner, learner.profile())
    return replace(made, status={"ability": status})


def test_more_episodes_are_counted_and_commanded() -> None:
    (step,) = next_steps(ENDED, profile(5.0), {"ability": 7}, 100)
    assert (step["episodes"], step["command"]) == (7, "animalcat session resume s-1 --episodes 7")
    assert "at least about 7 more episodes of the battery mine" in step["text"]
    early = replace(ENDED, episodes=12)  # another budget alone would end it again at once
    (step,) = next_steps(early, profile(5.0), {"ability": 1}, 100)
    assert step["command"].endswith("--episodes 1 --target-sd 0.08")
    assert "one more episode" in step["text"]


def test_what_the_battery_lacks_is_said() -> None:
    (step,) = next_steps(ENDED, profile(5.0), {"ability": None}, 100)
    assert "What is left of the battery mine cannot bring ability to the target" in step["text"]
    assert step["command"] == "animalcat battery report mine"
    (step,) = next_steps(ENDED, profile(5.0), {"ability": None}, 0)
    assert "The battery mine is used up" in step["text"]
    for limit, side, more in ((11.0, "at least", "more"), (-1.0, "at most", "less")):
        bounded = profile(limit, BOUNDED)
        assert bounded.notes["ability"].side == side
        (step,) = next_steps(ENDED, bounded, {"ability": 0}, 100)
        assert f"of ability takes arenas that ask for {more}" in step["text"]
    (step,) = next_steps(ENDED, profile(11.0), {"ability": 3}, 100)  # harder ones may be left
    assert "takes at least about 3 more episodes" in step["text"]


def limited_in_distance(navigation: str, sight: str) -> Profile:
    """Of an agent that passes what is near, whatever its size."""
    g = np.random.default_rng(3)
    rows = np.column_stack([g.uniform(2, 40, 40), g.uniform(0.5, 5, 40), np.zeros((40, 2))])
    bank = Bank(load_layout("aaio", "metres-15"), rows, ["a"] * 40)
    learner = Learner(bank, None, SPEC.stop)
    for k, (distance, *_) in enumerate(rows.tolist()):
        learner.tell(str(k), float(distance < 18.0), k)
    made, verdict = verdict_of(learner, learner.profile())
    assert verdict.blamed == "navigationAbility"
    return replace(made, status={"navigationAbility": navigation, "visualAbility": sight})


def test_what_would_narrow_what_the_verdict_names_comes_first() -> None:
    named, other = "navigationAbility", "visualAbility"
    found = limited_in_distance(PRECISE, "budget")
    first, last = next_steps(ENDED, found, {}, 100, named, {named: 9})
    assert first["text"].startswith(f"{named}, which the verdict names, is at its target")
    assert first["command"].startswith("animalcat session resume s-1 --episodes 9 --target-sd 0.0")
    assert f"To find a limit of {other} takes arenas that ask for more" in last["text"]
    (first, _) = next_steps(ENDED, found, {}, 100, named, {named: None})
    assert first["command"] == "animalcat battery report mine"
    assert "cannot narrow it by a fifth" in first["text"]

    found = limited_in_distance("budget", "budget")
    for needed in ({named: 4}, {named: None}):
        first, last = next_steps(ENDED, found, needed, 100, named)
        assert named in first["text"]
        assert other in last["text"]
    (first, _) = next_steps(ENDED, found, {named: 4}, 100, other)
    assert f"To find a limit of {other}" in first["text"]
    (first, _) = next_steps(ENDED, found, {named: 4}, 100, "noiseLevel")
    assert first["text"].startswith("The verdict names noiseLevel, for which no target is set;")


def test_nothing_is_said_where_nothing_is_open_and_no_more_of_a_layout_that_is_wrong() -> None:
    precise = profile(5.0, "precise, if the layout holds")
    assert next_steps(ENDED, precise, {"ability": 0}, 100) == []
    wrong = replace(precise, judgement={"standing": "not described", "text": "", "evidence": []})
    steps = next_steps(ENDED, wrong, {"ability": 0}, 100)
    assert "More episodes do not help" in steps[0]["text"]
    assert [step["episodes"] for step in steps] == [None, None]
