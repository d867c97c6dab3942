"""What follows from the attempts of a session."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from animalcat.arena_configs.instance import Instance
from animalcat.service.batteries.battery import Battery
from animalcat.service.measuring.faults import MAX_FAULTS
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.session.evidence import Evidence
from animalcat.values import (
    PRACTICE,
    Cause,
    Decision,
    Episode,
    MadeAs,
    MadeInstance,
    Outcome,
    Session,
    SessionSpec,
    SessionState,
)
from tests.service.conftest import NOW, open_floor

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(scope="module")
def battery(tmp_path_factory: pytest.TempPathFactory) -> Battery:
    return open_floor(4, tmp_path_factory.mktemp("batteries"))


@pytest.fixture(scope="module")
def names(battery: Battery) -> list[str]:
    return [one.name for one in battery.instances]


def decision(instance: str) -> Decision:
    return Decision(instance, 0.0, 1.0, 0.5, {}, "random")


def twin(of: str) -> Decision:
    instance = Instance(f"{of}-twin", "p", {}, 0.0, 250, 7, "")
    return Decision(
        instance.name, 0.0, 0.0, 0.0, {}, PRACTICE, made=MadeInstance(of, instance, "", MadeAs.TWIN)
    )


def episode(
    number: int, instance: str, outcome: Outcome | None, attempt: int = 0, cause: str = ""
) -> Episode:
    return Episode("s", number, attempt, decision(instance), "p", outcome, cause=cause)


def evidence(battery: Battery, attempts: Sequence[Episode], practice: int = 0) -> Evidence:
    """What is known before anything was told."""
    spec = SessionSpec("a", "open", practice=practice, certify=False)
    session = Session("s", spec, SessionState.WAITING, "", NOW)
    parts: Any = SimpleNamespace(store=None, fitter=None, files=None, versions={}, memory=None)
    return Evidence(session, Measurement(spec, battery), attempts, parts)


async def test_what_was_begun_and_does_not_count_comes_first(
    battery: Battery, names: list[str]
) -> None:
    attempts = [episode(0, names[0], Outcome.SUCCESS), episode(1, names[1], Outcome.VOID)]
    found = evidence(battery, attempts)
    assert (found.begun, found.idle) == (2, 1)
    found.begin(episode(1, names[1], None, 1))
    assert found.idle is None
    assert found.tries(1) == 2
    found.end(episode(1, names[1], Outcome.SUCCESS, 1))
    assert [e.number for e in found.counted] == [0, 1]


async def test_outcomes_that_were_not_told_are_pending(battery: Battery, names: list[str]) -> None:
    first, second, third, fourth = names
    outcomes = [Outcome.SUCCESS, Outcome.VOID, Outcome.FAILURE]
    found = evidence(battery, [episode(k, names[k], it) for k, it in enumerate(outcomes)])
    found.begin(episode(3, fourth, None))
    assert found.pending(4) == [first, second, third, fourth]
    await found.take_in(4)
    assert found.untold == 1
    assert found.pending(4) == [second, third, fourth]
    assert found.pending(3) == [second, third]
    await found.take_in_all(certify=False)  # also what follows a number that was never played
    assert (found.untold, found.pending(4)) == (1, [second, fourth])
    assert found.measurement.learner.n == 2


async def test_what_was_begun_is_not_practised_on_whatever_became_of_it(
    battery: Battery, names: list[str]
) -> None:
    """Also what is scored in another slot, and the arenas whose twins failed too often."""
    first, second, third, fourth = names
    found = evidence(
        battery,
        [
            Episode("s", 0, k, twin(name), "p", Outcome.FAULT, cause="backend: no")
            for k, name in enumerate([*[first] * MAX_FAULTS, *[second] * MAX_FAULTS])
        ],
        practice=1,
    )
    found.begin(episode(1, third, None))
    assert found.decision(0) is None
    chosen = await found.choose(0)
    assert chosen is not None
    assert chosen.instance == fourth


@pytest.mark.parametrize("cause", [Cause.SERVER_STOPPED, Cause.SESSION_STOPPED])
async def test_faults_of_ours_blame_nobody(
    battery: Battery, names: list[str], cause: Cause
) -> None:
    attempts = [episode(0, names[0], Outcome.FAULT, k, cause.value) for k in range(20)]
    found = evidence(battery, attempts)
    assert not found.backend_fails
    assert found.set_aside == set()
