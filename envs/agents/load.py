"""Loads an agent that a reference names: our own, a plugin's, a file's, or a door's."""

from __future__ import annotations

import ast
import sys
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from animalcat.envs.agents.braitenberg import BraitenbergAgent
from animalcat.envs.agents.limits.limited import SwitchedAgent, limit_agent
from animalcat.envs.agents.limits.reference import AgentLoadError, Reference, forms, read_reference
from animalcat.envs.agents.simple import ForwardAgent, RandomAgent
from animalcat.errors import AnimalcatError
from animalcat.extending import plugins
from animalcat.extending.files import class_in
from animalcat.extending.installing import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from animalcat.envs.agents.base import Agent


def _planner() -> Agent:
    """The planner, which needs more than the base install."""
    try:
        from animalcat.envs.agents.planner.agent import PlannerAgent
    except ModuleNotFoundError as error:
        raise _lacking("planner", error) from error
    return PlannerAgent()


def _scout() -> Agent:
    """The scout, which needs more than the base install."""
    try:
        from animalcat.envs.agents.scout.agent import ScoutAgent
    except ModuleNotFoundError as error:
        raise _lacking("scout", error) from error
    return ScoutAgent()


def _lacking(name: str, error: ModuleNotFoundError) -> AgentLoadError:
    return AgentLoadError(
        f"agent 'builtin:{name}' needs {error.name}, which is missing: {install('server')}"
    )


def _planner_settings(**given: Any) -> object:
    from animalcat.envs.agents.planner.settings import PlannerSettings

    return PlannerSettings(**given)


def _scout_settings(**given: Any) -> object:
    from animalcat.envs.agents.scout.settings import ScoutSettings

    return ScoutSettings(**given)


BUILTIN: Final[Mapping[str, Callable[[], Agent]]] = {
    "braitenberg": BraitenbergAgent,
    "forward": ForwardAgent,
    "planner": _planner,
    "random": RandomAgent,
    "scout": _scout,
}
"""The agents that come with the package."""

ABOUT: Final[Mapping[str, str]] = {
    "braitenberg": "steers to goals and away from hazards, by its rays alone",
    "forward": "runs straight ahead",
    "planner": "is shown the true state and solves what it can; it serves to check arenas",
    "random": "acts at random",
    "scout": "maps what it senses, remembers goals and searches for them",
}
"""What each of them does."""

_SETTINGS: Final[Mapping[str, Callable[..., object]]] = {
    "planner": _planner_settings,
    "scout": _scout_settings,
}
"""Built-in agents with switches of their own -> what makes their settings."""


def load_agent(reference: str) -> Agent:
    """Make an agent.

    The folder of a file is put at the front of `sys.path`, as when Python runs the file, so that it
    can import its neighbours. The file's code is run: load only what you trust.

    Args:
        reference: `builtin:NAME`, `plugin:NAME` or `path/to/file.py:ClassName`, and behind it any
            number of `+limit=strength` (`animalcat agent list AGENT` lists them).

    Raises:
        AgentLoadError: The name, file or class does not exist, the file or the class's constructor
            fails, the class lacks `reset` or `act` or one takes other arguments, or it cannot have
            these limits.
    """
    return make_agent(_read(reference))


def make_agent(read: Reference) -> Agent:
    """Make the agent of a reference that was read.

    Raises:
        AgentLoadError: As for `load_agent`.
    """
    if read.door is not None:
        try:
            return read.door.make()
        except (AnimalcatError, ValueError) as error:
            raise AgentLoadError(f"agent '{_name_of(read)}': {error}") from error
    agent = BUILTIN[read.name]() if read.builtin else _foreign(read)
    if not read.limits:
        return agent
    if not read.builtin and iscoroutinefunction(agent.act):
        raise AgentLoadError(
            f"agent {_name_of(read)}: its `act` is a coroutine, and limits need one that "
            "is not: leave the limits out, or wrap what it awaits"
        )
    if read.builtin in _SETTINGS:
        agent = SwitchedAgent(agent, _SETTINGS[read.builtin], read)
    return limit_agent(agent, read)


def check_name(reference: str) -> Reference:
    """Read a reference, and check its limits and that its agent exists, as far as can be seen.

    No code of a file is run. Where a file may make classes by other means than a class statement,
    the class is taken to be there.

    Raises:
        AgentLoadError: It cannot be loaded.
    """
    read = _read(reference)
    if read.in_file and Path(read.where).is_file():
        _check_class(Path(read.where), read.name)
    try:
        if read.plugin and plugins.find("agent", read.plugin) is None:
            there = ", ".join(plugins.names("agent")) or "none"
            raise AgentLoadError(
                f"agent {reference!r}: no such plugin is installed; there are: {there}"
            )
    except plugins.PluginError as error:
        raise AgentLoadError(f"agent {reference!r}: {error}") from error
    return read


