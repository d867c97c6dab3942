"""What follows from the attempts of a session."""

from __future__ import annotations

import pytest

from animalcat.arena_configs.instance import Instance
from animalcat.service.session.evidence import AHEAD, lag
from animalcat.service.session.ledger import MAX_FAULTS, Ledger
from animalcat.values import PRACTICE, Cause, Decision, Episode, MadeAs, MadeInstance, Outcome


def decision(instance: str) -> Decision:
    return Decision(instance, 0.0, 1.0, 0.5, {}, "random")


def twin(of: str) -> Decision:
    instance = Instance(f"{of}-twin", "p", {}, 0.0, 250, 7, "")
    return Decision(
        instance.name, 0.0, 0.0, 0.0, {}, PRACTICE, made=MadeInstance(of, instance, "", MadeAs.TWIN)
    )


def episode(number: int, outcome: Outcome, attempt: int = 0, cause: str = "") -> Episode:
    return Episode(
        "s", number, attempt, decision(f"i{number}"), "p", outcome, cause=cause, seconds=1.0
    )


class TestLedger:
    def test_what_was_begun_and_does_not_count_comes_first(self) -> None:
        ledger = Ledger([episode(0, Outcome.SUCCESS), episode(1, Outcome.VOID)])
        assert (ledger.begun, ledger.idle) == (2, 1)
        ledger.begin(episode(1, Outcome.SUCCESS, 1))
        assert ledger.idle is None
        assert ledger.tries(1) == 2
        ledger.end(episode(1, Outcome.SUCCESS, 1))
        assert [e.number for e in ledger.rest] == [0, 1]

    def test_outcomes_that_were_not_told_are_pending(self) -> None:
        ledger = Ledger([episode(k, Outcome.SUCCESS) for k in (0, 1, 2)])
        ledger.begin(episode(3, Outcome.SUCCESS))
        ledger.tell(0)
        assert ledger.untold == 1
        assert ledger.pending(4) == ["i1", "i2", "i3"]
        assert ledger.pending(3) == ["i1", "i2"]
        ledger.tell(2)
        assert (ledger.untold, ledger.pending(4)) == (1, ["i1", "i3"])

    def test_an_instance_that_fails_too_often_is_decided_anew(self) -> None:
        faults = [episode(0, Outcome.FAULT, k, "backend: no") for k in range(MAX_FAULTS)]
        assert Ledger(faults[:-1]).decision(0) == decision("i0")
        ledger = Ledger(faults)
        assert ledger.decision(0) is None
        assert ledger.set_aside == {"i0"}
        assert ledger.pending(1) == []

    def test_what_was_begun_is_not_practised_on_whatever_became_of_it(self) -> None:
        """Also what is scored in another slot, and the arenas whose twins failed too often."""
        ledger = Ledger(
            [
                Episode("s", 0, k, twin(name), "p", Outcome.FAULT, cause="backend: no")
                for k, name in enumerate([*["a"] * MAX_FAULTS, *["b"] * MAX_FAULTS])
            ],
            practice=1,
        )
        ledger.begin(Episode("s", 1, 0, decision("i1")))
        assert ledger.decision(0) is None
        assert ledger.chosen() == {"a", "b", "i1"}

    @pytest.mark.parametrize("cause", [Cause.SERVER_STOPPED, Cause.SESSION_STOPPED])
    def test_faults_of_ours_blame_nobody(self, cause: Cause) -> None:
        ledger = Ledger([episode(0, Outcome.FAULT, k, cause.value) for k in range(20)])
        assert not ledger.backend_fails
        assert ledger.set_aside == set()


def test_one_slot_waits_for_nothing() -> None:
    assert [lag(slots) for slots in (1, 2, 3)] == [0, AHEAD, 2 * AHEAD]
