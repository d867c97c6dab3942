from collections.abc import Sequence
from typing import Any

from matplotlib.path import Path

Color = str | tuple[float, ...]

class Patch:
    def __init__(self, **style: Any) -> None: ...
    def set_label(self, s: str) -> None: ...

class Circle(Patch):
    def __init__(
        self,
        xy: tuple[float, float],
        radius: float = ...,
        *,
        facecolor: Color = ...,
        edgecolor: Color = ...,
        lw: float = ...,
        zorder: float = ...,
    ) -> None: ...

class Polygon(Patch):
    def __init__(
        self,
        xy: Sequence[tuple[float, float]],
        *,
        closed: bool = ...,
        fill: bool = ...,
        facecolor: Color = ...,
        edgecolor: Color = ...,
        lw: float = ...,
        hatch: str | None = ...,
    ) -> None: ...

class Ellipse(Patch):
    def __init__(
        self, xy: tuple[float, float], width: float, height: float, **style: Any
    ) -> None: ...

class FancyBboxPatch(Patch):
    def __init__(
        self,
        xy: tuple[float, float],
        width: float,
        height: float,
        *,
        boxstyle: str,
        **style: Any,
    ) -> None: ...

class FancyArrowPatch(Patch):
    def __init__(self, *, path: Path, arrowstyle: str, **style: Any) -> None: ...
