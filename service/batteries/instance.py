"""Tells whether two instances are one arena under different names."""

from __future__ import annotations

import hashlib

from animalcat.arena_configs.instance import Instance


def arena_identity(text: str, instance: Instance) -> tuple[str, str]:
    """Return what two instances share that are one arena under different names.

    Args:
        text: The fixed arena as YAML.
        instance: The instance.

    Returns:
        Digest of the text; and the seed, if play leaves anything to chance.
    """
    known = instance.features
    chance = any(known.get(name, 1.0) > 0.0 for name in ("spawners", "operated"))
    return hashlib.sha256(text.encode()).hexdigest(), str(instance.seed) if chance else ""
