"""Arenas against their controls: what pairs say, and what a verdict makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.arena_configs.families.library import FAMILIES, load_family
from animalcat.arena_configs.taken import TAKEN
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.explaining.controls import (
    ControlComparison,
    PlayedArena,
    compare_controls,
    for_verdict,
    unpaired_interval,
)
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.explaining.verdict import Verdict
from animalcat.layouts.library import load_layout

HIDDEN, SHOWN = {"hiddenStanding": 9.0}, {"hiddenStanding": 0.0}


def pairs(*passed: tuple[int, int], paradigm: str = "cups") -> list[PlayedArena]:
    """Arenas and their control of glass, each pair with what was passed of it."""
    return [
        one
        for k, (plain, glass) in enumerate(passed)
        for one in (
            PlayedArena(f"{paradigm}-{k}", paradigm, "", "", bool(plain), HIDDEN),
            PlayedArena(
                f"{paradigm}-{k}.glass", paradigm, "glass", f"{paradigm}-{k}", bool(glass), SHOWN
            ),
        )
    ]


def only(played: list[PlayedArena]) -> ControlComparison:
    (row,) = compare_controls(played, TAKEN)
    return row


def test_hiding_is_a_reason_where_glass_is_passed_and_walls_are_not() -> None:
    row = only(pairs(*[(0, 1)] * 7, (1, 1), (1, 1), (0, 0)))
    assert (row.plain, row.changed, row.played_both) == ((10, 2), (10, 9), 10)
    assert (row.difference, row.taken) == (0.7, "hiding")
    low, high = row.interval()
    assert 0.1 < low < 0.2
    assert 0.9 < high < 1.0
    assert row.sentence() == (
        "It passed 2 of 10 arenas as they are and 9 of the same 10 with the control glass: hiding "
        "is a reason that it fails."
    )
    assert only(pairs(*[(0, 1)] * 20)).says == "hiding is the main reason"


def test_hiding_is_no_main_reason_where_both_are_failed() -> None:
    row = only(pairs((1, 1), *[(0, 0)] * 9))
    assert row.standing() == "not the main reason"
    assert "It passed 1 of 10 arenas as they are and 1 of the same 10" in row.sentence()
    assert (
        replace(row, about="With cups of glass.")
        .sentence()
        .endswith(
            "the control glass (with cups of glass): hiding is not the main reason that it fails."
        )
    )


def test_what_earlier_outcomes_chose_makes_no_pair() -> None:
    """Else playing the control of what was failed would make every control look easier."""
    played = pairs(*[(0, 1)] * 12)
    chosen = [one._replace(chosen=bool(one.control)) for one in played]
    row = only(chosen)
    assert (row.paired, row.played_both, row.standing()) == (False, 0, "")
    assert row.says == "different arenas on each side: they show no reason"
    first = only([one._replace(chosen=not one.control) for one in played])
    assert first.played_both == 12
    turned = only([one._replace(chosen=not one.control) for one in reversed(played)])
    assert turned.played_both == 0


def test_unpaired_intervals_are_those_of_newcombe() -> None:
    """His examples a, e and h, as printed (Newcombe 1998, table II)."""
    for counts, low, high in (
        ((70, 56, 80, 48), 0.0524, 0.3339),
        ((10, 9, 10, 3), 0.1705, 0.8090),
        ((10, 10, 10, 0), 0.6075, 1.0),
    ):
        assert unpaired_interval(*counts, error=0.05) == pytest.approx((low, high), abs=5e-5)


def test_a_verdict_tells_of_one_control_and_allows_for_the_others() -> None:
    many = [
        *pairs(*[(0, 1)] * 6, (0, 0)),
        *(
            one._replace(instance=one.instance.replace("glass", "now"), control="now")
            for one in pairs(*[(0, 0)] * 7)
            if one.control
        ),
    ]
    alone, error = for_verdict(compare_controls(many[:14], TAKEN))
    assert (alone and alone.control, error) == ("glass", 0.1)
    _, both = for_verdict(compare_controls(many, TAKEN))
    assert both == 0.05


def judge_it(standing: str, *, farther: bool) -> tuple[Verdict, str]:
    """The verdict on an agent that gets as far as 15 m, with controls that are nearer, or farther.

    Args:
        standing: What the pairs say.
        farther: Whether the control asks for more instead of less.
    """
    layout = load_layout("aaio", "metres-15")
    n = 60
    distance = np.linspace(3.0, 33.0, n)
    order = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")
    columns: dict[str, npt.NDArray[np.float64]] = dict(
        zip(order, (distance, np.full(n, 2.0), np.zeros(n), np.zeros(n)), strict=True)
    )
    rows = np.column_stack([columns[name] for name in layout.feature_names])
    learner = Learner(Bank(layout, rows, ["a"] * n, names=[str(k) for k in range(n)]), seed=4)
    for k in np.random.default_rng(1).permutation(n).tolist():
        learner.tell(str(k), float(distance[k] < 15.0), k)
    near, far = [str(k) for k in range(20)], [str(k) for k in range(40, 60)]
    linked = zip(near, far, strict=True) if farther else zip(far, near, strict=True)
    counts = {"main reason": (0, 0, 20, 0), "not the main reason": (0, 0, 0, 20)}[standing]
    row = ControlComparison(
        *("a", "near", (20, 0), (20, 20)), *counts, taken="distance", pairs=tuple(linked)
    )
    _, verdict = verdict_of(learner, learner.profile(), controls=[row])
    return verdict, row.sentence()


def test_a_verdict_says_what_pairs_and_the_layout_agree_on() -> None:
    verdict, sentence = judge_it("main reason", farther=False)
    assert sentence in verdict.sentences
    assert "It fails mostly because of its limit in navigationAbility" in verdict.text
    assert verdict.blamed == verdict.found.weakness == "navigationAbility"


@pytest.mark.parametrize("name", FAMILIES)
def test_what_families_say_that_controls_take_has_words(name: str) -> None:
    for control in load_family(name).controls.values():
        known = [feature for feature in control.takes if feature in TAKEN]
        assert known or not control.takes or control.takes[0] in UNNAMED, control.name


UNNAMED = frozenset(
    {
        *("detour", "goalSeen", "transparentWalls", "movables"),
        *("lavaPresence", "rampPresence", "platformPresence", "rightLeftPosition"),
    }
)
"""Demands that a control changes either way, or of which it makes more."""
