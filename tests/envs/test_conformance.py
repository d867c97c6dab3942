"""Every backend of this package passes the conformance suite."""

from __future__ import annotations

import pytest

from animalcat.envs.backends import BACKENDS, make_environment
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.testing import EnvironmentSuite, Make
from animalcat.envs.types import ObservationSpec


class TestSimConformance(EnvironmentSuite):
    @pytest.fixture
    def make(self) -> Make:
        return SimEnvironment


def test_backends_are_made_by_name() -> None:
    environment = make_environment("sim", ObservationSpec())
    assert isinstance(environment, SimEnvironment)
    assert environment.spec == ObservationSpec()


def test_an_unknown_backend_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match="godot.*" + ", ".join(BACKENDS)):
        make_environment("godot", ObservationSpec())
