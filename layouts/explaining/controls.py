"""Sets arenas against their controls: how often each is passed, and whether that is a reason.

A control is an arena with one demand taken away, so an arena and its control are a pair. A pair
counts if its second half was played whatever became of the first: since sessions play pairs, or by
chance. The interval of the mean difference of pairs holds at all times together, so a session may
end when it will (Waudby-Smith & Ramdas 2024, as in `layouts.adaptive.paired`). Without enough pairs
the rates of what was played on either side are compared, with the interval of Newcombe (1998,
Statistics in Medicine 17: 873-890, method 10). These arenas differ in more than the control, and
earlier outcomes may have chosen them, so no reason is told of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import hypot, sqrt
from statistics import NormalDist
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from animalcat.layouts.adaptive.paired import mean_interval

Standing: TypeAlias = Literal["main reason", "a reason", "not the main reason", "harder", ""]
"""What a pair's difference says of what the control takes away; empty for nothing yet."""

ERROR: Final = 0.1
"""Share of intervals that may miss the truth."""
_ENOUGH: Final = 5
"""Pairs from which nothing else is compared, or half of the side with fewer episodes."""
_MAIN: Final = 0.5
"""Share of the failures that the main reason makes."""
_OFTEN: Final = 0.5
"""Share of failures from which it is told what is not their main reason."""
_CLOSE: Final = 1e-6
"""By how much a feature may differ and count as equal."""
NOT_CHOSEN: Final = frozenset({"pair", "random", "listed"})
"""Reasons of decisions that do not depend on earlier outcomes."""
FORCED: Final = "forced"
FREE: Final = "free"
"""How names of paradigms end in which a choice is for good, or may be made again."""


