"""Cues: who goes by one instead of having a capability is found out, and claims are withheld."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.policy import CHECK
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.explaining.verdict import Verdict
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.spec import Cue, Layout, from_dict, to_dict
from animalcat.layouts.reporting.profile import Profile

CUE = Cue("the smell of food", "memoryAbility", "smell", below=0.5)
ARENAS = 400


def layout(cue: Cue = CUE) -> Layout:
    return replace(load_layout("object-permanence", "measured"), cues=(cue,))


def bank(misleading: float, cue: Cue = CUE) -> Bank:
    """Arenas that hide the goal in two of three cases; the cue misleads in a share of these."""
    g = np.random.default_rng(5)
    layouts = layout(cue)
    hidden = g.random(ARENAS) < 2 / 3
    columns = {
        "goalDistance": g.uniform(4, 40, ARENAS),
        "goalSize": g.uniform(1, 4.5, ARENAS),
        "rightLeftPosition": g.choice([-1.0, 0.0, 1.0], ARENAS),
        "occluderPresence": hidden.astype(np.float64),
        "timeUnderOcc": np.where(hidden, g.uniform(1, 19, ARENAS), np.nan),
        "numPositions": np.where(hidden, g.integers(1, 15, ARENAS), np.nan),
    }
    features = np.column_stack(
        [columns.get(name, np.zeros(ARENAS)) for name in layouts.feature_names]
    )
    smell = np.where(hidden, (g.random(ARENAS) >= misleading).astype(np.float64), np.nan)
    return Bank(layouts, features, ["arena"] * ARENAS, outside={"smell": smell})


def session(
    own: Bank, passes: Callable[[int], bool], rule: StoppingRule | None = None, seed: int = 2
) -> tuple[Learner, list[str], Profile, Verdict]:
    learner = Learner(own, Policy(), rule or StoppingRule(60), seed=seed)
    reasons: list[str] = []
    while learner.verdict().end is None:
        choice = learner.ask()
        assert choice is not None
        reasons.append(choice.reason)
        learner.tell(choice.instance, float(passes(choice.index)))
    return (learner, reasons, *verdict_of(learner, learner.profile()))


def test_who_goes_by_the_cue_is_found_out() -> None:
    own = bank(0.2)
    misleads = own.misleading[CUE.name] == 1.0
    learner, _, profile, found = session(own, lambda row: not misleads[row])
    assert learner.n < 60
    assert learner.contradicted or found.found.kind == "fraudster"
    assert found.found.rival is not None
    assert (found.found.rival.role, found.found.rival.name) == ("cue", CUE.name)
    (cue,) = found.cues
    assert cue.standing != "ruled out"
    assert "remembers a hidden goal" not in " ".join(word for word, _ in profile.words.values())


def test_a_few_episodes_rule_the_cue_out() -> None:
    own = bank(0.05)
    misleads = own.misleading[CUE.name] == 1.0
    _, reasons, profile, found = session(own, lambda row: True)
    (cue,) = found.cues
    assert cue.standing == "ruled out"
    assert 2 <= cue.episodes <= 8, "once it is ruled out, nothing more is asked for its sake"
    assert CHECK in reasons
    assert misleads.sum() < 0.08 * ARENAS, "at random, hardly one of them would have been played"
    assert "not told apart" not in profile.words["memoryAbility"].estimate
    assert "is not shown" not in found.text


def test_what_no_arena_tells_apart_is_not_claimed() -> None:
    _, _, profile, found = session(bank(0.0), lambda row: True)
    (cue,) = found.cues
    assert (cue.standing, cue.episodes) == ("open", 0)
    assert profile.words["memoryAbility"].estimate == f"not told apart from relying on {CUE.name}"
    assert (
        f"is not shown, since it may rely on {CUE.name}, which misled in no episode" in found.text
    )
    assert profile.nodes_dict()["memoryAbility"]["mean"] > 0, "the posterior is what it is"


def test_a_cue_is_part_of_the_text_and_of_the_identity_but_not_of_the_model() -> None:
    own = layout()
    again = from_dict(to_dict(own))
    assert again.cues == own.cues
    plain = replace(own, cues=())
    assert plain.digest == own.digest
    assert plain.identity != own.identity


@pytest.mark.parametrize(
    ("cue", "says"),
    [
        (
            {"mimics": "noiseLevel", "feature": "smell", "below": 1},
            "not a capability of the layout",
        ),
        ({"mimics": "OPAbility", "feature": "smell"}, "say where the cue misleads"),
        ({"mimics": "OPAbility", "below": 1}, "feature"),
    ],
)
def test_a_wrong_cue_is_refused(cue: dict[str, object], says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        from_dict({**to_dict(layout()), "cues": {"the smell": cue}})


def test_where_failure_is_expected_no_cue_is_asked_for() -> None:
    own = bank(0.2)
    hidden = np.isfinite(own.misleading[CUE.name])
    _, reasons, profile, found = session(own, lambda row: not hidden[row], StoppingRule(40))
    assert CHECK not in reasons, "who fails wherever goals are hidden seems to have no memory"
    assert "not told apart" not in profile.words["memoryAbility"].estimate
    assert not any(note.instead for note in found.notes.values())
