"""Loads an agent from `builtin:NAME` or `path/to/file.py:ClassName`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from animalcat.envs.agents.braitenberg import BraitenbergAgent
from animalcat.envs.agents.simple import ForwardAgent, RandomAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from animalcat.envs.agents.base import Agent


class AgentLoadError(ValueError):
    """The agent cannot be loaded; the message says why and what to do."""


def _planner() -> Agent:
    """The planner, which needs more than the base install."""
    try:
        from animalcat.envs.agents.planner import PlannerAgent
    except ModuleNotFoundError as error:
        raise AgentLoadError(
            f"agent 'builtin:planner' needs {error.name}, which is missing: "
            'pip install "animalcat[server]"'
        ) from error
    return PlannerAgent()


BUILTIN: Final[Mapping[str, Callable[[], Agent]]] = {
    "braitenberg": BraitenbergAgent,
    "forward": ForwardAgent,
    "planner": _planner,
    "random": RandomAgent,
}
"""The agents that come with the package."""

PRIVILEGED: Final = frozenset({"builtin:planner"})
"""Agents that play only where they are shown the arena's true state."""

_FORMS: Final = "expected builtin:NAME or path/to/file.py:ClassName"


def load_agent(reference: str) -> Agent:
    """Make an agent.

    The folder of a file is put at the front of `sys.path`, as when Python runs the file, so that it
    can import its neighbours. The file's code is run: load only what you trust.

    Args:
        reference: `builtin:NAME` or `path/to/file.py:ClassName`.

    Raises:
        AgentLoadError: The name, file or class does not exist, the file or the class's constructor
            fails, or the class lacks `reset` or `act`.
    """
    where, separator, name = reference.rpartition(":")
    if not separator or not where or not name:
        raise AgentLoadError(f"agent {reference!r}: {_FORMS}")
    if where == "builtin":
        if name not in BUILTIN:
            known = ", ".join(sorted(BUILTIN))
            raise AgentLoadError(f"agent {reference!r}: no such builtin; there are: {known}")
        return BUILTIN[name]()
    return _from_file(Path(where), name)


def _from_file(path: Path, name: str) -> Agent:
    if path.suffix != ".py":
        raise AgentLoadError(f"agent {path}:{name}: {_FORMS}")
    if not path.is_file():
        raise AgentLoadError(f"agent {path}:{name}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"animalcat_agent_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise AgentLoadError(f"agent {path}:{name}: Python cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # Registered under its name, because pickle and dataclasses look their module up.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise AgentLoadError(f"agent {path}:{name}: importing failed: {_text(error)}") from error
    made = getattr(module, name, None)
    if not isinstance(made, type):
        classes = sorted(
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == spec.name
        )
        there = ", ".join(classes) or "none"
        raise AgentLoadError(f"agent {path}:{name}: no such class in the file; there are: {there}")
    lacking = [method for method in ("reset", "act") if not callable(getattr(made, method, None))]
    if lacking:
        raise AgentLoadError(
            f"agent {path}:{name}: the class lacks {' and '.join(lacking)}; "
            "an agent has reset(info) and act(observation)"
        )
    try:
        return cast("Agent", cast("type[Any]", made)())
    except Exception as error:
        raise AgentLoadError(f"agent {path}:{name}: {name}() failed: {_text(error)}") from error


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
