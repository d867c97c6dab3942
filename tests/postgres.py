"""A PostgreSQL server that tests start on loopback; they are skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks import postgres
from benchmarks.postgres import Postgres, schema

__all__ = ["Postgres", "running", "schema"]


@contextmanager
def running() -> Iterator[Postgres]:
    """Start a server for the block."""
    try:
        with postgres.running() as server:
            yield server
    except postgres.PostgresMissingError as error:
        pytest.skip(str(error))
