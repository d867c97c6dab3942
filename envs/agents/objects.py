"""The fingerprint of an agent that is an object of this process: of its code, and of what it has.

A notebook has no file that could be digested. So the sources of the agent's class are, those of the
classes and functions of one's own that it uses, and the values that it and they refer to. Installed
packages stand in it by their versions. Where something cannot be read, such as an open connection,
the agent is unknown, and at every start another one.
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import logging
import random
import sys
import sysconfig
import threading
import types
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any, Final, cast

import gymnasium
import numpy as np

from animalcat.envs.agents.fingerprint import AgentFingerprint, digest_of, unknown

_MOST: Final = 200_000
"""Values that are read at most; what has more is unknown."""
_LEFT_OUT: Final = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "__firstlineno__",
        "__qualname__",
        "__static_attributes__",
        "__annotations__",
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
        "__abstractmethods__",
        "__type_params__",
        "_abc_impl",
        "__slotnames__",  # copyreg keeps them there
    }
)
"""Attributes of a class that say nothing of what it does."""
_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))

_GLOBALS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
"""Instructions that read a global."""
_IDLE: Final = (
    *(type(threading.Lock()), type(threading.RLock()), logging.Logger),
    *(random.Random, np.random.Generator, np.random.RandomState),
)
"""What has no part in what an agent is: with another seed it is the same one."""
_NOT_HELD: Final = ("__weakref__", "_np_random", "_np_random_seed")
"""Attributes that are no content; the last are Gymnasium's, which makes chance when it is asked."""
_REDUCING: Final = ("__reduce__", "__reduce_ex__", "__getstate__")
"""Methods by which an object says itself what it holds."""

_met: Final[dict[int, tuple[weakref.ref[object], AgentFingerprint, str]]] = {}
"""Of objects that are alive, by id: what each was, and its digest when it was last seen to play."""


class _UnreadableError(Exception):
    """Something of the agent cannot be read; the text says what."""


def fingerprint_of(agent: object) -> AgentFingerprint:
    """The fingerprint of an agent, its class, or a function that makes one, as it is now.

    Where it is as play has left it (`note_played`), it is the one that began to play: what an agent
    keeps of its episodes does not make it another. An unknown agent is another one at every call.

    Args:
        agent: The object.
    """
    now, key = _read_now(agent), _held(agent)
    if (met := _met.get(id(key))) is not None and met[0]() is key and met[2] == now.digest:
        return met[1]
    with suppress(TypeError):  # it has slots, and none for this
        if now.known:
            _met[id(key)] = weakref.ref(key), now, now.digest
    return now


def note_played(agent: object) -> None:
    """Note that an agent has played: whatever has changed in it since it was asked, play did."""
    key = _held(agent)
    if (met := _met.get(id(key))) is not None and met[0]() is key:
        _met[id(key)] = *met[:2], _read_now(agent).digest


def digest_content(value: object) -> str | None:
    """SHA-256 of a value and of the code that it is of; None if something cannot be read."""
    reader = _Reader()
    try:
        found = reader.digest(value)
        return reader.digest((found, sorted(reader.parts.items()), sorted(reader.packages.items())))
    except _UnreadableError:
        return None


def _held(agent: object) -> object:
    """What lives on where an agent is a method, which is made anew whenever it is asked for."""
    return agent.__self__ if isinstance(agent, types.MethodType) else agent


def _read_now(agent: object) -> AgentFingerprint:
    reader = _Reader()
    of_kind = isinstance(agent, type | types.FunctionType)
    kind: Any = agent if of_kind else type(agent)
    name = f"{kind.__module__}.{kind.__qualname__}"
    said: dict[str, str] = {}
    try:
        reader.read(kind)
        if (weights := _weights_of(agent)) is not None:
            policy: Any = cast("Any", agent).policy
            said["weights"] = reader.digest((weights, repr(policy)))
            for module in policy.modules():
                reader.read(cast("object", type(module)))
        elif not of_kind:
            for part, value in _state(agent):
                reader.part(f"self.{part}", value)
    except _UnreadableError as error:
        return unknown(name, str(error))
    if reader.packages:
        said["packages"] = ", ".join(
            f"{name} {one}" for name, one in sorted(reader.packages.items())
        )
    return AgentFingerprint(
        "computed", name, files=dict(sorted(reader.parts.items())), options=said
    )


def _weights_of(agent: object) -> Mapping[str, Any] | None:
    """The weights of a model whose policy is a network of PyTorch, as in Stable-Baselines3.

    What else it holds, such as environments and optimizers, is its training's.
    """
    policy = None if isinstance(agent, type) else getattr(agent, "policy", None)
    told = hasattr(policy, "modules") and getattr(policy, "state_dict", None)
    return cast("Mapping[str, Any]", told()) if callable(told) else None


