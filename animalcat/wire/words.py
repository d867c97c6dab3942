"""Words that several modules say alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from animalcat.v1 import results_pb2

FORMATS: Final[Mapping[str, results_pb2.ProfileFormat.ValueType]] = {
    "json": results_pb2.PROFILE_FORMAT_JSON,
    "html": results_pb2.PROFILE_FORMAT_HTML,
    "csv": results_pb2.PROFILE_FORMAT_OUTCOMES_CSV,
    "parquet": results_pb2.PROFILE_FORMAT_OUTCOMES_PARQUET,
    "netcdf": results_pb2.PROFILE_FORMAT_NETCDF,
    "draws": results_pb2.PROFILE_FORMAT_DRAWS,
}
"""Forms of an exported profile; plugins have others."""
CONTRADICTED: Final = "contradicted"
NOT_CERTIFIED: Final = "not certified"
"""Beginnings of two of the labels that a profile may have."""
NOT_CONFINED: Final = "not confined: it was played by a process that sees the evaluator"
"""What is said of an agent that was not kept apart, as far as that is known."""
