"""Agents as Python gives them: a reference, a file, a class, an object, or what makes one."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from animalcat.client.evaluation import AnyAgent
from animalcat.envs.agents.fingerprint import AgentFingerprint, differences, in_words
from animalcat.envs.agents.load import check_name
from animalcat.envs.agents.objects import fingerprint_of
from animalcat.envs.agents.watching import as_now
from animalcat.errors import AnimalcatError
from animalcat.values import Battery, Session

AgentSource: TypeAlias = "AnyAgent | Callable[[], Any] | str | os.PathLike[str] | GivenAgent"
"""What an agent may be given as."""

_WANTED: Final = (
    "an agent has reset(info) and act(observation); give an object or its class, a reference such "
    "as 'builtin:scout', or 'agent.py:MyAgent'"
)


class GivenAgent(NamedTuple):
    """An agent that is to be measured.

    Attributes:
        name: What its sessions call it.
        reference: Of an agent that runs in a process of its own; empty for an object.
        player: The object, or what makes one; None for a reference.
        fingerprint: What the object is; None for a reference, whose process says it.
        source: The object that the fingerprint is of.
    """

    name: str
    reference: str = ""
    player: AnyAgent | None = None
    fingerprint: AgentFingerprint | None = None
    source: object = None


def read_agent(source: AgentSource, name: str | None, slots: int = 1) -> GivenAgent:
    """Read an agent.

    Args:
        source: The agent.
        name: What its sessions call it; None for the name of its class, or the reference.
        slots: How many episodes it plays at once. One object plays one.

    Raises:
        AnimalcatError: It is no agent.
    """
    if isinstance(source, GivenAgent):
        return source
    if isinstance(source, Battery | Mapping):
        raise AnimalcatError(
            "agent is a battery: the agent comes first, as in lab.measure(agent, battery)",
            "INVALID_REQUEST",
        )
    if isinstance(source, str | os.PathLike):
        reference = _reference(os.fspath(source))
        _check(reference)
        return GivenAgent(name or reference, reference)
    made: Any = source
    if isinstance(source, type) or (callable(source) and not hasattr(source, "act")):
        try:
            made = source()
        except TypeError as error:
            raise AnimalcatError(
                f"{_name_of(source)} cannot be made without arguments ({error}); give an object, "
                f"{_name_of(source)}(...), or a function that makes one",
                "INVALID_REQUEST",
            ) from None
    for method in ("reset", "act"):
        if not callable(getattr(made, method, None)):
            raise AnimalcatError(
                f"agent {made!r:.80} has no method {method}: {_WANTED}", "INVALID_REQUEST"
            )
    kind = _name_of(type(made))
    return GivenAgent(name or kind, "", source if slots > 1 else made, fingerprint_of(made), made)


def _check(reference: str) -> None:
    """Refuse a reference that names no agent, before anything is made for it."""
    from animalcat.apart import check_reference

    check_reference(reference)


def _name_of(thing: Any) -> str:
    return str(getattr(thing, "__name__", type(thing).__name__))


def _reference(text: str) -> str:
    """A reference as the command line has it; of a file alone, with the one agent in it."""
    kind, colon, _ = text.partition(":")
    if colon and (kind in ("builtin", "plugin") or ".py" in text):
        return text
    path = Path(text).expanduser()
    if path.suffix != ".py":
        from animalcat.envs.agents.load import BUILTIN

        hint = f"; did you mean 'builtin:{text}'?" if text in BUILTIN else ""
        raise AnimalcatError(f"agent {text!r}{hint or f': {_WANTED}'}", "INVALID_REQUEST")
    if not path.is_file():
        raise AnimalcatError(f"agent {text!r}: there is no file {path}", "INVALID_REQUEST")
    classes = [
        node.name
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
        and {"reset", "act"} <= {getattr(part, "name", "") for part in node.body}
    ]
    if len(classes) != 1:
        there = ", ".join(classes) or "none with reset and act"
        raise AnimalcatError(
            f"agent {text!r}: say which class, as in '{text}:MyAgent'; there are: {there}",
            "INVALID_REQUEST",
        )
    return f"{path}:{classes[0]}"


def words_of_change(session: Session, agent: str | AgentFingerprint) -> str:
    """In what an agent differs from the one that a session has, in words; empty if in nothing.

    Args:
        session: One without episodes has no agent yet, whoever came.
        agent: The fingerprint of an object; or a reference, of which only files that the agent is
            known to have read are looked at: the rest is seen when it plays.
    """
    known = session.identity.fingerprint
    if known is None or not session.episodes + session.practised or known.source == "declared":
        return ""
    changes = [
        differences(before, as_now(before, check_name(agent)) if isinstance(agent, str) else agent)
        for before in (known, *session.identity.others)
    ]
    return in_words(changes[0]) if all(changes) else ""
