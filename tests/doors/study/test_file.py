"""What a study file may say, and how it is told what is wrong with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from animalcat.doors.study.file import Study, html_of, read_study
from animalcat.text.marked_yaml import YamlError
from tests.doors.study.conftest import ASKED, STUDY

Write = Callable[..., Study]


def test_texts_stand_in_the_file_or_beside_it(written: Write, tmp_path: Path) -> None:
    (tmp_path / "how.md").write_text("# Wie\n\n![ball](ball.png)", "utf-8")
    (tmp_path / "ball.png").write_bytes(b"png")
    study = written(('"Walk with the arrow keys."', "how.md"))
    assert study.instructions[1].startswith("# Wie")
    assert study.pictures == {"ball.png"}
    same = written(('"Walk with the arrow keys."', "how.md"), ("contact: Dr", "contact: Prof"))
    assert same.consent.digest == study.consent.digest
    assert same.digest != study.digest
    (tmp_path / "de.yaml").write_text("go_on: Weiter")
    other = written(("You *may* leave", "You may leave"), ("debrief:", "words: de.yaml\ndebrief:"))
    assert (other.texts["go_on"], other.texts["back"]) == ("Weiter", "Back")
    assert other.consent.digest != study.consent.digest


def test_conditions_change_what_they_name_alone(written: Write) -> None:
    study = written(("{name: plain}", "{name: plain, play: {policy: random}}"))
    assert study.measured("plain").options == {"max_episodes": 4, "policy": "random"}
    assert study.measured("scored").options == {"max_episodes": 4}
    assert study.shows("scored").score
    assert not study.shows("plain").score


def test_blocks_stand_in_all_orders_of_a_latin_square(written: Write) -> None:
    latin = ("trials: 2, minutes: 0", "latin: {a: [a1, a2], b: [b1, b2], c: [c1, c2]}")
    text = STUDY.partition("conditions:")[0]
    study = written(latin, text=text)
    orders = [one.name.split("-") for one in study.conditions]
    places = [(at, name) for order in orders for at, name in enumerate(order)]
    for pairs in (places, [pair for order in orders for pair in pairwise(order)]):
        assert {*Counter(pairs).values()} == {2}  # at each place, and behind each other one
    assert len({*pairs}) == 6
    played = study.measured("b-a-c").options
    assert (played["policy"], played["max_episodes"]) == ("listed", 6)
    assert [*played["first"]] == ["b1", "b2", "a1", "a2", "c1", "c2"]
    assert study.blocks.most == (2, 0.0)
    kept = Study.model_validate(study.model_dump(mode="json"))
    assert (kept.digest, kept.conditions) == (study.digest, study.conditions)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("right: 1", "right: 3", "understanding.questions[0]: right is 3, and answers are 1 to 2"),
        (", right: 1", "", "understanding.questions: each needs a right answer"),
        ("debrief:", "questions: {after: [{ask: Why?}]}\ndebrief:", "needs a name of its own"),
        ("max_episodes: 4", "max_episode: 4", "did you mean 'max_episodes'?"),
        ("max_episodes: 4", "practice: 4", "practice is not chosen here"),
        ('"It was about finding."', "gone.md", "gone.md: No such file"),
        ('"It was about finding."', '"![x](../x.png)"', "does not stand beside the study file"),
        ('"It was about finding."', '"![x](https://x.org/x.png)"', "does not stand beside"),
        ("weight: 2", "weight: 0", "conditions[1].weight"),
        ("score: true", "scores: true", "conditions.scored: scores: there is no such key"),
        ("https://app", "javascript://app", "is no link"),
        ("{code: OUT}", "{code: NO}", "give a text, in quotes"),
        ("{trials: 2", "{latin: {a: [x], b: [y, z]}", "blocks.latin: give each block as many"),
        ("{trials: 2", "{latin: {a: [x], b: [y]}", "blocks.latin makes the conditions"),
        ("title:", "titel:", "title: it is missing"),
        ("study: finding-things", "study: ../things", "study: name '../things' is not"),
        ("passes: 1, of: 2", "passes: 3, of: 2", "each must be at most the next"),
        ("debrief:", "title: again\ndebrief:", "title: given already in line 3"),
        ("debrief:", "words: {go_on: 'Weiter {x}'}\ndebrief:", "the English text has no braces"),
        ("debrief:", "words: {goon: Weiter}\ndebrief:", "there is no text 'goon'"),
        ("debrief:", "who: {by: codes, codes: [a, a]}\ndebrief:", "'a' is there twice"),
        ("debrief:", "who: {visits: 2}\ndebrief:", "who comes again is known by a code"),
        ("debrief:", "- x\ndebrief:", "block mapping"),
        ("title: Finding things", "title: .5", "title: it is read as '0.5'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    written: Write, tmp_path: Path, old: str, new: str, wanted: str
) -> None:
    with pytest.raises(YamlError) as error:
        written((old, new))
    assert wanted in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 'study.yaml'}:")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("age", ["18", " 99 "], ["", "17", "x", "nan", "18 19"]),
        ("games", ["1", "3 1"], ["", "4", "0", "1 1"]),
        ("hard", ["1", "5"], ["", "6", "1 2"]),
        ("said", ["", "It was\ndark."], ["x" * 5001]),
    ],
)
def test_answers_are_kept_as_they_fit(
    written: Write, name: str, good: list[str], bad: list[str]
) -> None:
    study = written(ASKED)
    asked = {question.name: question for at in ("before", "after") for question in study.asked(at)}
    assert [asked[name].read(said) for said in good] == [said.strip() for said in good]
    for said in bad:
        with pytest.raises(ValueError, match=r"no answer|could not|invalid literal"):
            asked[name].read(said)


def test_a_file_that_is_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(YamlError, match="No such file"):
        read_study(tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("[1, 2]")
    with pytest.raises(YamlError, match="give keys and values"):
        read_study(tmp_path / "list.yaml")


def test_nothing_in_a_text_can_run() -> None:
    hostile = '<script>alert(1)</script>\n\n[x](javascript:alert(1)) <img src=x onerror="y">'
    html = html_of(hostile)
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "fixtures").glob("*.yaml")))
def test_a_file_of_a_released_version_means_what_it_meant(path: Path) -> None:
    then = json.loads(path.with_suffix(".json").read_text("utf-8"))
    now = read_study(path).model_dump(mode="json") | {"folder": ""}
    assert _as_then(now, then) == then


def _as_then(now: Any, then: Any) -> Any:
    """What is said now, without keys that were not known then."""
    if isinstance(then, dict):
        return {key: _as_then(now[key], value) for key, value in then.items()}  # pyright: ignore
    if isinstance(then, list):
        return [_as_then(*pair) for pair in zip(now, then, strict=True)]  # pyright: ignore
    return now
