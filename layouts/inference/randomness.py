"""Keyed randomness: generators are named by their purpose, so that replaying needs no state."""

from __future__ import annotations

from zlib import crc32

import numpy as np


def rng(seed: int, purpose: str, episode: int) -> np.random.Generator:
    """Make a random generator for one purpose in one episode.

    Args:
        seed: Seed of the session, not negative.
        purpose: What the draws are for, for example "move".
        episode: Number of the episode, not negative.
    """
    return np.random.default_rng([seed, crc32(purpose.encode()), episode])
