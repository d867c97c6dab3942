"""docs/demands.md has a row for every demand of the registry, word for word.

`python -m tests.arena_configs.test_demands_page` writes the tables anew.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from animalcat.arena_configs.features import FEATURES, FeatureDefinition
from animalcat.arena_configs.features.chains import IN_CHAIN, in_chain

PAGE = Path(__file__).resolve().parents[2] / "docs" / "demands.md"
HEAD = "| demand | unit | range | version | in a chain | what it is |\n|---|---|---|---|---|---|\n"
TABLE = re.compile(r"(?<=<!-- demands: )([\w ]+)( -->\n)((?:\|.*\n)*)")


def number(value: float) -> str:
    return "∞" if value == math.inf else "-∞" if value == -math.inf else f"{value:g}"


def row(feature: FeatureDefinition) -> str:
    limits = f"{number(feature.low)} to {number(feature.high)}"
    played = " (by playing)" if feature.measured == "playing" else ""
    return (
        f"| `{feature.name}` | {feature.unit} | {limits} | {feature.version} "
        f"| {feature.chain or 'not measured'} | {feature.description}{played} |\n"
    )


def table(group: str) -> str:
    return HEAD + "".join(row(one) for one in FEATURES.values() if one.group == group)


def test_every_demand_is_in_the_table_of_its_group() -> None:
    found = {group: text for group, _, text in TABLE.findall(PAGE.read_text("utf-8"))}
    assert found.keys() == {feature.group for feature in FEATURES.values()}
    for group, text in found.items():
        assert text == table(group), f"write it anew: python -m {__name__}"


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


if __name__ == "__main__":
    PAGE.write_text(
        TABLE.sub(lambda met: f"{met[1]}{met[2]}{table(met[1])}", PAGE.read_text("utf-8")), "utf-8"
    )
