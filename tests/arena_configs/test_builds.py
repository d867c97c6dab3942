"""What differs between builds of Animal-AI, and what `arena check` says of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from animalcat.arena_configs.builds import BUILDS, Build, build_named, config_in
from animalcat.arena_configs.checks import check_loaded
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena, ArenaConfig, ArenaError, Problem
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import ArenaOrder

TREE = """\
!ArenaConfig
arenas:
  0: !Arena
    t: 250
    pass_mark: 0
    random_seed: 3
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 5, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: SpawnerTree
      positions: [!Vector3 {x: 20, y: 0, z: 20}]
      spawnCounts: [3]
      finalValues: [2]
      delays: [1]
    - !Item
      name: Wall
      positions: [!Vector3 {x: 30, y: 0, z: 30}]
      rotations: [0]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
      colors: [!RGB {r: 1, g: 2, b: 3}]
"""
HUGE = TREE.replace("x: 20, y: 0, z: 20", "x: 20, y: {}, z: 20")


def check(text: str, build: Build) -> list[Problem]:
    rng = np.random.default_rng(0)
    return list(check_loaded(load_text(text, "a.yml"), rng, file="a.yml", build=build))


def tell_all(text: str, build: Build, code: str) -> dict[int | None, str]:
    """Line -> message of the problems of a kind."""
    return {one.line: one.message for one in check(text, build) if one.code == code}


def test_a_build_has_one_name_and_its_versions() -> None:
    names = {"4.3.1": "4.x", "4.4.0": "4.x", "4.2.2": "4.2", "4.0.1": "4.1", "3.1.3": "3.1.3"}
    assert {name: build_named(name) for name in names} == names
    assert [build_named(build) for build in BUILDS] == list(BUILDS)
    for wrong in ("5", "3.0.1", "4.x.1", ""):
        with pytest.raises(ValueError, match=r"there are: 4\.x, 4\.2, 4\.1, 3\.1\.3"):
            build_named(wrong)


def test_what_a_build_does_not_heed_is_a_warning_with_its_line_and_who_does() -> None:
    new = tell_all(TREE, "4.x", "ignored-field")
    assert list(new) == [15, 16, 17]
    assert "build 4.x does not heed `spawnCounts`; build 3.1.3 heeds it" in new[15]
    assert "`delays`; no build heeds it here" in new[17]
    assert list(tell_all(TREE, "3.1.3", "ignored-field")) == [17]
    assert "builds 4.x, 4.1, 3.1.3 heed it" in tell_all(TREE, "4.2", "ignored-field")[23]
    assert all(one.severity == "warning" for one in check(TREE, "4.x"))


def test_names_of_another_grammar_are_told_of_the_build_that_refuses_them() -> None:
    assert list(tell_all(TREE, "4.x", "old-field")) == [6]
    assert not tell_all(TREE, "3.1.3", "old-field")
    newer = TREE.replace("t: 250", "timeLimit: 250").replace("    pass_mark: 0\n", "")
    assert "wants `t`" in tell_all(newer, "3.1.3", "new-field")[4]
    assert not tell_all(newer, "4.x", "new-field")


def test_an_old_build_merges_no_arenas() -> None:
    merging = ArenaConfig(arenas={0: Arena(merge_next_arena=True), 1: Arena()})
    assert config_in(merging, "4.x") is merging
    assert not config_in(merging, "3.1.3").arenas[0].merge_next_arena
    text = TREE.replace("    t: 250\n", "    t: 250\n    mergeNextArena: true\n")
    text += (
        text[text.index("  0: !Arena") :].replace("0: !Arena", "1: !Arena").replace("true", "false")
    )
    assert 5 in tell_all(text, "3.1.3", "ignored-field")
    assert 5 not in tell_all(text, "4.x", "ignored-field")


def test_an_old_build_goes_over_gaps_in_the_numbers() -> None:
    config = ArenaConfig(arenas={0: Arena(), 2: Arena(), 5: Arena()})
    rng = np.random.default_rng(0)
    orders = {build: ArenaOrder(config, build) for build in BUILDS}
    played = {build: [order.next(rng) for _ in range(4)] for build, order in orders.items()}
    assert played == {"4.x": [0] * 4, "4.2": [0] * 4, "4.1": [0] * 4, "3.1.3": [0, 2, 5, 0]}
    any_but_the_last = ArenaOrder(config.model_copy(update={"randomize_arenas": True}), "3.1.3")
    numbers = [any_but_the_last.next(rng) for _ in range(60)]
    assert set(numbers) == {0, 2, 5}
    assert all(one != after for one, after in pairwise(numbers))


@pytest.mark.parametrize("number", ["1e30", "-1e30", "1e38", "1e10"])
@pytest.mark.filterwarnings("error")
def test_numbers_out_of_all_bounds_are_errors_with_their_line(number: str) -> None:
    text = HUGE.replace("{}", number)
    [problem] = [one for one in check(text, "4.x") if one.severity == "error"]
    assert (problem.line, problem.code) == (14, "too-large")
    assert str(problem).startswith("a.yml:14")
    with pytest.raises(ArenaError, match=r"items\[1\]\.positions\[0\]\.y.*out of all bounds"):
        place(load_text(text, "a.yml").config.first, np.random.default_rng(0))
