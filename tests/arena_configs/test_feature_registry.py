"""The registry of demands holds together; the site's reference is made of it."""

from __future__ import annotations

from animalcat.arena_configs.features.chains import in_chain
from animalcat.arena_configs.features.registry import FEATURES


def test_names_are_unique_and_ranges_make_sense() -> None:
    for name, feature in FEATURES.items():
        assert feature.name == name
        assert feature.low < feature.high
        assert feature.version >= 1
        assert feature.chain == in_chain(name)
        assert feature.description
        assert not feature.description.endswith(".")
