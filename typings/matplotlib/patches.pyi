from collections.abc import Sequence

Color = str | tuple[float, ...]

class Patch:
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
