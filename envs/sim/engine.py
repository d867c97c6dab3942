"""The one place that imports PhysX (through sapien), quietly and with a clear error."""

from __future__ import annotations

import warnings

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

__all__ = ["Entity", "Pose", "Scene", "physx"]
