"""Writes arena configurations in Animal-AI's own YAML, with every value explicit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, cast

from pydantic import BaseModel

from animalcat.arena_configs.catalogue import ALIASES, KINDS
from animalcat.arena_configs.loader import TAGS
from animalcat.arena_configs.model import RGB, Arena, ArenaConfig, ArenaError, Item, Vector3
from animalcat.arena_configs.sequence import ArenaSequence

Grammar = Literal["4.x", "3.x"]

_OLD_NAMES: Final[Mapping[str, str]] = {new: old for old, new in ALIASES.items()}
_OLD_KEYS: Final = {"timeLimit": "t", "passMark": "pass_mark", "randomSeed": "random_seed"}
_NEW_FIELDS: Final = frozenset(
    {
        "mergeNextArena",
        "spawnProbability",
        "rewardNames",
        "rewardWeights",
        "rewardSpawnPos",
        "maxRewardCounts",
        "spawnedRewardSize",
        "triggerZoneID",
        "zoneVisibility",
        "operations",
        "moveDurations",
        "resetDurations",
    }
)
"""Fields that build 3.1.3 does not know."""
_PLAYER_FIELDS: Final = frozenset(
    {"showNotification", "canResetEpisode", "canChangePerspective", "randomizeArenas"}
)


def to_yaml(config: ArenaConfig | Arena, grammar: Grammar = "4.x") -> str:
    """Write a configuration as YAML.

    Reading it back gives an equal configuration. In the 3.x grammar, fields that only concern a
    human player are left out.

    Args:
        config: A configuration, or one arena, which becomes arena 0 (of a sequence the first).
        grammar: "4.x" for builds from 4.1, "3.x" for builds 3.0 and 3.1.

    Raises:
        ArenaError: It uses what the 3.x grammar cannot express.
    """
    if isinstance(config, ArenaSequence):
        config = config.config()
    elif isinstance(config, Arena):
        config = ArenaConfig(arenas={0: config})
    old = grammar == "3.x"
    lines = ["!ArenaConfig"]
    for key, value in _values(config, old):
        if key == "arenas":
            continue
        lines.append(f"{key}: {_scalar(value)}")
    lines.append("arenas:")
    for number, arena in sorted(config.arenas.items()):
        lines.append(f"  {number}: !Arena")
        for key, value in _values(arena, old):
            if key != "items":
                lines.append(f"    {key}: {_flow(value, old)}")
        lines.append("    items:" if arena.items else "    items: []")
        for item in arena.items:
            lines.extend(_item(item, old))
    return "\n".join(lines) + "\n"


def _item(item: Item, old: bool) -> Iterator[str]:
    yield "    - !Item"
    for key, value in _values(item, old):
        if isinstance(value, tuple) and value and isinstance(value[0], Vector3 | RGB):
            yield f"      {key}:"
            for entry in cast("tuple[Vector3 | RGB, ...]", value):
                yield f"      - {_flow(entry, old)}"
        else:
            yield f"      {key}: {_flow(value, old)}"


def _values(model: BaseModel, old: bool) -> Iterator[tuple[str, Any]]:
    """Key and value of every field that is not empty."""
    for attribute, info in type(model).model_fields.items():
        key, value = str(info.alias), getattr(model, attribute)
        absent = value is None or (isinstance(model, Item) and value == ())
        if attribute == "kind" or absent:
            continue
        if old and key in _NEW_FIELDS:
            if value != info.default:
                raise ArenaError(f"the 3.x grammar has no `{key}`; write it in the 4.x grammar")
            continue
        if old and (key in _PLAYER_FIELDS or (key == "randomSeed" and not value)):
            continue
        if old and isinstance(model, Item) and key == "name":
            value = _OLD_NAMES.get(model.name, model.name)
        yield (_OLD_KEYS.get(key, key) if old else key), value


def _flow(value: Any, old: bool) -> str:
    """A value on one line."""
    if isinstance(value, tuple):
        entries = cast("tuple[Any, ...]", value)
        return f"[{', '.join(_flow(entry, old) for entry in entries)}]"
    if isinstance(value, BaseModel):
        tag = TAGS.get(type(value)) or f"!{getattr(value, 'kind', '')}"
        body = ", ".join(f"{key}: {_flow(entry, old)}" for key, entry in _values(value, old))
        return f"{tag} {{{body}}}"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    return str(value)


def _text(value: str) -> str:
    if value in KINDS or value in ALIASES:
        return value
    escaped = "".join(_escape(character) for character in value)
    return f'"{escaped}"'


def _escape(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable() and character.isascii():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\U{code:08x}"
