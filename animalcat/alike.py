"""Says what makes sessions alike, for every place that pools outcomes or compares agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from animalcat.layouts.explaining.wording import few_of

if TYPE_CHECKING:
    import pandas as pd

Use: TypeAlias = Literal["compare", "pool"]
Row: TypeAlias = Mapping[str, Any]
Conditions: TypeAlias = Mapping[str, str]
"""What a session was like, in words, by aspect; empty where it is not known, and without what it
cannot say."""

REFUSED: Final[Mapping[str, frozenset[Use]]] = {
    "layout": frozenset({"compare"}),
    "backend": frozenset({"compare", "pool"}),
    "observation": frozenset({"compare"}),
    "decision period": frozenset({"compare", "pool"}),
    "privilege": frozenset({"compare", "pool"}),
    "set of demands": frozenset({"compare", "pool"}),
    "build": frozenset(),
    "battery": frozenset({"pool"}),
    "pass mark": frozenset({"pool"}),
    "version of animalcat": frozenset(),
}
"""By aspect, the gravest first, what sessions that differ in it are not used for unless one
asks for it. Pooled outcomes are fitted anew, so layouts do not matter there, and agents of several
sensors are of one population. A battery has its arenas, rewards and pass marks."""
PRIVILEGED: Final = "privileged"
"""How the label of a session begins whose agent was shown the arena's true state."""
_SAID: Final[Sequence[str]] = ("observation", "build")
"""What is said of pooled outcomes where it differs."""
_VALUES: Final = 5
"""Values of what differs that a sentence names at most."""


class UnlikeError(ValueError):
    """Outcomes are not to be pooled; the message says what differs, and what to do."""


@dataclass(frozen=True)
class Difference:
    """One thing in which sessions were unlike.

    Attributes:
        what: The aspect, or the fingerprint of an agent of one name.
        values: What it was, by agent or session.
    """

    what: str
    values: Mapping[str, str]

    def forbids(self, use: Use) -> bool:
        """Return whether sessions that differ in it are not used so."""
        return use in REFUSED.get(self.what, ())

    @property
    def sentence(self) -> str:
        """The difference in a sentence."""
        by_value: dict[str, list[str]] = {}
        for name, value in self.values.items():
            by_value.setdefault(value or "not known", []).append(name)
        parts = [f"{few_of(names)}: {value}" for value, names in by_value.items()]
        more = [f"and {len(parts) - _VALUES} more"] if len(parts) > _VALUES else []
        return f"The {self.what} differs ({'; '.join([*parts[:_VALUES], *more])})."


def differing(conditions: Mapping[str, Conditions]) -> list[Difference]:
    """Return in what sessions or agents are unlike, the gravest first.

    Args:
        conditions: What each was like, by name.
    """
    found: list[Difference] = []
    batteries = {own.get("battery") for own in conditions.values()}
    for what in REFUSED:
        if what == "set of demands" and len(batteries) > 1:
            continue  # other items ask for other things
        values = {name: own[what] for name, own in conditions.items() if what in own}
        if len(set(values.values())) > 1:
            found.append(Difference(what, values))
    return found


def conditions_of(about: Row, layout: Row | None = None) -> Conditions:
    """Return what a session was like.

    Args:
        about: Its specification as a mapping, or the provenance of its profile.
        layout: Name, variant and digest of its layout; None where that does not matter.
    """
    spec: Row = about.get("observation_spec") or {}
    versions: Row = about.get("versions") or {}
    known = {
        "backend": str(about.get("backend") or ""),
        "observation": _sensors(spec),
        "battery": _named(about.get("battery"), about.get("battery_digest")),
        "build": _builds(about.get("played_with") or ()),
        "version of animalcat": str(versions.get("animalcat", "")),
    }
    if "demands_digest" in about:
        known["set of demands"] = f"digest {str(about['demands_digest'])[:12]}"
    if layout is not None:
        name = f"{layout['name']} ({layout['variant'] or 'default'})"
        known["layout"] = _named(name, layout["digest"])
    if "decision_period" in spec:
        known["decision period"] = str(spec["decision_period"])
        known["privilege"] = _privilege(bool(spec.get("privileged")))
    return known


def conditions_of_rows(table: pd.DataFrame, names: pd.Series[str]) -> dict[str, Conditions]:
    """Return what the sessions or agents of a table of outcomes were like, by name.

    Args:
        table: The table, as `animalcat.outcomes.check_outcomes` returns it.
        names: The name of each row's session or agent.
    """
    columns = {"backend": "backend", "camera": "observation", "build": "build"}
    columns |= {"battery": "battery", "decision_period": "decision period"}
    found: dict[str, Conditions] = {}
    for name, rows in table.groupby(names, sort=False):
        known: dict[str, str] = {}
        for column, what in columns.items():
            if len(values := sorted({str(value) for value in rows[column].dropna()})):
                known[what] = " and ".join(values)
        shown = rows["labels"].fillna("").str.contains(rf"(?:^|; ){PRIVILEGED}").unique()
        known["privilege"] = " and ".join(_privilege(bool(value)) for value in sorted(shown))
        found[str(name)] = known
    return found


def insist_poolable(table: pd.DataFrame) -> list[str]:
    """Refuse outcomes of sessions that were too unlike to be taken together.

    Args:
        table: The table, as `animalcat.outcomes.check_outcomes` returns it.

    Returns:
        What else differs, in sentences.

    Raises:
        UnlikeError: Something differs that changes what an outcome means.
    """
    sessions = table["session"].fillna(table["agent"]).fillna("")
    differences = [*differing(conditions_of_rows(table, sessions)), *_marks(table, sessions)]
    if grave := [one.sentence for one in differences if one.forbids("pool")]:
        raise UnlikeError(
            f"{' '.join(grave)} Outcomes of both together tell of neither; take those that are "
            "alike, and the others on their own"
        )
    return [one.sentence for one in differences if one.what in _SAID]


def _marks(table: pd.DataFrame, sessions: pd.Series[str]) -> list[Difference]:
    """The first arena, by its bytes or its name, that was judged by several pass marks."""
    arenas = table["arena"].fillna(table["instance"])
    for _, marks in table["pass_mark"].groupby(arenas, sort=False):
        if marks.nunique() > 1:
            judged = zip(sessions[marks.index], table["instance"][marks.index], marks, strict=True)
            values = {session: f"{mark:g} in {name}" for session, name, mark in judged}
            return [Difference("pass mark", values)]
    return []


def _sensors(spec: Row) -> str:
    parts: list[str] = []
    if camera := spec.get("camera"):
        grey = " grey" * bool(camera.get("grayscale"))
        parts.append(f"camera of {camera.get('resolution')}{grey} pixels a side")
    if rays := spec.get("rays"):
        tags = f" with {rays['tags']} tags" if "tags" in rays else ""
        number, side = 2 * int(rays.get("per_side", 0)) + 1, rays.get("max_degrees", 0)
        parts.append(f"{number} rays over ±{side:g}°{tags}")
    return " and ".join(parts)


def _privilege(shown: bool) -> str:
    return "the arena's true state is shown" if shown else "none"


def _builds(played: Sequence[Row]) -> str:
    builds: dict[str, None] = {}
    for used in played:
        versions: Row = used["versions"]
        rules = [f"{key} {versions[key]}" for key in ("motion", "looks") if key in versions]
        builds[str(versions.get("unity-build") or ", ".join(rules))] = None
    return "; ".join(filter(None, builds))


def _named(name: object, digest: object) -> str:
    return f"{name or ''}, digest {str(digest or '')[:12]}"
