"""What both sides of the player's socket share, and its ports."""

from __future__ import annotations

import ast
import socket
from pathlib import Path

import numpy as np
import pytest

from animalcat.envs.unity import player
from animalcat.envs.unity.player import BuildStep


def test_what_is_seen_survives_packing() -> None:
    rng = np.random.default_rng(0)
    vector = rng.random(7, np.float32)
    rays = rng.random(70, np.float32)
    camera = rng.integers(0, 256, (6, 6, 1), np.uint8)
    for image in (camera, None):
        seen = player.unpack_observation(
            player.pack_observation(BuildStep(True, -0.25, vector, rays, image))
        )
        assert (seen.over, seen.reward) == (True, -0.25)
        assert np.array_equal(seen.vector, vector)
        assert np.array_equal(seen.rays, rays)
        assert (seen.camera is None) if image is None else np.array_equal(seen.camera, image)
        seen.rays[0] = 2.0  # its own, and writable


def test_a_reserved_port_is_given_to_nobody_and_the_client_can_listen_there() -> None:
    held = player.Reservation()
    try:
        others = [player.Reservation() for _ in range(50)]
        assert held.port not in {other.port for other in others}
        for other in others:
            other.release()
        # As mlagents-envs tries a port, and then listens.
        for host in ("localhost", ""):
            with socket.socket() as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if not host:
                    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                trial.bind((host, held.port))
                if not host:
                    trial.listen()
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("localhost", held.port))
    finally:
        held.release()


def test_the_player_needs_nothing_of_ours_and_parses_on_python_3_9() -> None:
    tree = ast.parse(Path(player.__file__).read_text(), feature_version=(3, 9))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert "animalcat" not in imported
    assert "numpy" in imported
