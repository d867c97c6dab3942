"""The re-analysis of a session: predictions are checked by what they are of."""

from __future__ import annotations

import pytest

from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.library import load_layout
from animalcat.service.batteries.battery import Battery
from animalcat.service.measuring.coverage import covered_features
from animalcat.service.measuring.report import reanalysis
from animalcat.values import Decision, Episode, Outcome, SessionSpec

from .conftest import open_floor

SHARE = 0.75
"""Of its rewards that an agent takes of each arena, and that the layout predicts."""


@pytest.fixture(scope="module")
def battery(tmp_path_factory: pytest.TempPathFactory) -> Battery:
    return open_floor(8, tmp_path_factory.mktemp("batteries"))


@pytest.mark.parametrize("variant", ["reward", "rewards"])
def test_predictions_of_a_count_are_not_compared_with_success(
    battery: Battery, variant: str
) -> None:
    layout = load_layout("navigation-speed", variant)
    spec = SessionSpec("a", "b", layout="navigation-speed", layout_variant=variant)
    names = sorted(covered_features(layout, battery))
    assert len(names) > 2
    attempts: list[Episode] = []
    for number, name in enumerate(names[:-1]):
        left = len(names) - number
        decision = Decision(
            name, 1.0, 1.0 / left, SHARE, {}, "random", peers=Peers(left, 1.0, SHARE, open=True)
        )
        attempts.append(Episode("s", number, 0, decision, outcome=Outcome.SUCCESS))
    found = reanalysis(spec, layout, battery, attempts)
    of_success = variant == "reward"
    assert (found.brier is not None) is of_success
    assert bool(found.calibration) is of_success
    assert (found.battery.residual.value is not None) is of_success
    assert {one.residual.value is not None for one in found.paradigms if one.played > 1} == {
        of_success
    }
    # The share of successes holds whatever was predicted.
    assert found.battery.success.value is not None
    assert any("are of the layout's first outcome, reached" in n for n in found.notes) != of_success
