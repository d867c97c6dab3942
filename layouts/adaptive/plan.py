"""How to choose instances and when to stop, as plain data that defines a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, TypeAlias, get_args

from animalcat.text.ranges import Range, check_ranges

Name: TypeAlias = Literal[
    "variance", "information", "threshold", "stratified", "random", "listed", "plugin", "rate"
]
POLICIES: Final[Mapping[Name, str]] = {
    "variance": "largest expected drop of capability variance",
    "information": "most expected information about capabilities",
    "threshold": "hardest demand nearest to the estimated ability",
    "stratified": "random, paradigms by their shares of the battery",
    "random": "random",
    "listed": "in the order of a list",
    "plugin": "as another package has it",
    "rate": "most about the success rate on the whole battery",
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


Share: TypeAlias = Annotated[float, Range(0, 1)]
"""A share of a whole."""
ShareBelow: TypeAlias = Annotated[float, Range(0, 1, below=True)]
"""A share that is less than the whole."""
MOST_SHARPNESS: Final = 100
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
            large battery most are among the 100 most informative. With 0 the most
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
        plugin: Under "plugin", its name (`animalcat.extending.plugins`).
        pairs: Whether an arena and its controls are played one after the other, in an order that is
            drawn.
        aim: Success rate at which informative choices aim; 0 for whatever is most informative.
    """

    name: Name = "variance"
    random_share: Share = 0.15
    sharpness: Annotated[float, Range(0, MOST_SHARPNESS)] = 4.5
    exposures: Annotated[int, Range(0)] = 1
    probes: Share = 0.1
    cool_down: Annotated[int, Range(0)] = 0
    per_second: bool = False
    about: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    generate: bool = False
    enough: Share = 0.95
    plugin: str = ""
    pairs: bool = False
    aim: Share = 0.0

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.name not in get_args(Name):
            raise ValueError(f"name {self.name!r} is unknown; valid: {', '.join(POLICIES)}")
        if self.about and self.name != "information":
            raise ValueError('"about" goes with the policy "information" alone')
        if self.aim and self.name not in ("variance", "information"):
            raise ValueError(
                f"the policy {self.name!r} weighs no instances; aim goes with variance and "
                "information"
            )
        if self.generate and self.name not in ("variance", "information"):
            raise ValueError(
                f"the policy {self.name!r} asks for no instances; generate goes with "
                "variance and information"
            )
        if self.name == "listed" and not self.order:
            raise ValueError('the policy "listed" needs an "order"')
        if self.name == "listed" and self.pairs:
            raise ValueError(
                'the policy "listed" plays what its list says; list the controls too, or pair '
                "under another policy"
            )
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
            this share of its range; 0 if widths do not matter. Under the policy "rate" it is the
            width at which the interval of the success rate ends the session.
        futility: A capability is given up if its standard deviation is expected to fall by less
            than this share over the next 25 episodes; 0 for never.
        max_seconds: Budget of time in seconds; 0 for none.
        stop_at_alarm: Whether the session ends when the alarm says that the layout is contradicted.
        combine: With "any", the session ends when any budget is used up or every capability is
            measured or given up. With "all", every condition that is set must hold.
    """

    max_episodes: Annotated[int, Range(1)] = 100
    target_sd: ShareBelow = 0.1
    targets: Mapping[str, float] = field(default_factory=dict[str, float])
    target_width: Share = 0.0
    futility: ShareBelow = 0.01
    max_seconds: Annotated[float, Range(0)] = 0.0
    stop_at_alarm: bool = False
    combine: Literal["any", "all"] = "any"

    def __post_init__(self) -> None:
        check_ranges(self)
        span = Range(0, 1, below=True)
        for name, value in self.targets.items():
            if not span.has(value):
                raise ValueError(f"target of {name} {value} is out of range; give {span}")
        if self.combine not in ("any", "all"):
            raise ValueError(f"combine {self.combine!r} is unknown; valid: any, all")
        if self.combine == "all" and self.target_width and not (self.target_sd or self.targets):
            raise ValueError('target_width needs a target_sd: with "all" it would never be met')

    @property
    def wants_measures(self) -> bool:
        """Whether the rule has more than budgets: a target, or futility."""
        return bool(self.target_sd or self.futility or any(self.targets.values()))

    @property
    def counts_down(self) -> bool:
        """Whether the number of episodes is set beforehand, since nothing else ends a session."""
        return not (self.wants_measures or self.max_seconds or self.stop_at_alarm)

    def target(self, name: str) -> float:
        """Target of one capability, as a share of its range."""
        return self.targets.get(name, self.target_sd)


PRESETS: Final[Mapping[str, StoppingRule]] = {
    "quick": StoppingRule(max_episodes=30, target_sd=0.15, futility=0.02),
    "standard": StoppingRule(max_episodes=100, target_sd=0.1, futility=0.01),
    "thorough": StoppingRule(max_episodes=400, target_sd=0.05, futility=0.005),
}
"""Stopping rules by name."""
_OF_PRESET: Final = ("max_episodes", "target_sd", "futility")


def preset_options(name: str) -> dict[str, float]:
    """The options of a session that a preset stands for; none where there is no name.

    Raises:
        ValueError: There is no such preset.
    """
    if name and name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; there are: {', '.join(PRESETS)}")
    chosen = PRESETS.get(name)
    return {option: getattr(chosen, option) for option in _OF_PRESET} if chosen else {}
