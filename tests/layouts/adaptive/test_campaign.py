"""What the agents of a campaign play in common."""

from __future__ import annotations

from collections import Counter

from animalcat.layouts.adaptive.campaign import common_instances
from animalcat.layouts.inference.randomness import rng


def test_common_instances_are_of_every_paradigm_by_its_share() -> None:
    paradigms = ["rare"] * 10 + ["usual"] * 60 + ["often"] * 30
    rows = common_instances(paradigms, 20, rng(0, "common", 0))
    assert len(set(rows)) == 20
    assert Counter(paradigms[row] for row in rows) == {"rare": 2, "usual": 12, "often": 6}
    assert rows == common_instances(paradigms, 20, rng(0, "common", 0))
    assert rows != common_instances(paradigms, 20, rng(1, "common", 0))
    assert sorted(common_instances(paradigms[:3], 20, rng(0, "common", 0))) == [0, 1, 2]
