from collections.abc import Sequence

class Path:
    MOVETO: int
    LINETO: int
    CURVE4: int
    def __init__(self, vertices: Sequence[tuple[float, float]], codes: Sequence[int]) -> None: ...
