"""The one place that imports PhysX (through sapien), quietly and with a clear error."""

from __future__ import annotations

import warnings
from typing import Final

with warnings.catch_warnings():
    # No renderer is ever made, so it does not matter which libvulkan sapien finds.
    warnings.filterwarnings("ignore", message="Failed to find system libvulkan")
    try:
        from sapien import physx
        from sapien.pysapien import Entity, Pose, Scene
    except ImportError as error:
        if "libX11" not in str(error):
            raise
        raise ImportError(
            "The simulator needs the system library libX11, which is missing here: install it "
            "(Debian and Ubuntu: apt-get install libx11-6)."
        ) from error

ENGINE: Final = physx.PhysxEngine(1.0, 10.0)
"""PhysX with the tolerances of Unity: lengths of 1 m, speeds of 10 m/s. It serves all scenes of a
process, as long as this reference lives.

With sapien's own tolerance of 0.1 m, contacts get no friction until they are closer than 4 mm
(0.04 lengths), so a body that lands or is hit slides on for a step; and contacts are taken to be
the same from one step to the next within 2.5 mm instead of 25."""

__all__ = ["Entity", "Pose", "Scene", "physx"]
