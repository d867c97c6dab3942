"""Words that several modules say alike."""

from __future__ import annotations

from typing import Final

CONTRADICTED: Final = "contradicted"
NOT_CERTIFIED: Final = "not certified"
"""Beginnings of two of the labels that a profile may have."""
