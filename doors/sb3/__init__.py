"""What is being trained by Stable-Baselines3 is measured meanwhile.

    from animalcat.doors.sb3 import MeasureCallback

`MeasureCallback` is in `callback`; `measurements` measures every so many steps, and logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from animalcat.doors.sb3.callback import MeasureCallback

__all__ = ["MeasureCallback"]


def __getattr__(name: str) -> Any:
    """The public name, imported when it is first used, with Stable-Baselines3."""
    if name != "MeasureCallback":
        raise AttributeError(f"module 'animalcat.doors.sb3' has no attribute {name!r}")
    from animalcat.doors.sb3.callback import MeasureCallback

    return MeasureCallback