class _Reader:
    """Reads an agent: code becomes parts with a name each, values become digests.

    Attributes:
        parts: SHA-256 of each piece of code and of each value that code refers to, by name.
        packages: Versions of installed packages that are used.
    """

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}
        self.packages: dict[str, str] = {}
        self._read: set[int] = set()
        self._keep: list[object] = []  # an id is an object's own only while that is alive
        self._count = 0

    def read(self, thing: object) -> None:
        """Take in a class, a function or a module with all that it uses."""
        if id(thing) in self._read:
            return
        self._read.add(id(thing))
        self._keep.append(thing)
        module = thing.__name__ if isinstance(thing, types.ModuleType) else _module_of(thing)
        if _is_installed(module):
            self._package(module)
        elif isinstance(thing, types.ModuleType):
            self._module(thing)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, types.FunctionType):
            self._function(thing)

    def part(self, name: str, value: object) -> None:
        """Take in a value under a name."""
        try:
            self.parts[name] = self.digest(value)
        except _UnreadableError as error:
            raise _UnreadableError(f"{name} ({error})") from error

    def digest(self, value: object) -> str:
        """The SHA-256 of a value; the classes and functions in it are read as well."""
        hasher = hashlib.sha256()
        for token in self._tokens(value, {}):
            hasher.update(f"{len(token)}:".encode() + token)
        return hasher.hexdigest()

    def _package(self, name: str) -> None:
        top = name.partition(".")[0]
        for distribution in _distributions().get(top, ()):
            self.packages[distribution] = version(distribution)

    def _module(self, module: types.ModuleType) -> None:
        file = getattr(module, "__file__", None)
        if file is None:
            raise _UnreadableError(f"module {module.__name__}")
        self.parts[f"module {module.__name__}"] = digest_of(Path(file))
        for value in vars(module).values():
            if isinstance(value, types.ModuleType | types.FunctionType | type):
                self.read(value)

    def _class(self, kind: type) -> None:
        for base in kind.__mro__[1:]:
            self.read(base)
        label = kind.__qualname__
        self.parts.setdefault(label, self.digest([base.__qualname__ for base in kind.__mro__]))
        for name, value in sorted(vars(kind).items()):
            if name in _LEFT_OUT or isinstance(
                value, types.MemberDescriptorType | types.GetSetDescriptorType
            ):
                continue
            functions = _functions_in(value)
            for function in functions:
                self.read(function)
            if not functions:
                self.part(f"{label}.{name}", value)

    def _function(self, function: types.FunctionType) -> None:
        label = function.__qualname__
        try:
            text = inspect.getsource(function)
        except (OSError, TypeError):
            text = "\n".join(_disassemble(function.__code__))
        captured = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        given = (text, function.__defaults__, function.__kwdefaults__, captured)
        digest = self.digest(given)
        if self.parts.setdefault(label, digest) != digest:  # two of one name, as in closures
            self.parts[f"{label} {digest[:8]}"] = digest
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                self._global(name, function.__globals__[name])

    def _global(self, name: str, value: object) -> None:
        if isinstance(value, types.ModuleType | types.FunctionType | type):
            self.read(value)
        else:
            self.parts.setdefault(f"global {name}", "")
            self.part(f"global {name}", value)

    def _tokens(self, value: Any, met: dict[int, int]) -> Iterator[bytes]:
        self._count += 1
        if self._count > _MOST:
            raise _UnreadableError("too much")
        if isinstance(value, _PLAIN):
            yield f"{type(value).__name__} {value!r}".encode(errors="surrogatepass")
            return
        if (here := id(value)) in met:
            yield f"again {met[here]}".encode()
            return
        met[here] = len(met)
        self._keep.append(value)
        yield type(value).__qualname__.encode()
        if isinstance(value, types.ModuleType | types.FunctionType | type):
            self.read(value)
            yield f"{getattr(value, '__module__', '')} {value.__name__}".encode()
        elif (numbers := _numbers(value)) is not None:
            yield from numbers
        elif isinstance(value, Mapping | set | frozenset | list | tuple):
            yield from self._tokens_of_many(cast("Any", value), met)
        elif isinstance(value, types.MethodType):
            yield from self._tokens(value.__func__, met)
            yield from self._tokens(value.__self__, met)
        elif isinstance(value, types.BuiltinFunctionType):
            yield f"{value.__module__} {value.__qualname__}".encode()
        elif isinstance(value, gymnasium.Env):
            self.read(cast("Any", value).__class__)  # what it was trained in is played apart
        elif not isinstance(value, (*_IDLE, *_torch("Generator"))):
            self.read(value.__class__)
            for name, each in _state(value):
                yield name.encode()
                yield from self._tokens(each, met)
        yield b"."
        del met[here]  # what is shared counts as what is equal: copies are the same agent

    def _tokens_of_many(self, value: Any, met: dict[int, int]) -> Iterator[bytes]:
        if isinstance(value, set | frozenset):
            yield "".join(sorted(map(self.digest, cast("set[Any]", value)))).encode()
        elif isinstance(value, Mapping):
            for pair in cast("Mapping[Any, Any]", value).items():
                yield from self._tokens(pair[0], met)
                yield from self._tokens(pair[1], met)
        else:
            for each in value:
                yield from self._tokens(each, met)
        for name, each in sorted(getattr(cast("object", value), "__dict__", {}).items()):
            yield name.encode()
            yield from self._tokens(each, met)


