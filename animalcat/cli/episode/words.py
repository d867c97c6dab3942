"""Outcomes and ends of episodes in words."""

from __future__ import annotations

from animalcat.v1 import types_pb2


def outcome_word(value: types_pb2.Outcome.ValueType) -> str:
    """What became of an episode; "open" where nothing has yet."""
    return types_pb2.Outcome.Name(value).removeprefix("OUTCOME_").lower() if value else "open"


def ended_by_word(value: types_pb2.EndedBy.ValueType) -> str:
    """Why an episode's last step was its last; empty where it goes on."""
    return types_pb2.EndedBy.Name(value).removeprefix("ENDED_BY_").lower() if value else ""
