"""Agents on Ray."""

from __future__ import annotations

from animalcat.doors.ray.agents import passed


def test_an_agent_on_ray_knows_the_server_as_the_command_does() -> None:
    own = {"ANIMALCAT_CA": "sha256:00", "ANIMALCAT_DIRECT_NETWORKS": "10.0.0.0/8"}
    others = {"ANIMALCAT_TOKEN": "an operator's", "ANIMALCAT_STORE": "postgresql://", "HOME": "/"}
    assert passed(own | others) == own
