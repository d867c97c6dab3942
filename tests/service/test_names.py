"""Names of resources survive a round trip, and nothing is smuggled through them."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from animalcat.text import names
from animalcat.text.names import BadNameError

ALPHABET = string.ascii_letters + string.digits + "._-"
components = st.text(ALPHABET, min_size=1, max_size=100).filter(lambda t: t not in (".", ".."))
numbers = st.integers(0, 99_999)


@given(components)
def test_round_trips(component: str) -> None:
    assert names.parse_session(names.session_name(component)) == component
    assert names.parse_battery(names.battery_name(component)) == component
    assert names.parse_profile(names.profile_name(component)) == component


@given(st.text(max_size=150))
def test_any_text_is_a_component_or_refused(text: str) -> None:
    try:
        name = names.session_name(text)
    except BadNameError:
        assert text in (".", "..") or not text or len(text) > 100 or set(text) - set(ALPHABET)
    else:
        assert name.count("/") == 1


@given(st.text(max_size=300))
def test_any_text_has_a_component_near_it(text: str) -> None:
    component = names.to_component(text)
    assert names.check_component(component) == component


@pytest.mark.parametrize(
    "name",
    [
        "",
        "sessions",
        "sessions/",
        "sessions/..",
        "sessions/../x",
        "sessions/a/b",
        "sessions/a\n",
        "sessions/a b",
        "sessions/ä",
        "/sessions/a",
        "batteries/a",
        "sessions/" + "a" * 101,
    ],
)
def test_bad_session_names(name: str) -> None:
    with pytest.raises(BadNameError):
        names.parse_session(name)


@pytest.mark.parametrize("episode", ["", "-1", "01", "1-", "1-02", "1-2-3", "x", "1/2", "9" * 10])
def test_bad_episode_names(episode: str) -> None:
    with pytest.raises(BadNameError):
        names.parse_episode(f"sessions/s/episodes/{episode}")


@pytest.mark.parametrize("text", ["builtin:scout", "./my agent.py:A", "Ägent", "~/x", "1", "a=b"])
def test_labels_are_what_prints(text: str) -> None:
    assert names.check_label(text, "agent") == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "0 characters"),
        ("a" * 201, "201 characters"),
        ("a\x1b]0;title\x07", "do not print"),
        ("a\nb", "do not print"),
        (" a", "white space"),
        ("\u202egnp", "do not print"),
        ("=1+1", "formula"),
        ("+1", "formula"),
        ("-1", "formula"),
        ("@a", "formula"),
    ],
)
def test_what_acts_on_terminals_or_in_spreadsheets_is_no_label(text: str, why: str) -> None:
    with pytest.raises(names.BadNameError, match=why):
        names.check_label(text, "agent")
