"""How to choose instances and when to stop, as plain data that defines a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

Name: TypeAlias = Literal[
    "variance", "information", "threshold", "stratified", "random", "listed", "plugin"
]
POLICIES: Final[Mapping[Name, str]] = {
    "variance": "largest expected drop of capability variance",
    "information": "most expected information about capabilities",
    "threshold": "hardest demand nearest to the estimated ability",
    "stratified": "random, paradigms by their shares of the battery",
    "random": "random",
    "listed": "in the order of a list",
    "plugin": "as another package has it",
}
"""Names of policies, and what each chooses."""

RULES: Final = 1
"""Version of the decision rules. Under one version, the same questions and answers in the same
order give the same choices. It grows when a change to selection, posterior, alarm or stopping
changes any choice. Until it is released it may still change."""


class RulesError(ValueError):
    """The decision rules have another version than those of this version of animalcat."""


def insist_on_rules(rules: int) -> None:
    """Refuse to go on with what began under other decision rules.

    Raises:
        RulesError: The rules have another version.
    """
    if rules != RULES:
        raise RulesError(
            f"this began under decision rules of version {rules}, and this version of animalcat "
            f"decides by version {RULES}; go on with the version of animalcat that began it, or "
            "begin anew"
        )


MOST_SHARPNESS: Final = 100.0
"""Greatest sharpness of a policy; with this power, choices are in effect always the most
informative."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How to choose the next instance.

    Attributes:
        name: One of `POLICIES`.
        random_share: Share of stratified random draws under the first three policies and a plugin,
            so that a wrong layout shows.
        sharpness: How strongly "variance" and "information" prefer informative instances: the
            probability of an instance is proportional to this power of what it tells, and in a
            large battery most are among the 100 that tell most. With 0 the most
            informative one is always chosen.
        exposures: How often an instance may be played; 0 for any number of times.
        probes: Share of draws that repeat an instance, where repeats are allowed, to learn how
            random the agent is; they end once that is known. It decides how much repeats count, see
            `layouts.adaptive.retest`.
        cool_down: Number of episodes for which variants of a played instance are not chosen.
        per_second: Whether what an instance tells is divided by the expected duration of its
            episode.
        about: Capabilities that "information" is about; all if empty.
        order: Names of instances that are played first, in this order; under "listed" the only
            ones.
        generate: Whether an instance may be made on demand if none of the battery tells enough; for
            "variance" and "information".
        enough: An instance of the battery tells enough if it tells this share of what the best
            offer would.
        plugin: Under "plugin", its name (`animalcat.plugins`).
    """

    name: Name = "variance"
    random_share: float = 0.15
    sharpness: float = 4.5
    exposures: int = 1
    probes: float = 0.1
    cool_down: int = 0
    per_second: bool = False
    about: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    generate: bool = False
    enough: float = 0.95
    plugin: str = ""

    def __post_init__(self) -> None:
        if self.name not in get_args(Name):
            raise ValueError(f"name {self.name!r} is unknown; valid: {', '.join(POLICIES)}")
        for what in ("random_share", "probes"):
            if not 0.0 <= getattr(self, what) <= 1.0:
                raise ValueError(f"{what} {getattr(self, what)} is not in [0, 1]")
        for what in ("exposures", "cool_down"):
            if getattr(self, what) < 0:
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
        if (self.name == "plugin") != bool(self.plugin):
            raise ValueError('"plugin" names the plugin of the policy "plugin", and of no other')


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When measuring is enough.

    Attributes:
        max_episodes: Budget of episodes.
        target_sd: A capability counts as measured at this posterior standard deviation, as a share
            of its range; 0 for never.
        targets: Targets of single capabilities, which replace `target_sd`.
        target_width: A capability counts as measured only if its 90 % interval is no wider than
            this share of its range; 0 if widths do not matter.
        futility: A capability is given up if its standard deviation is expected to fall by less
            than this share over the next 25 episodes; 0 for never.
        max_seconds: Budget of time in seconds; 0 for none.
        stop_at_alarm: Whether the session ends when the alarm says that the layout is contradicted.
        combine: With "any", the session ends when any budget is used up or every capability is
            measured or given up. With "all", every condition that is set must hold.
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
        """Whether the rule has more than budgets: a target, or futility."""
        return bool(self.target_sd or self.futility or any(self.targets.values()))

    def target(self, name: str) -> float:
        """Target of one capability, as a share of its range."""
        return self.targets.get(name, self.target_sd)


PRESETS: Final[Mapping[str, StoppingRule]] = {
    "quick": StoppingRule(max_episodes=30, target_sd=0.15, futility=0.02),
    "standard": StoppingRule(max_episodes=100, target_sd=0.1, futility=0.01),
    "thorough": StoppingRule(max_episodes=400, target_sd=0.05, futility=0.005),
}
"""Stopping rules by name."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """How the episodes of a campaign are allocated to its agents.

    Attributes:
        budget: Total number of episodes of all agents.
        common: Number of random instances that all agents play first, the same for all.
        block: Number of episodes that an agent is given at a time.
        at_once: Number of agents that are given a block at a time.
        alike: Equivalence margin: agents that differ by less than this share of the range need not
            be told apart.
        confidence: Probability with which the order of two agents, or their equivalence, must be
            known.
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
