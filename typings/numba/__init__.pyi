"""The part of numba that the project uses: compiled functions keep their Python signature."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., Any])

__version__: str
prange = range

@overload
def njit(func: _F, /) -> _F: ...
@overload
def njit(
    *,
    cache: bool = ...,
    fastmath: bool | set[str] = ...,
    parallel: bool = ...,
    nogil: bool = ...,
    boundscheck: bool | None = ...,
    error_model: Literal["python", "numpy"] = ...,
    inline: Literal["never", "always"] = ...,
    no_cfunc_wrapper: bool = ...,
) -> Callable[[_F], _F]: ...

class CFunc:
    address: int

def cfunc(
    sig: Any, *, cache: bool = ..., error_model: Literal["python", "numpy"] = ...
) -> Callable[[Callable[..., Any]], CFunc]: ...
def carray(ptr: Any, shape: tuple[int, ...]) -> Any: ...

types: Any
