"""YAML as nodes, with the errors of arenas."""

from __future__ import annotations

from animalcat.arena_configs.model import ArenaError, Problem
from animalcat.text import marked_yaml
from animalcat.text.marked_yaml import Node, YamlError


def parse_yaml(text: str, name: str) -> tuple[Node | None, int | None]:
    """Read the first document of a text, as `marked_yaml.parse_yaml`.

    Raises:
        ArenaError: It is not YAML, is too large or too deep, or refers to itself.
    """
    try:
        return marked_yaml.parse_yaml(text, name)
    except YamlError as error:
        raise failure(name, error.line, error.code, error.problem) from None


def failure(name: str, line: int | None, code: str, message: str) -> ArenaError:
    """Make an error about a whole file."""
    problem = Problem(name, line, "", "error", code, message)
    return ArenaError(str(problem), (problem,))
