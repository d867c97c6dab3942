"""One private server for all tests of a module."""

from __future__ import annotations

from collections.abc import Generator

import pytest

import animalcat as ac


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[ac.Lab]:
    with ac.local(tmp_path_factory.mktemp("lab") / "study") as made:
        yield made
