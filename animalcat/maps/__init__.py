"""Maps of arenas from above.

`shapes` says what a map shows: one list of discs and polygons, from a placed arena or from what the
simulator tells of a step. Three modules draw it: `figure` with matplotlib and with words, `small`
as SVG without them, and `moving` step by step, as the agent plays.
"""

from importlib import import_module
from types import ModuleType

__all__ = ["figure", "moving", "shapes", "small"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> ModuleType:
    """The modules, imported when they are first used: not all of them need matplotlib."""
    if name not in __all__:
        raise AttributeError(f"module 'animalcat.maps' has no attribute {name!r}")
    return import_module(f"animalcat.maps.{name}")


def __dir__() -> list[str]:
    """What there is, for completion."""
    return list(__all__)
