"""The simulator's type of a vector."""

from __future__ import annotations

from typing import TypeAlias

Vector: TypeAlias = tuple[float, float, float]
"""x right, y up, z forward, in metres or metres per second."""
