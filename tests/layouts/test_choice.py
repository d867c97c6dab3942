"""Which variant of a layout is taken where none is named, and what a battery hardly asks for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.explaining.asking import asking_instances, hardly_asked
from animalcat.layouts.library import LAYOUTS, load_layout, parse_layout
from animalcat.layouts.library.choice import choose, hint, look_at, words_of_choice
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout

READING = """
name: reading
variant: short
choose_from: [long, short]
measures: [skill]
features:
  words: {unit: "1", low: 0, high: 100}
  hard: {unit: "1", low: 0, high: 1, if_missing: 0}
latents:
  skill: {kind: capability, unit: "1", prior: {scaled_beta: {low: 0, high: 150}}}
  wit: {kind: capability, unit: "1", prior: {scaled_beta: {low: 0, high: 1}}}
derived:
  reading: {link: {logistic_margin: {ability: skill, demand: words, slope: 0.2}}}
  guessing: {link: {gate: {input: wit, when: hard}}}
  passing: {link: {product: {inputs: [reading, guessing]}}}
outcome: {bernoulli: {probability: passing}}
variants:
  long:
    features: {words: {high: 120}}
    excludes: {pictures: {above: 0}}
  printed:
    features: {words: {high: 1000}}
"""
SHORT = parse_layout(READING)


def texts(words: list[float], pictures: list[float] | None = None) -> Instances:
    columns = {"words": words, **({} if pictures is None else {"pictures": pictures})}
    return Instances(tuple(columns), np.array([*columns.values()]).T)


@pytest.mark.parametrize(
    ("words", "pictures", "taken", "counts"),
    [
        ([10, 110], None, "long", "long 2, short 1"),
        ([10, 20], None, "long", "long 2, short 2"),  # of equals the first
        ([10, 500], None, "long", "long 1, short 1"),  # printed is not for measuring
        ([10, 20, 30], [0, 1, 1], "long", "long 1, short 1"),  # not the one that does not look
        ([500], None, "short", "long 0, short 0"),  # none covers it: as it is loaded
    ],
)
def test_the_variant_that_covers_most_is_taken(
    words: list[float], pictures: list[float] | None, taken: str, counts: str
) -> None:
    choice = choose(SHORT, look_at(texts(words, pictures)))
    assert (choice.layout.variant, choice.counts) == (taken, counts)
    assert (choice.layout.variants, choice.layout.choices) == (SHORT.variants, SHORT.choices)


def test_it_is_said_which_one_is_taken_and_that_another_covers_more() -> None:
    look = look_at(texts([10, 110]))
    choice = choose(SHORT, look)
    assert words_of_choice(choice.layout, choice) == (
        "The layout reading is used in its variant long, which covers most of 2 arenas "
        "(long 2, short 1)."
    )
    assert hint(choice.layout, choice, look) == ""
    assert words_of_choice(SHORT, choice).endswith("variant short, chosen by name.")
    assert words_of_choice(SHORT, choice, "long").endswith(
        "chosen by name; the battery names long."
    )
    assert words_of_choice(choice.layout, choice, "long").endswith(
        "variant long, which the battery names."
    )
    assert hint(SHORT, choice, look).startswith(
        "The variant long of reading covers 2 of 2 arenas, and short 1: take it with --variant long"
    )
    alike = choose(SHORT, look_at(texts([10, 20])))
    assert "the first of those that cover as much as any of 2 arenas" in words_of_choice(
        alike.layout, alike
    )


def test_only_declared_variants_are_chosen_from() -> None:
    for name in LAYOUTS:
        layout = load_layout(name)
        names = [choice.variant for choice in layout.choices]
        assert names == (["measured", "refined"] if name == "object-permanence" else [])
        assert set(names) <= set(layout.variants)
    plain = parse_layout(READING.replace("choose_from: [long, short]\n", ""))
    choice = choose(plain, look_at(texts([110])))
    assert choice.layout is plain
    assert words_of_choice(plain, choice) == ""  # there was nothing to choose
    other = parse_layout(READING.replace("choose_from: [long, short]\n", ""), "printed")
    assert words_of_choice(other, choose(other, look_at(texts([110])))).endswith(
        "printed, chosen by name."
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("choose_from: [long, shrt]", "variant 'shrt'"),
        ("choose_from: long", "choose_from: expected a list of names, not 'long'"),
        ("choose_from: [long, long]", "a name occurs twice"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused(text: str, words: str) -> None:
    with pytest.raises(SpecificationError, match=words):
        parse_layout(READING.replace("choose_from: [long, short]", text))


@pytest.mark.parametrize(
    ("layout", "counts"),
    [
        (SHORT, {"skill": 9}),
        (parse_layout(READING.replace("measures: [skill]\n", "")), {"skill": 9, "wit": 1}),
    ],
)
def test_what_asks_for_a_capability(layout: Layout, counts: dict[str, int]) -> None:
    # Nobody needs skill for a text that has next to no words and is to be passed half the time.
    rows = np.column_stack([np.linspace(20, 100, 9), np.eye(9)[0]])
    assert {
        name: int(asks.sum()) for name, asks in asking_instances(layout, rows).items()
    } == counts


def test_what_is_hardly_asked_for_is_said() -> None:
    arenas, played = {"OPAbility": 62, "memoryAbility": 62}, {"OPAbility": 4, "memoryAbility": 9}
    layout = load_layout("object-permanence")
    (before,) = hardly_asked(layout, arenas, 1664, played, 40)
    assert before == (
        "OPAbility and memoryAbility, which the layout object-permanence is about, are hardly "
        "asked for: by 62 of the 1664 arenas. A session can say little about them here."
    )
    (after,) = hardly_asked(layout, dict.fromkeys(arenas, 586), 2188, played, 40)
    assert "is hardly asked for so far: by 4 of 40 episodes, though by 586 of the 2188" in after
    (apart,) = hardly_asked(layout, {"OPAbility": 6, "memoryAbility": 9}, 1664, played, 40)
    assert "are hardly asked for: by 6 and 9 of the 1664 arenas." in apart
    assert not [*hardly_asked(layout, dict.fromkeys(arenas, 586), 2188, played, 10)]
    (none,) = hardly_asked(layout, {"OPAbility": 0}, 12, {"OPAbility": 0}, 40)
    assert "is hardly asked for: by none of the 12 arenas. A session can say" in none


def test_a_table_in_python_takes_the_variant_that_covers_it() -> None:
    rows = pd.DataFrame({"words": [10.0, 110.0], "hard": [0, 1]})
    assert Bank.of(READING, rows).layout.variant == "long"
    with pytest.raises(ValueError, match="words above 100"):
        Bank.of(SHORT, rows)