def _read(reference: str) -> Reference:
    """Read a reference, and check its limits and that there is such a built-in agent."""
    where, _, rest = reference.rpartition(":")
    if where == "builtin" and rest.partition("+")[0] not in ("", *BUILTIN):
        known = ", ".join(sorted(BUILTIN))
        raise AgentLoadError(f"agent {reference!r}: no such builtin; there are: {known}")
    return read_reference(reference)


def _check_class(path: Path, name: str) -> None:
    """Look for a class in the text of a file.

    Raises:
        AgentLoadError: It is not Python, or makes nothing of this name.
    """
    try:
        bound = names_in(ast.parse(path.read_bytes(), str(path)))
    except (OSError, SyntaxError, ValueError) as error:
        raise AgentLoadError(f"agent {path}:{name}: importing failed: {_text(error)}") from error
    if bound is not None and name not in bound:
        raise _no_class(path, name, (key for key, is_class in bound.items() if is_class))


def names_in(module: ast.Module) -> dict[str, bool] | None:
    """The names that a module binds, each with whether a class statement does it.

    It is None where the names cannot be seen: where a module imports `*`, has `__getattr__`, or
    reaches for its own namespace.
    """
    if any(map(_hides_names, ast.walk(module))):
        return None
    bindings: dict[str, bool] = {}
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.ClassDef(name=name):
                bindings[name] = True
                continue
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bindings.setdefault(name, False)
                continue
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                for alias in names:
                    bindings.setdefault(alias.asname or alias.name.partition(".")[0], False)
            case ast.Name(id=name, ctx=ast.Store()):
                bindings.setdefault(name, False)
            case _:
                pass
        waiting += ast.iter_child_nodes(node)
    return bindings


def _hides_names(node: ast.AST) -> bool:
    """Whether a statement may bind names of its module that cannot be seen."""
    match node:
        case ast.ImportFrom(names=names):
            return any(alias.name == "*" for alias in names)
        case ast.FunctionDef(name="__getattr__") | ast.Global() | ast.Attribute(attr="modules"):
            return True
        case ast.Name(id=name):
            return name in ("globals", "vars", "locals", "exec", "setattr")
        case _:
            return False


def _no_class(path: Path, name: str, classes: Iterable[str]) -> AgentLoadError:
    there = ", ".join(sorted(classes)) or "none"
    return AgentLoadError(f"agent {path}:{name}: no such class in the file; there are: {there}")


def _foreign(read: Reference) -> Agent:
    """The agent of a file or of a plugin."""
    if read.in_file:
        return _make_agent(_name_of(read), read.name, _from_file(Path(read.where), read.name))
    try:
        thing = plugins.load("agent", read.plugin)
    except plugins.PluginError as error:
        raise AgentLoadError(f"agent {_name_of(read)}: {error}") from error
    return _make_agent(_name_of(read), getattr(thing, "__name__", read.name), thing)


def _name_of(read: Reference) -> str:
    return f"{read.where}:{read.name}"


def _from_file(path: Path, name: str) -> type[Any]:
    """The class of a name in a file, whose code is run."""
    if path.suffix != ".py":
        raise AgentLoadError(f"agent {path}:{name}: {forms()}")
    if not path.is_file():
        raise AgentLoadError(f"agent {path}:{name}: there is no file {path}")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = class_in("agent", path, name)
    except Exception as error:
        raise AgentLoadError(f"agent {path}:{name}: importing failed: {_text(error)}") from error
    if isinstance(found, list):
        raise _no_class(path, name, found)
    return found


def _make_agent(called: str, name: str, factory: Any) -> Agent:
    """The agent that a class or a function makes, which can be asked to play.

    Args:
        called: How its reference names it.
        name: Name of the class or function.
        factory: The class or function; it is called without arguments.
    """
    _check_methods(called, "class", factory if isinstance(factory, type) else None)
    try:
        agent = factory()
    except Exception as error:
        raise AgentLoadError(f"agent {called}: {name}() failed: {_text(error)}") from error
    _check_methods(called, "agent", agent)
    for method, argument in (("reset", "info"), ("act", "observation")):
        if not _takes_one(getattr(agent, method)):
            raise AgentLoadError(
                f"agent {called}: {method} cannot be called with one argument; an agent has "
                f"{method}(self, {argument})"
            )
    return cast("Agent", agent)


def _check_methods(called: str, what: str, thing: object | None) -> None:
    """Raise if a class or an agent lacks a method of agents; None is not looked at."""
    lacking = [name for name in ("reset", "act") if not callable(getattr(thing, name, None))]
    if thing is not None and lacking:
        raise AgentLoadError(
            f"agent {called}: the {what} lacks {' and '.join(lacking)}; "
            "an agent has reset(info) and act(observation)"
        )


def _takes_one(method: Any) -> bool:
    """Whether something can be called with one argument."""
    try:
        signature(method).bind(None)
    except TypeError:
        return False
    except ValueError:  # it tells no signature
        return True
    return True


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