def _state(value: object) -> list[tuple[str, object]]:
    """What an object holds, by name.

    Raises:
        _UnreadableError: It does not tell.
    """
    kind = type(value)
    held: dict[str, object] = dict(getattr(value, "__dict__", {}))
    for base in kind.__mro__:
        slots: Any = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                held.setdefault(name, getattr(value, name))
    for name in _NOT_HELD:
        held.pop(name, None)
    own = any(getattr(kind, name) is not getattr(object, name) for name in _REDUCING)
    if not own and (held or kind.__module__ == "__main__"):
        return sorted(held.items())
    try:  # what it says itself is the whole of it, also of what is not Python's
        reduced: Any = value.__reduce_ex__(4)
    except Exception as error:
        raise _UnreadableError(kind.__qualname__) from error
    if not isinstance(reduced, tuple):  # a name, as of a singleton
        return [("name", str(reduced))]
    parts = enumerate(cast("tuple[Any, ...]", reduced)[1:3])
    return [*sorted(held.items()), *((str(k), part) for k, part in parts)]


def _torch(name: str) -> tuple[type[Any], ...]:
    """A type of PyTorch, where that was imported."""
    torch: Any = sys.modules.get("torch")
    return (getattr(torch, name),) if hasattr(torch, name) else ()


def _numbers(value: Any) -> tuple[bytes, bytes] | None:
    """Kind and bytes of numbers: of NumPy's, or of a tensor of PyTorch, on whatever device it is.

    Raises:
        _UnreadableError: It has none at present.
    """
    if isinstance(value, _torch("Tensor")):
        tensor: Any = value
        try:
            flat = tensor.detach().cpu().to_dense().contiguous().reshape(-1)
            found = flat.view(sys.modules["torch"].uint8).numpy().tobytes()
        except Exception as error:  # whatever a tensor of somebody's kind raises
            raise _UnreadableError(type(tensor).__qualname__) from error
        return f"{tensor.dtype} {tuple(tensor.shape)}".encode(), found
    if not isinstance(value, np.ndarray | np.generic):
        return None
    array: Any = np.ascontiguousarray(cast("Any", value))
    if array.dtype == object:
        return None
    return f"{array.dtype.str} {array.shape}".encode(), array.tobytes()


def _functions_in(value: object) -> list[types.FunctionType]:
    """The functions of a class's attribute: its own, or those of a property or a class method."""
    if isinstance(value, types.FunctionType):
        return [value]
    if isinstance(value, classmethod | staticmethod):
        return _functions_in(cast("Any", value).__func__)
    if isinstance(value, property):
        return [f for f in (value.fget, value.fset) if isinstance(f, types.FunctionType)]
    wrapped = getattr(value, "__wrapped__", None)
    return [] if wrapped is None else _functions_in(wrapped)


def _disassemble(code: types.CodeType) -> Iterator[str]:
    """What a function does, where its source is not to be had."""
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _disassemble(constant)
        else:
            yield repr(constant)


def _names(code: types.CodeType) -> set[str]:
    """Names of globals that code and the functions in it read."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    here = {one.argval for one in dis.get_instructions(code) if one.opname in _GLOBALS}
    return here.union(*map(_names, inner))


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # nothing is in it yet
        return False


def _module_of(thing: object) -> str:
    return str(getattr(thing, "__module__", "") or "")


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


@cache
def _roots() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(Path(paths[name]).resolve() for name in ("stdlib", "platstdlib", "purelib"))


def _is_installed(module: str) -> bool:
    """Whether a module is Python's, of a package, or built in."""
    found = sys.modules.get(module)
    if found is None or found.__name__ == "__main__":
        return False
    top = found.__name__.partition(".")[0]
    if top in sys.stdlib_module_names or top == "animalcat":
        return True
    file = getattr(found, "__file__", None)
    if file is None:
        return top in _distributions()
    path = Path(file).resolve()
    return any(path.is_relative_to(root) for root in _roots())
