"""When a process that was asked something is given up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count

import pytest

from animalcat.envs.patience import Patience, Watchdog
from animalcat.envs.pulse import Pulse

PATIENCE = Patience(quiet_seconds=20.0, cpu_seconds=100.0)


def looks_until_given_up(clock: Iterator[float], cpu: Iterator[float]) -> tuple[int, str]:
    """After how many looks, 300 at most, and why."""
    watch = Watchdog(PATIENCE, 1, clock=lambda: next(clock), cpu=lambda _: next(cpu))
    for looks in range(300):
        if reason := watch.look():
            return looks, reason
    return 300, ""


@pytest.mark.parametrize(
    ("seconds", "work", "looks", "reason"),
    [
        (5.0, 0.0, 4, "no answer for 20 s, nor any work"),  # it hangs
        (5.0, 0.05, 300, ""),  # a hundredth of a core: a machine with much else to do
        (5.0, 5.0, 20, "no answer after 100 s of CPU time"),  # an endless loop
        (5.0, 20.0, 5, "no answer after 100 s of CPU time"),  # on four cores
        (3600.0, 0.0, 2, "no answer for 20 s, nor any work"),  # hangs, on a machine that sleeps
    ],
)
def test_work_is_told_from_hanging(seconds: float, work: float, looks: int, reason: str) -> None:
    assert looks_until_given_up(count(0.0, seconds), count(7.0, work)) == (looks, reason)


def test_a_pulse_is_seen_by_the_other_process() -> None:
    ours = Pulse()
    theirs = Pulse(os.dup(ours.fd))
    theirs.beat()
    assert ours.read() == 1
    theirs.rest()
    assert ours.read() == theirs.read() == 2
    theirs.rest()
    assert ours.read() == 2
    ours.close()
    theirs.close()
