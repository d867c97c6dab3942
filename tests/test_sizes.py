"""What has grown is refused with a sentence, and names are seen for what they are."""

from __future__ import annotations

import pytest

from tests.sizes import (
    Limit,
    is_bare,
    lower_limits,
    read_limits,
    refusals,
    reminders,
    show_limits,
)

LIMITS = {"lines": {"envs": Limit(1000), "service": Limit(2000, 'for "some" reason')}}
BY_HAND = {"suite": {"loops": Limit(12.5, "measured seldom")}}


def test_what_has_grown_is_refused_and_what_fell_is_written_down() -> None:
    assert not refusals({"lines": {"envs": 1000, "service": 1990}}, LIMITS)
    assert not reminders({"lines": {"envs": 1000, "service": 1990}}, LIMITS)
    counts = {"lines": {"envs": 1001, "new": 3, "service": 1900}}
    grown, new = refusals(counts, LIMITS)
    assert grown.startswith("lines.envs is 1,001, which is 1 more than the 1,000 of tests/")
    assert new.startswith("lines.new is 3, which is 3 more than the 0")
    (fallen,) = reminders(counts, LIMITS)
    assert fallen.startswith("lines.service fell from 2,000 to 1,900")
    lower = lower_limits(counts, LIMITS | BY_HAND)
    rows = {"envs": Limit(1000), "new": Limit(3), "service": Limit(1900, 'for "some" reason')}
    assert lower == {"lines": rows} | BY_HAND
    assert read_limits(show_limits(lower)) == lower


@pytest.mark.parametrize("name", ["told", "_found", "left_out", "as_predicted", "not_told_apart"])
def test_a_bare_participle_is_seen(name: str) -> None:
    assert is_bare(name)
