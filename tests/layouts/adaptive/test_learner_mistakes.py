"""Plausible mistakes with the learner: each is refused with a sentence, or changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.inference.live import TellError
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, TableError, read_csv

NAMES = tuple(f"i{k:02}" for k in range(20))


def items(layout: str = "success", names: tuple[str, ...] = NAMES, shift: float = 0.0) -> Bank:
    known = load_layout("one-capability", layout)
    rows = np.linspace(0.5, 5.5, len(names)) + shift
    values = np.column_stack([rows if f.name != "trials" else 0 * rows + 4 for f in known.features])
    return Bank.of(known, Instances(known.feature_names, values, names=names))


BANKS = {variant: items(variant) for variant in ("success", "trials", "score")}


def learner_of(variant: str = "success", seed: int = 1) -> Learner:
    return Learner(BANKS[variant], rule=StoppingRule(10), seed=seed)


def telling(outcome: Any) -> Callable[[Learner], object]:
    return lambda learner: learner.tell(ask_next(learner), outcome)


def ask_next(learner: Learner) -> str:
    choice = learner.ask()
    assert choice is not None
    return choice.instance


def twice(learner: Learner) -> None:
    name = ask_next(learner)
    learner.tell(name, 1.0)
    learner.tell(name, 1.0)


def of_another(learner: Learner) -> None:
    name = ask_next(learner)
    other = next(one for one in NAMES if one != name)
    learner.tell(other, 1.0, 0)


REFUSED: dict[str, tuple[str, Callable[[Learner], object], str]] = {
    "L1 the same tell twice": ("success", twice, "was told already, as episode 0"),
    "L2 tell without ask": ("success", lambda one: one.tell("i03", 1), "was not asked for"),
    "L2 nothing without ask": ("success", lambda one: one.tell_nothing("i03"), "was not asked for"),
    "L2 the outcome of another item": ("success", of_another, "episode 0 was asked for"),
    "L3 None": ("success", telling(None), "tell_nothing"),
    "L3 None in a list": ("success", telling([None]), "tell_nothing"),
    "L3 None by name": ("success", telling({"outcome": None}), "tell_nothing|is unknown"),
    "L3 an empty mapping": ("success", telling({}), "tell_nothing"),
    "L4 NaN": ("score", telling(float("nan")), "tell_nothing"),
    "L4 a missing value of pandas": ("score", telling(pd.NA), "give a score"),
    "L5 2 for success": ("success", telling(2), "success is 1, failure 0"),
    "L5 -1 for failure": ("success", telling(-1), "success is 1, failure 0"),
    "L5 a share for success": ("success", telling(0.9), "success is 1, failure 0"),
    "L7 text": ("success", telling("1"), "told as '1'; give 1 or True"),
    "L7 bytes": ("success", telling(b"1"), "give 1 or True"),
    "L7 text of numpy": ("success", telling(np.str_("1")), "give 1 or True"),
    "L7 a word": ("success", telling("success"), "give 1 or True"),
    "L7 a complex number": ("success", telling(1 + 0j), "give 1 or True"),
    "L7 a list too many": ("success", telling([1.0, 0.0]), "2 outcomes given"),
    "L7 a table": ("success", telling([[1.0]]), "give 1 or True"),
    "L8 a score in per cent": ("score", telling(90), "a score within 0 and 1"),
    "L8 success for a score": ("score", telling(True), "give a score from 0 to 1"),
    "L9 an unknown item": ("success", lambda one: one.tell("i99", 1.0), "'i99' is not in the bank"),
    "L9 one that is pending": ("success", lambda one: one.ask(pending="i03"), "a list of names"),
    "L14 an index": ("success", lambda one: one.tell(3, 1.0), "3 is not the name"),  # type: ignore[arg-type]
    "L20 more than its trials": ("trials", telling(5), "a whole number from 0 to trials"),
    "L20 half a trial": ("trials", telling(1.5), "a whole number from 0 to trials"),
    "L20 success for a count": ("trials", telling(True), "the number of successful trials"),
    "L21 a negative count": ("trials", telling(-1), "a whole number from 0 to trials"),
    "L21 a negative score": ("score", telling(-0.1), "a score within 0 and 1"),
    "L22 infinite": ("score", telling(float("inf")), "a score within 0 and 1"),
    "L22 infinite success": ("success", telling(float("inf")), "success is 1, failure 0"),
    "an episode by half": (
        "success",
        lambda one: one.tell("i03", 1.0, 0.5),  # type: ignore[arg-type]
        "is not a number",
    ),
}


@pytest.mark.parametrize(("variant", "mistake", "says"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_refused_and_counts_for_nothing(
    variant: str, mistake: Callable[[Learner], object], says: str
) -> None:
    learner = learner_of(variant)
    with pytest.raises(ValueError, match=says):
        mistake(learner)
    assert learner.n == (mistake is twice)


@pytest.mark.parametrize(
    "right", [True, np.bool_(True), 1, np.int64(1), np.float32(1), np.array(1), [1.0]], ids=repr
)
def test_what_is_right_is_told_as_it_is_meant(right: Any) -> None:
    """L6, L15."""
    learner, plain = learner_of(), learner_of()
    learner.tell(ask_next(learner), right)
    plain.tell(ask_next(plain), 1.0)
    assert learner.summary() == plain.summary()


def test_asking_twice_and_after_enough_changes_nothing() -> None:
    """L16, L17."""
    once, often = learner_of(), learner_of()
    while not once.verdict().stop:
        assert often.ask() == often.ask()
        name = ask_next(once)
        once.tell(name, float(name < "i10"))
        often.tell(name, float(name < "i10"))
    assert often.ask() == often.ask()
    assert often.summary() == once.summary()
    assert often.verdict().stop


def test_pending_episodes_are_told_in_any_order_and_keep_their_numbers() -> None:
    learner = learner_of()
    first = learner.ask()
    assert first is not None
    second = learner.ask([first.instance])
    assert second is not None
    assert (first.episode, second.episode) == (0, 1)
    learner.tell(second.instance, 0.0)
    third = learner.ask([first.instance])
    assert third is not None
    assert third.episode == 2
    learner.tell(first.instance, 1.0)
    learner.tell(third.instance, 1.0)
    again = learner_of()
    for number, outcome in ((1, 0.0), (0, 1.0), (2, 1.0)):
        name = (first, second, third)[number].instance
        again.tell(name, outcome, number)
    assert again.summary() == learner.summary()
    learner.invalidate(1)
    assert ask_next(learner)  # with a number that is free


def test_an_item_that_is_asked_twice_says_which_is_told() -> None:
    learner = Learner(BANKS["success"], Policy("listed", order=("i03", "i03"), exposures=2), seed=1)
    for pending in ([], ["i03"]):
        assert learner.ask(pending) is not None
    with pytest.raises(TellError, match="asked for as episodes 0, 1; say which"):
        learner.tell("i03", 1.0)
    learner.tell("i03", 1.0, 1)
    learner.tell("i03", 1.0)
    assert learner.n == 2


def test_nothing_is_told_by_a_call_of_its_own() -> None:
    learner = learner_of("score")
    before = learner.summary()
    learner.tell_nothing(ask_next(learner))
    assert learner.summary() == before
    assert (learner.n, learner.data().weights.tolist()) == (1, [0.0])
    again = learner_of("score")
    again.restore(learner.save())
    assert (again.n, again.ask()) == (1, learner.ask())


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (lambda: Learner(items(shift=0.1), rule=StoppingRule(10), seed=1), "another bank"),
        (lambda: Learner(items(names=NAMES[:-1]), rule=StoppingRule(10), seed=1), "another bank"),
        (lambda: learner_of("score"), "another layout"),
        (lambda: learner_of(seed=2), "another seed"),
        (lambda: Learner(items(), rule=StoppingRule(11), seed=1), "another rule"),
    ],
    ids=["L18 other demands", "L18 fewer items", "L19 another layout", "a seed", "a rule"],
)
def test_a_learner_goes_on_only_as_it_was(other: Callable[[], Learner], says: str) -> None:
    learner = learner_of()
    learner.tell(ask_next(learner), 1.0)
    with pytest.raises(ValueError, match=says):
        other().restore(learner.save())


def test_items_that_are_no_items_are_refused() -> None:
    """L10, L11, L12, L13."""
    layout = load_layout("one-capability", "success")
    values = np.ones((2, 1))
    with pytest.raises(TableError, match="no column 'rewardDistance'"):
        Bank.of(load_layout("aaio"), Instances(("other",), values, names=("a", "b")))
    with pytest.raises(ValueError, match="such as 'a'; give every instance a name of its own"):
        Bank.of(layout, Instances(layout.feature_names, values, names=("a", "a")))
    with pytest.raises(TypeError, match="df is a dict, and a pandas DataFrame is expected"):
        Bank.of(layout, {"difficulty": [1.0, 2.0]})  # type: ignore[arg-type]
    with pytest.raises(TableError):
        read_csv(Path("items.csv"), agents=[])
