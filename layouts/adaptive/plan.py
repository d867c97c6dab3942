"""How to choose and when to stop, as plain data: what a session is made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

Name: TypeAlias = Literal["variance", "information", "threshold", "stratified", "random", "listed"]
POLICIES: Final[Mapping[Name, str]] = {
    "variance": "largest expected drop of capability variance",
    "information": "most expected information about capabilities",
    "threshold": "hardest demand nearest to the estimated ability",
    "stratified": "random, paradigms by their shares of the battery",
    "random": "random",
    "listed": "in the order of a list",
}
"""Names of policies, and what each chooses."""


MOST_SHARPNESS: Final = 100.0
"""Largest sharpness of a policy; a preference of that power is as good as always the most."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How to choose.

    Attributes:
        name: One of `POLICIES`.
        random_share: Share of stratified random draws under the first three, so that a layout that
            is wrong shows.
        sharpness: How strongly "variance" and "information" prefer what tells more: probabilities
            are proportional to this power of what instances tell; 0: always what tells most.
        balance: By how many plays a paradigm may be ahead of the most owed one and still be
            chosen for what it tells; None: by any number.
        exposures: How often an instance may be played; 0: any number of times.
        probes: Where it may be played again: share of draws that repeat an instance to tell how
            random the agent is, until that is known. Repeats count by that, see `layouts.retest`.
        cool_down: Episodes during which variants of what was played wait.
        per_second: Whether what an instance tells counts per expected second of its episode.
        about: Capabilities that "information" is about; empty: all.
        order: Names of instances that come first, in this order; under "listed" the only ones.
        generate: Whether an instance may be made on demand where none of the battery tells enough;
            for "variance" and "information".
        enough: An instance of the battery tells enough when it tells this share of what the best
            that could be made would.
    """

    name: Name = "variance"
    random_share: float = 0.3
    sharpness: float = 1.5
    balance: int | None = None
    exposures: int = 1
    probes: float = 0.1
    cool_down: int = 0
    per_second: bool = False
    about: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    generate: bool = False
    enough: float = 0.95

    def __post_init__(self) -> None:
        if self.name not in get_args(Name):
            raise ValueError(f"name {self.name!r} is unknown; valid: {', '.join(POLICIES)}")
        for what in ("random_share", "probes"):
            if not 0.0 <= getattr(self, what) <= 1.0:
                raise ValueError(f"{what} {getattr(self, what)} is not in [0, 1]")
        for what in ("balance", "exposures", "cool_down"):
            if (getattr(self, what) or 0) < 0:
                raise ValueError(f"{what} {getattr(self, what)} is below 0")
        if not 0.0 <= self.sharpness <= MOST_SHARPNESS:
            raise ValueError(f"sharpness {self.sharpness} is not in [0, {MOST_SHARPNESS:g}]")
        if self.about and self.name != "information":
            raise ValueError('"about" goes with the policy "information" alone')
        if self.generate and self.name not in ("variance", "information"):
            raise ValueError(
                f"the policy {self.name!r} asks for no instances; generate goes with "
                "variance and information"
            )
        if not 0.0 <= self.enough <= 1.0:
            raise ValueError(f"enough {self.enough} is not in [0, 1]")
        if self.name == "listed" and not self.order:
            raise ValueError('the policy "listed" needs an "order"')


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When measuring is enough.

    Attributes:
        max_episodes: Budget of episodes.
        target_sd: A capability is measured at this standard deviation, in shares of its range;
            0: never.
        targets: Targets of single capabilities, instead of `target_sd`.
        target_width: A capability is measured only when its 90 % interval is no wider than this
            share of its range; 0: widths do not count.
        futility: A capability is given up where its standard deviation is expected to fall by less
            than this share over the next 25 episodes; 0: never.
        max_seconds: Budget of time; 0: none.
        stop_at_alarm: Whether a layout that the alarm says is contradicted ends the session.
        combine: With "any", what comes first of the budgets, and of all capabilities being measured
            or given up, ends the session. With "all", each that is set must have come.
    """

    max_episodes: int = 100
    target_sd: float = 0.1
    targets: Mapping[str, float] = field(default_factory=dict[str, float])
    target_width: float = 0.0
    futility: float = 0.01
    max_seconds: float = 0.0
    stop_at_alarm: bool = False
    combine: Literal["any", "all"] = "any"

    def __post_init__(self) -> None:
        if self.max_episodes < 1:
            raise ValueError(f"max_episodes {self.max_episodes} must be 1 at least")
        shares = {"target_sd": self.target_sd, "futility": self.futility}
        shares |= {f"target of {name}": value for name, value in self.targets.items()}
        for name, value in shares.items():
            if not 0.0 <= value < 1.0:
                raise ValueError(f"{name} {value} is not in [0, 1)")
        if not 0.0 <= self.target_width <= 1.0:
            raise ValueError(f"target_width {self.target_width} is not in [0, 1]")
        if not 0.0 <= self.max_seconds < float("inf"):
            raise ValueError(f"max_seconds {self.max_seconds} must be a number of 0 or more")
        if self.combine not in ("any", "all"):
            raise ValueError(f"combine {self.combine!r} is unknown; valid: any, all")
        if self.combine == "all" and self.target_width and not (self.target_sd or self.targets):
            raise ValueError('target_width needs a target_sd: with "all" it would never be met')

    @property
    def wants_measures(self) -> bool:
        """Whether anything but the budgets can be met: a target, or giving up."""
        return bool(self.target_sd or self.futility or any(self.targets.values()))

    def target(self, name: str) -> float:
        """Target of one capability, in shares of its range."""
        return self.targets.get(name, self.target_sd)


PRESETS: Final[Mapping[str, StoppingRule]] = {
    "quick": StoppingRule(max_episodes=30, target_sd=0.15, futility=0.02),
    "standard": StoppingRule(max_episodes=100, target_sd=0.1, futility=0.01),
    "thorough": StoppingRule(max_episodes=400, target_sd=0.05, futility=0.005),
}
"""Stopping rules by name."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """How the episodes of a campaign are handed out.

    Attributes:
        budget: Episodes of all agents together.
        common: How many random instances all agents play, the same and first.
        block: Episodes that an agent is given at once.
        at_once: How many agents are given some at once.
        alike: Two agents need not be told apart that differ by less than this share of the range.
        confidence: Probability with which an order must be known, or that two are alike.
    """

    budget: int
    common: int = 12
    block: int = 4
    at_once: int = 2
    alike: float = 0.05
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for what in ("budget", "common", "block", "at_once"):
            if getattr(self, what) < 1:
                raise ValueError(f"{what} {getattr(self, what)} must be 1 at least")
        if not 0.0 <= self.alike < 1.0:
            raise ValueError(f"alike {self.alike} is not in [0, 1)")
        if not 0.5 < self.confidence < 1.0:
            raise ValueError(f"confidence {self.confidence} is not between 0.5 and 1")
