"""The registry of demands holds together; the site's reference is made of it."""

from __future__ import annotations

from animalcat.arena_configs.features.chains import IN_CHAIN, in_chain
from animalcat.arena_configs.features.registry import FEATURES


def test_how_parts_add_up_is_said_of_demands_that_there_are() -> None:
    said = [name for names in IN_CHAIN.values() for name in names.split()]
    assert len(said) == len({*said})
    assert {*said} < FEATURES.keys()


def test_names_are_unique_and_ranges_make_sense() -> None:
    for name, feature in FEATURES.items():
        assert feature.name == name
        assert feature.low < feature.high
        assert feature.version >= 1
        assert feature.chain == in_chain(name)
        assert feature.description
        assert not feature.description.endswith(".")
