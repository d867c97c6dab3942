"""The fingerprint of an agent that is an object of this process: of its code, and of what it has.

A notebook has no file that could be digested. So the sources of the agent's class are, those of the
classes and functions of one's own that it uses, and the values that it and they refer to. Installed
packages stand in it by their versions. Where something cannot be read, such as an open connection,
the agent is unknown, as `in_memory` says: then its session goes on in this process alone.
"""

from __future__ import annotations

import hashlib
import inspect
import random
import sys
import sysconfig
import types
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from animalcat.envs.agents.fingerprint import AgentFingerprint, digest_of
from animalcat.envs.agents.watching import in_memory

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

_known: Final[dict[int, tuple[weakref.ref[object], AgentFingerprint]]] = {}
"""Fingerprints of objects that are alive, by id: what an agent learns does not make it another."""


class _UnreadableError(Exception):
    """Something of the agent cannot be read."""


def fingerprint_of(agent: object) -> AgentFingerprint:
    """The fingerprint of an agent, its class, or a function that makes one.

    Of an object it is what it was when it was first asked for.

    Args:
        agent: The object.
    """
    if (known := _known.get(id(agent))) is not None and known[0]() is agent:
        return known[1]
    found = fingerprint_now(agent)
    with suppress(TypeError):  # it has slots, and none for this
        _known[id(agent)] = weakref.ref(agent), found
    return found


def fingerprint_now(agent: object) -> AgentFingerprint:
    """The fingerprint of an agent as it is at this moment, also of one that was asked before."""
    try:
        return _fingerprint_of(agent)
    except _UnreadableError:
        return in_memory(agent)


def _fingerprint_of(agent: object) -> AgentFingerprint:
    reader = _Reader()
    of_kind = isinstance(agent, type | types.FunctionType)
    kind: Any = agent if of_kind else type(agent)
    reader.read(kind)
    if not of_kind:
        for name, value in _state(agent):
            reader.parts[f"self.{name}"] = reader.digest(value)
    versions = ", ".join(f"{name} {number}" for name, number in sorted(reader.packages.items()))
    return AgentFingerprint(
        "computed",
        f"{kind.__module__}.{kind.__qualname__}",
        files=dict(sorted(reader.parts.items())),
        options={"packages": versions} if versions else {},
    )


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
            raise _UnreadableError(module.__name__)
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
                self.parts[f"{label}.{name}"] = self.digest(value)

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
            self.parts[f"global {name}"] = self.digest(value)

    def _tokens(self, value: object, met: dict[int, int]) -> Iterator[bytes]:
        self._count += 1
        if self._count > _MOST:
            raise _UnreadableError("too much")
        if isinstance(value, _PLAIN):
            yield f"{type(value).__name__} {value!r}".encode(errors="surrogatepass")
            return
        if id(value) in met:
            yield f"again {met[id(value)]}".encode()
            return
        met[id(value)] = len(met)
        self._keep.append(value)
        yield type(value).__qualname__.encode()
        if isinstance(value, types.ModuleType | types.FunctionType | type):
            self.read(value)
            yield f"{getattr(value, '__module__', '')} {value.__name__}".encode()
        elif (array := _numbers(value)) is not None:
            yield f"{array.dtype.str} {array.shape}".encode()
            yield np.ascontiguousarray(array).tobytes()
        elif isinstance(value, Mapping):
            for key, each in cast("Mapping[Any, Any]", value).items():
                yield from self._tokens(key, met)
                yield from self._tokens(each, met)
        elif isinstance(value, set | frozenset):
            yield "".join(sorted(map(self.digest, cast("set[Any]", value)))).encode()
        elif isinstance(value, list | tuple):
            for each in cast("list[Any]", value):
                yield from self._tokens(each, met)
        elif isinstance(value, types.MethodType):
            yield from self._tokens(value.__func__, met)
            yield from self._tokens(value.__self__, met)
        elif isinstance(value, types.BuiltinFunctionType):
            yield f"{value.__module__} {value.__qualname__}".encode()
        elif isinstance(value, random.Random | np.random.Generator | np.random.RandomState):
            yield b"chance"  # with another seed it is the same agent
        else:
            self.read(type(value))
            for name, each in _state(value):
                yield name.encode()
                yield from self._tokens(each, met)
        yield b"."


def _state(value: object) -> list[tuple[str, object]]:
    """What an object holds, by name.

    Raises:
        _UnreadableError: It does not tell.
    """
    held: dict[str, object] = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots: Any = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                held.setdefault(name, getattr(value, name))
    if not held and type(value).__module__ != "__main__":
        try:
            reduced: Any = value.__reduce_ex__(4)
        except Exception as error:  # it is for the object to say why
            raise _UnreadableError(type(value).__qualname__) from error
        if not isinstance(reduced, tuple):  # a name, as of a singleton
            return [("name", str(reduced))]
        return [(str(k), part) for k, part in enumerate(cast("tuple[Any, ...]", reduced)[1:3])]
    held.pop("__weakref__", None)
    return sorted(held.items())


def _numbers(value: Any) -> npt.NDArray[Any] | None:
    """An array of numbers, of numpy or of PyTorch; None of anything else."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    if not isinstance(value, np.ndarray):
        return None
    array = cast("npt.NDArray[Any]", value)
    return None if array.dtype == object else array


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
    """Names of globals, and of attributes, that code and the functions in it mention."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


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
