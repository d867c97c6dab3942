"""docs/demands.md has a row for every demand of the registry, word for word.

`python -m tests.arena_configs.test_demands_page` writes the tables anew.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from animalcat.arena_configs.features import FEATURES, FeatureDefinition

PAGE = Path(__file__).resolve().parents[2] / "docs" / "demands.md"
HEAD = "| demand | unit | range | version | what it is |\n|---|---|---|---|---|\n"
TABLE = re.compile(r"(?<=<!-- demands: )([\w ]+)( -->\n)((?:\|.*\n)*)")


def number(value: float) -> str:
    return "∞" if value == math.inf else "-∞" if value == -math.inf else f"{value:g}"


def row(feature: FeatureDefinition) -> str:
    limits = f"{number(feature.low)} to {number(feature.high)}"
    played = " (by playing)" if feature.measured == "playing" else ""
    return (
        f"| `{feature.name}` | {feature.unit} | {limits} | {feature.version} "
        f"| {feature.description}{played} |\n"
    )


def table(group: str) -> str:
    return HEAD + "".join(row(one) for one in FEATURES.values() if one.group == group)


def test_every_demand_is_in_the_table_of_its_group() -> None:
    found = {group: text for group, _, text in TABLE.findall(PAGE.read_text("utf-8"))}
    assert found.keys() == {feature.group for feature in FEATURES.values()}
    for group, text in found.items():
        assert text == table(group), f"write it anew: python -m {__name__}"


def test_names_are_unique_and_ranges_make_sense() -> None:
    for name, feature in FEATURES.items():
        assert feature.name == name
        assert feature.low < feature.high
        assert feature.version >= 1
        assert feature.description
        assert not feature.description.endswith(".")


if __name__ == "__main__":
    PAGE.write_text(
        TABLE.sub(lambda met: f"{met[1]}{met[2]}{table(met[1])}", PAGE.read_text("utf-8")), "utf-8"
    )