class PlayedArena(NamedTuple):
    """An arena that was played, and how that ended.

    Attributes:
        instance: Its name.
        paradigm: The kind of task; a control is of that of its arena.
        control: The control that it is; empty for none.
        control_of: The arena of which it is a control; empty if it is not known.
        passed: Whether it was passed.
        features: Its meta-features by name.
        chosen: Whether earlier outcomes may have decided that it was played.
    """

    instance: str
    paradigm: str
    control: str
    control_of: str
    passed: bool
    features: Mapping[str, float]
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class ControlComparison:
    """How often arenas were passed, and how often their control.

    Attributes:
        paradigm: Paradigm of the arenas; empty for all together.
        control: Name of the control; "free" where a free choice is set against a forced one.
        plain: Episodes in arenas as they are, and how many of them were passed.
        changed: The same of the control.
        both: Pairs of which both were passed.
        only_plain: Pairs of which the arena alone was passed.
        only_changed: Pairs of which the control alone was passed.
        neither: Pairs of which none was passed.
        taken: What the control takes away, in words; empty if nothing says it.
        about: What the control is, in words; empty if nothing says it.
        pairs: Names of the arenas and controls that are pairs.
    """

    paradigm: str
    control: str
    plain: tuple[int, int]
    changed: tuple[int, int]
    both: int = 0
    only_plain: int = 0
    only_changed: int = 0
    neither: int = 0
    taken: str = ""
    about: str = ""
    pairs: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def played_both(self) -> int:
        """Number of pairs."""
        return self.both + self.only_plain + self.only_changed + self.neither

    @property
    def paired(self) -> bool:
        """Whether pairs are compared, and not all that was played on either side."""
        fewer = min(self.plain[0], self.changed[0])
        return self.played_both > 0 and self.played_both >= min(_ENOUGH, fewer / 2.0)

    @property
    def difference(self) -> float:
        """Share of passed controls less that of passed arenas, of pairs if these are compared."""
        if self.paired:
            return (self.only_changed - self.only_plain) / self.played_both
        return self.changed[1] / self.changed[0] - self.plain[1] / self.plain[0]

    def interval(self, error: float = ERROR) -> tuple[float, float]:
        """An interval of the difference.

        Args:
            error: How often it may miss.
        """
        if not self.paired:
            return unpaired_interval(*self.changed, *self.plain, error)
        alike = self.both + self.neither
        differences = [1.0] * self.only_changed + [-1.0] * self.only_plain + [0.0] * alike
        return mean_interval(differences, error)

    def standing(self, error: float = ERROR) -> Standing:
        """What the difference says of what the control takes away, if pairs are compared.

        Args:
            error: How often it may be wrong that there is a difference, or none that matters; how
                large a difference is goes by the usual interval.
        """
        if not self.paired:
            return ""
        low, high = self.interval(error)
        failed = (self.only_changed + self.neither) / self.played_both
        if high < 0.0:
            return "harder"
        if low > 0.0:
            return "main reason" if self.interval()[0] >= _MAIN * failed else "a reason"
        return "not the main reason" if failed >= _OFTEN and high <= _MAIN * failed else ""

    @property
    def says(self) -> str:
        """What the comparison says, or why it says nothing, in a few words."""
        if not self.paired:
            return "different arenas on each side: they show no reason"
        if standing := self.standing():
            return _SAID[standing].format(taken=self.takes)
        return "too few to say" if self.only_changed + self.neither else "it never failed"

    @property
    def takes(self) -> str:
        """What the control takes away, in words."""
        return self.taken or f"what the control {self.control} takes away"

    def sentence(self, error: float = ERROR) -> str:
        """What the pairs say in one sentence; empty if they say nothing yet.

        Args:
            error: As for `interval`.
        """
        standing = self.standing(error)
        if not standing:
            return ""
        number, about = self.played_both, self.about.removesuffix(".")
        plain, changed = self.both + self.only_plain, self.both + self.only_changed
        what = f" ({about[0].lower()}{about[1:]})" if about else ""
        said = _SAID[standing].format(taken=self.takes)
        return (
            f"It passed {_share(plain, number)} {number} arenas as they are and "
            f"{_share(changed, number)} the same {number} with the control {self.control}{what}: "
            f"{said}{'' if standing == 'harder' else ' that it fails'}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values, as the schema "profile" documents them."""
        low, high = self.interval()
        row = asdict(replace(self, pairs=()))
        del row["pairs"], row["plain"], row["changed"]
        return {
            **row,
            "plain_episodes": self.plain[0],
            "plain_passed": self.plain[1],
            "control_episodes": self.changed[0],
            "control_passed": self.changed[1],
            "pairs": self.played_both,
            "paired": self.paired,
            "difference": self.difference,
            "low": low,
            "high": high,
            "standing": self.standing(),
            "says": self.says,
        }


_SAID: Final[Mapping[Standing, str]] = {
    "main reason": "{taken} is the main reason",
    "a reason": "{taken} is a reason",
    "not the main reason": "{taken} is not the main reason",
    "harder": "it passes less without {taken}",
}


def compare_controls(
    played: Iterable[PlayedArena],
    taken: Mapping[str, tuple[str, str]] | None = None,
    about: Mapping[tuple[str, str], str] | None = None,
) -> tuple[ControlComparison, ...]:
    """Set what an agent played against the controls of it that it played.

    What is played again is no new evidence of a difference: the first time counts.

    Args:
        played: What one agent played, in order.
        taken: By meta-feature, what a control takes away that makes it 0, and one that makes it
            less, in words; the first that changes is told.
        about: What a control is in words, by paradigm and control.

    Returns:
        For every control, first all paradigms together if there are several, then each of them;
        and at the end forced choices against free ones.
    """
    first: dict[str, PlayedArena] = {}
    for one in played:
        first.setdefault(one.instance, one)
    arenas = list(first.values())
    found: list[ControlComparison] = []
    for control in sorted({one.control for one in arenas} - {""}):
        changed = [one for one in arenas if one.control == control]
        paradigms = sorted({one.paradigm for one in changed})
        parts = [
            part
            for paradigm in paradigms
            if (
                part := _compare_paradigms(
                    first, control, [paradigm], paradigm, taken or {}, about or {}
                )
            )
        ]
        if len(parts) > 1:
            whole = _compare_paradigms(first, control, paradigms, "", taken or {}, about or {})
            found += [whole] if whole else []
        found += parts
    return (*found, *_choices(arenas))


def for_verdict(rows: Sequence[ControlComparison]) -> tuple[ControlComparison | None, float]:
    """The comparison that a verdict tells of, and how often its interval may miss.

    The share is divided among the comparisons that could be told: one for each control.

    Args:
        rows: What `compare_controls` returns.

    Returns:
        The comparison, or None if none says anything; and the share.
    """
    wholes: dict[str, ControlComparison] = {}
    for row in rows:
        if row.paired:
            wholes.setdefault(row.control, row)
    error = ERROR / max(1, len(wholes))
    order: tuple[Standing, ...] = ("main reason", "a reason", "not the main reason", "harder")
    telling = [row for row in wholes.values() if row.standing(error)]
    telling.sort(key=lambda row: (order.index(row.standing(error)), -row.played_both))
    return (telling[0] if telling else None), error


def unpaired_interval(
    passed_of: int, passed: int, other_of: int, other: int, error: float = ERROR
) -> tuple[float, float]:
    """Newcombe's interval of a difference of two rates.

    Args:
        passed_of: Episodes of the first kind.
        passed: How many of them were passed.
        other_of: Episodes of the second kind.
        other: How many of them were passed.
        error: How often it may miss.
    """
    z = NormalDist().inv_cdf(1.0 - error / 2.0)
    p, q = passed / passed_of, other / other_of
    (low, high), (below, above) = _wilson(passed, passed_of, z), _wilson(other, other_of, z)
    return p - q - hypot(p - low, above - q), p - q + hypot(high - p, q - below)


def _wilson(passed: int, of: int, z: float) -> tuple[float, float]:
    """Wilson's score interval of a rate."""
    share, weight = passed / of, z * z / of
    middle = (share + weight / 2.0) / (1.0 + weight)
    half = sqrt(share * (1.0 - share) * weight + weight * weight / 4.0) / (1.0 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def _share(number: int, of: int) -> str:
    """How many of some, up to their name."""
    return f"{'all' if number == of else number or 'none'} of"


def _compare_paradigms(
    first: Mapping[str, PlayedArena],
    control: str,
    paradigms: Sequence[str],
    called: str,
    taken: Mapping[str, tuple[str, str]],
    about: Mapping[tuple[str, str], str],
) -> ControlComparison | None:
    """Some paradigms against one control of them; None if one side was not played."""
    plain = [one for one in first.values() if not one.control and one.paradigm in paradigms]
    changed = [
        one for one in first.values() if one.control == control and one.paradigm in paradigms
    ]
    if not plain or not changed:
        return None
    order = {name: number for number, name in enumerate(first)}
    linked = [(first[one.control_of], one) for one in changed if one.control_of in first]
    pairs = [pair for pair in linked if not max(pair, key=lambda one: order[one.instance]).chosen]
    cells = [(one.passed, other.passed) for one, other in pairs]
    words = {about.get((paradigm, control), "") for paradigm in paradigms}
    return ControlComparison(
        called,
        control,
        (len(plain), sum(one.passed for one in plain)),
        (len(changed), sum(one.passed for one in changed)),
        cells.count((True, True)),
        cells.count((True, False)),
        cells.count((False, True)),
        cells.count((False, False)),
        taken=_words_of_difference(pairs, taken),
        about=words.pop() if len(words) == 1 else "",
        pairs=tuple((one.instance, other.instance) for one, other in pairs),
    )


def _words_of_difference(
    pairs: Sequence[tuple[PlayedArena, PlayedArena]], words: Mapping[str, tuple[str, str]]
) -> str:
    """What a control takes away of every pair, in words; empty if no feature says it."""
    for feature, (gone, less) in words.items():
        values = [
            (one.features.get(feature, 0.0), other.features.get(feature, 0.0))
            for one, other in pairs
        ]
        if values and all(before > after + _CLOSE for before, after in values):
            return gone if all(after <= _CLOSE for _, after in values) else less
    return ""


def _choices(arenas: Sequence[PlayedArena]) -> list[ControlComparison]:
    """Forced choices against free ones of the same kind, without controls."""
    plain: dict[str, list[bool]] = {}
    for one in arenas:
        if not one.control:
            plain.setdefault(one.paradigm, []).append(one.passed)
    found: list[ControlComparison] = []
    for paradigm, forced in sorted(plain.items()):
        stem = paradigm.removesuffix(FORCED)
        free = plain.get(f"{stem}{FREE}")
        if stem != paradigm and free:
            counts = (len(forced), sum(forced)), (len(free), sum(free))
            found.append(ControlComparison(paradigm, FREE, *counts))
    return found
