"""What the clients show, and that nothing of the wire is seen in it."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import Any

import pytest

import animalcat
from animalcat.v1 import sessions_pb2
from animalcat.values import Session, SessionState
from animalcat.wire.codec import decode, encode


def test_times_are_utc_and_values_do_not_change() -> None:
    message = sessions_pb2.Session(name="sessions/s", state=sessions_pb2.SESSION_STATE_WAITING)
    message.create_time.FromDatetime(datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC))
    session = decode(Session, message)
    assert session.created == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    with pytest.raises(FrozenInstanceError):
        session.paused = False  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("state", SessionState)
def test_a_session_that_plays_or_waits_is_not_over(state: SessionState) -> None:
    session = Session(
        "s", animalcat.values.SessionSpec("a", "b"), state, "", datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert decode(Session, encode(session)).over == (state not in ("waiting", "running"))


def public(kind: type) -> dict[str, Any]:
    return {name: one for name, one in vars(kind).items() if not name.startswith("_")}


def test_both_clients_have_the_same_calls() -> None:
    aio, blocking = public(animalcat.AsyncClient), public(animalcat.Client)
    assert blocking.keys() - aio.keys() == {"address", "aio", "iterate", "run"}
    assert aio.keys() <= blocking.keys()
    for name in aio.keys() - {"close", "evaluate"}:
        ours, theirs = inspect.signature(blocking[name]), inspect.signature(aio[name])
        assert ours.parameters == theirs.parameters
        assert blocking[name].__doc__ == aio[name].__doc__
        assert ours.return_annotation == theirs.return_annotation.replace(
            "AsyncGenerator", "Iterator"
        )


def test_no_message_of_the_wire_is_seen() -> None:
    for name, method in public(animalcat.AsyncClient).items():
        assert "pb2" not in str(inspect.signature(method)), name


def test_public_names_are_there_and_documented() -> None:
    for name in animalcat.__all__:
        assert (getattr(animalcat, name).__doc__ or "").strip(), name
    packages = {"data", "layouts", "plots", "values"}
    assert {*dir(animalcat)} == {*animalcat.__all__, *packages, "__version__"}
    assert all(getattr(animalcat, name).__all__ for name in packages)
    with pytest.raises(AttributeError, match="nonsense"):
        animalcat.nonsense  # pyright: ignore[reportAttributeAccessIssue]  # noqa: B018


@pytest.mark.parametrize(
    "package", ["apart", "client", "data", "lab", "layouts", "maps", "plots", "values"]
)
def test_packages_show_what_is_public_and_nothing_else(package: str) -> None:
    home = importlib.import_module(f"animalcat.{package}")
    assert sorted(home.__all__) == dir(home)
    for name in dir(home):
        thing = getattr(home, name)
        named = inspect.isclass(thing) or inspect.isroutine(thing)
        assert thing.__doc__ or not named, name
