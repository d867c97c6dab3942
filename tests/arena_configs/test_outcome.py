"""What is observed of an episode: each source where it applies, and nowhere else."""

from __future__ import annotations

import pytest

from animalcat.arena_configs.outcome import (
    SOURCES,
    EpisodeMonitor,
    MarkedPlace,
    OutcomeRules,
    PlaceWatch,
)

PLACES = (MarkedPlace(right=False, x=10, z=30, radius=2), MarkedPlace(True, 30, 30, 2))
WHOLE = OutcomeRules(0.5, 1000, -1.0, 3.0, 2.0, PLACES)


def watch_it(task: OutcomeRules, *seen: tuple[float, float, float]) -> EpisodeMonitor:
    places, watch = PlaceWatch(task.places), EpisodeMonitor(task)
    for reward, x, z in seen:
        places.look(x, z)
        watch.see(reward, places.reached)
    return watch


def test_all_sources_of_an_episode_that_has_all() -> None:
    watch = watch_it(WHOLE, (-0.01, 20, 5), (1.0, 29, 31), (1.2, 10, 30))
    made = watch.outcomes(2.0, 250)
    assert made == {"success": 1, "return": 0.75, "time_left": 0.75, "rewards": 2, "choice": 1}
    assert tuple(made) == SOURCES


def test_values_stay_within_what_is_said_of_them() -> None:
    watch = watch_it(WHOLE, (1.0, 0, 0), (1.0, 0, 0), (1.0, 0, 0))
    assert watch.outcomes(4.0, 2000) == {
        "success": 1.0,
        "return": 1.0,
        "time_left": 0.0,
        "rewards": 2.0,
    }


@pytest.mark.parametrize(
    ("task", "possible"),
    [
        (OutcomeRules(0.0), {"success"}),
        (OutcomeRules(0.0, 100), {"success", "time_left"}),
        (OutcomeRules(0.0, least_return=1.0, greatest_return=1.0), {"success"}),
        (OutcomeRules(0.0, rewards=0.0), {"success"}),
        (WHOLE, set(SOURCES)),
    ],
)
def test_what_can_be_observed_is_known_beforehand(task: OutcomeRules, possible: set[str]) -> None:
    assert task.observes == possible
