"""What an adaptive evaluation consists of, as data that a log keeps and that determines it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
import pandas as pd

from animalcat.doors.inspect.logs import LogError, metadata_of, numbers_in
from animalcat.doors.inspect.sheets import PlanError, read_sheet, stray_rows
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import PRESETS, RULES, Policy, StoppingRule, insist_on_rules
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import LayoutSource, load_layout
from animalcat.layouts.library.choice import load_for
from animalcat.layouts.model.frames import NAME, PARADIGM, instances_in
from animalcat.layouts.model.instances import left_out
from animalcat.layouts.model.nodes import Bernoulli, Beta, Binomial
from animalcat.layouts.model.spec import Layout, from_dict, to_dict
from animalcat.text.ranges import Range, check_ranges

Demands: TypeAlias = (
    Sequence[str] | Mapping[str, str] | str | Path | Callable[[Any], Mapping[str, Any]] | None
)
"""Where demands come from: keys of the samples' metadata; keys by the layout's name of each; a CSV
by sample id; or a function of a sample."""
Stop: TypeAlias = StoppingRule | Mapping[str, Any] | str | float | None

CAPABILITIES: Final = "capabilities"
ACCURACY: Final = "accuracy"
"""What may be the target of an evaluation."""
VERSION: Final = 2
"""Version of what a log keeps; other versions are refused."""
MOST_ITEMS: Final = 64 << 20
"""Most bytes that the table of items in a log unpacks to."""
_ALIKE: Final = 0.99
"""Correlation from which on two demands ask for the same."""
OPTIONS: Final = (
    *("seed", "at_once", "epochs", "score", "pass_mark", "falling", "exposure", "max_tokens"),
    "max_cost",
)
"""The attributes of a plan that are taken as they are given."""


@dataclass(frozen=True, eq=False)
class Plan:
    """All that determines an adaptive evaluation but the answers.

    Attributes:
        layout: The layout that is measured.
        items: The samples that may be chosen: a row for each, whose label is its id as text, with a
            column for each demand and `paradigm`, the kind by which random draws are balanced.
        policy: How samples are chosen.
        rule: When to stop.
        seed: Seed of all randomness.
        at_once: How many samples may run at once. Choice k uses the outcomes of the choices 1 to
            k - at_once.
        epochs: How often a sample is run for one choice.
        score: Name of the score that is the outcome.
        pass_mark: From which score on an outcome is a success; None where it is the score itself.
        falling: Whether a smaller score is better, as of an error; up to the pass mark it is right.
        exposure: Share of models, at most, that are asked any one sample.
        max_tokens: How many tokens all samples together may use; 0 for any number.
        max_cost: How many dollars they may cost together; 0 for any.
        size: Number of samples of the dataset, with those left out.
        left_out: How many samples are left out, by reason.
        notes: What has to be known of the demands, in sentences.
    """

    layout: Layout
    items: pd.DataFrame
    policy: Policy = field(default_factory=Policy)
    rule: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 0
    at_once: Annotated[int, Range(1)] = 1
    epochs: Annotated[int, Range(1)] = 1
    score: str = ""
    pass_mark: float | None = None
    falling: bool = False
    exposure: Annotated[float, Range(0, 1, above=True)] = 1.0
    max_tokens: Annotated[int, Range(0)] = 0
    max_cost: Annotated[float, Range(0)] = 0.0
    size: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges(self)
        if isinstance(self.layout.outcome, Bernoulli) and self.epochs > 1:
            raise PlanError(
                f"layout {self.layout.name} takes one success or failure, and a choice has "
                f"{self.epochs} epochs: give epochs=1, or a layout of counts (binomial)"
            )

    @cached_property
    def bank(self) -> Bank:
        """The samples, prepared for choosing."""
        return Bank.of(self.layout, self.items)

    @cached_property
    def demands(self) -> Mapping[str, Mapping[str, float]]:
        """What each sample demands, by its id; what is not known of one is left out."""
        rows: dict[Any, Any] = self.items.drop(columns=PARADIGM).to_dict("index")
        return {name: numbers_in(row) for name, row in rows.items()}

    @property
    def counting(self) -> str:
        """What counts as passed, in a sentence; empty for what is right as it was scored."""
        if self.pass_mark is not None:
            side = "less" if self.falling else "more"
            return f"A score of {self.pass_mark:g} or {side} is right."
        return "A smaller score is better." * self.falling

    @property
    def demands_digest(self) -> str:
        """SHA-256 of what each sample demands, whatever their order."""
        return hashlib.sha256(json.dumps(self.demands, sort_keys=True).encode()).hexdigest()

    @property
    def most(self) -> int:
        """The most that an outcome may be: 1, or the number of runs where it counts successes."""
        return self.epochs if isinstance(self.layout.outcome, Binomial) else 1

    def outcome(self, score: float) -> float:
        """One run's score as the layout has it: success or failure, or a share.

        Raises:
            LogError: It is none of the layout's.
        """
        layout, mark, falling = self.layout, self.pass_mark, self.falling
        if mark is not None:
            return float(score <= mark if falling else score >= mark)
        if not isinstance(layout.outcome, Beta) and score not in (0.0, 1.0):
            raise LogError(
                f"a score is {score:g}, and layout {layout.name} takes right or wrong: give a "
                "layout whose outcome is a score (beta), or say by pass_mark= which score is "
                "enough, and every partial answer that reaches it is right"
            )
        if not 0.0 <= score <= 1.0:
            raise LogError(f"a score is {score:g}, and one from 0 to 1 is expected")
        return 1.0 - score if falling else score

    def learner(self) -> Learner:
        """A learner that was told nothing yet.

        Raises:
            ValueError: The policy or the rule does not fit the layout or the items.
        """
        return Learner(self.bank, self.policy, self.rule, self.seed, exposure=self.exposure)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values; the table of items is compressed CSV, as text."""
        table = zlib.compress(self.items.to_csv(index_label=NAME).encode(), 9)
        return {
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "version": VERSION,
            "rules": RULES,
            "layout": to_dict(self.layout),
            "items": base64.b64encode(table).decode(),
            "policy": asdict(self.policy),
            "rule": asdict(self.rule),
            "left_out": dict(self.left_out),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Read what `to_dict` wrote.

        Raises:
            LogError: It is of another version.
            ValueError: It is damaged.
        """
        if data.get("version") != VERSION:
            raise LogError(
                f"this log was written in version {data.get('version')} of the format, and this "
                f"version of animalcat reads version {VERSION}; use the version that wrote it"
            )
        insist_on_rules(int(data["rules"]))
        unpacking = zlib.decompressobj()
        table = io.BytesIO(unpacking.decompress(base64.b64decode(data["items"]), MOST_ITEMS))
        if unpacking.unconsumed_tail or not unpacking.eof:
            raise ValueError(f"its items are cut short, or more than {MOST_ITEMS:,} bytes")
        text = {NAME: str, PARADIGM: str}
        items = pd.read_csv(table, dtype=text, keep_default_na=False, na_values=[""])
        read: dict[str, Any] = {
            "layout": from_dict(data["layout"]),
            "items": items.fillna({PARADIGM: ""}).set_index(NAME),
            "policy": _policy(data["policy"]),
            "rule": StoppingRule(**data["rule"]),
            "notes": tuple(data["notes"]),
        }
        return cls(**{one.name: data[one.name] for one in fields(cls)} | read)


def make_plan(
    samples: Sequence[Any],
    layout: LayoutSource,
    demands: Demands = None,
    *,
    stop: Stop = None,
    policy: Policy | Mapping[str, Any] | str | None = None,
    target: str = CAPABILITIES,
    exposures: int = 1,
    common: int = 0,
    group: str = "",
    variant: str = "",
    partial: bool = False,
    **options: Any,
) -> Plan:
    """Set up an adaptive evaluation of samples.

    Args:
        samples: The samples, each with an id.
        layout: As for `adaptive`, like `demands` and `stop`.
        demands: By default the metadata, by the layout's names.
        stop: A rule, its attributes, the name of a preset, or a number of samples. With the target
            "accuracy" also the width of its interval at which to stop, between 0 and 1.
        policy: How to choose: a policy, its attributes, or its name.
        target: What is to be known: "capabilities", or the "accuracy" on all samples, which takes
            the policy "rate".
        exposures: How often a sample may be chosen, where the policy does not say it; 0 for any
            number of times.
        common: Number of random samples that come first and are the same under every seed, so that
            models have them in common.
        group: Key of the metadata that says what kind a sample is; random draws are balanced by it.
        variant: Variant of the layout; by default the one that is meant.
        partial: Whether a CSV of demands may lack samples, or have rows of others.
        **options: Further attributes of `Plan`.

    Raises:
        PlanError: There are no samples, ids are not unique, or demands are not there or all alike.
        ValueError: The layout, the policy or the rule is wrong, or a demand is out of range.
    """
    if unknown := sorted(options.keys() - OPTIONS):
        raise PlanError(f"there is no option {unknown[0]!r}; there are: {', '.join(OPTIONS)}")
    if not len(samples):
        raise PlanError("the task has no samples; give one whose dataset is not empty")
    named = {str(one.id): one for one in samples}
    if len(named) < len(samples):
        (first, times), *_ = Counter(str(one.id) for one in samples).most_common(1)
        raise PlanError(
            f"{len(samples) - len(named)} ids of samples are there again, as {first!r}, which is "
            f"there {times} times; give every sample an id of its own"
        )
    frame, noted = _table(named, demands, partial=partial)
    frame[PARADIGM] = [str(metadata_of(named[name]).get(group, "")) for name in frame.index]
    chosen = load_for(load_layout(layout, variant) if variant else layout, frame)
    if len(chosen.outcomes) > 1:
        raise PlanError(
            f"layout {chosen.name} has {len(chosen.outcomes)} outcomes, and a sample has the one "
            "score that is named; give a layout of one outcome"
        )
    if trials := _trials(chosen):
        epochs = float(options.get("epochs", 1))
        if trials in frame and (frame[trials] != epochs).any():
            raise PlanError(
                f"a choice has {epochs:g} trials, which are its epochs, and {trials} is another "
                f"number for some samples; leave {trials} out, or give epochs=N"
            )
        frame[trials] = epochs
    items, gone, notes = _cover_samples(frame, chosen)
    if lacking := len(samples) - len(frame):
        gone["without demands"] = lacking
    if items.empty:
        told = ", ".join(f"{count} {why}" for why, count in gone.items())
        raise PlanError(f"layout {chosen.name} describes no sample ({told})")
    if demands is None:  # other numbers of the metadata may be anything
        items = items[[name for name in items if name in (PARADIGM, *chosen.feature_names)]]
    if target == ACCURACY:
        if policy is not None or not isinstance(chosen.outcome, Bernoulli):
            raise PlanError(
                'target="accuracy" chooses by itself, and takes right or wrong: leave policy out, '
                "and give a layout of one success or failure"
            )
        policy = "rate"
        if isinstance(stop, float):
            stop = {"max_episodes": len(items), "target_width": stop}
    elif target != CAPABILITIES:
        raise PlanError(f"target {target!r} is unknown; give {CAPABILITIES!r} or {ACCURACY!r}")
    given = _policy(policy, exposures)
    if common:
        drawn = rng(0, "common", len(items)).permutation(sorted(items.index))
        given = replace(given, order=tuple(drawn[:common].tolist()))
    said = [words for name, words in noted.items() if name in ("", *chosen.feature_names)]
    return Plan(
        chosen,
        items,
        given,
        _rule(stop),
        **options,
        size=len(samples),
        left_out=gone,
        notes=(*filter(None, said), *notes, *_notes(items, chosen)),
    )


def _table(
    samples: Mapping[str, Any], demands: Demands, *, partial: bool
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The demands of the samples that have any, a row for each, by its id; and what is noted.

    Notes are by demand, and under no name what is noted of all.
    """
    known = {name: metadata_of(one) for name, one in samples.items()}
    notes: dict[str, str] = {}
    keys: Mapping[str, str] = {}
    rows: Mapping[str, Mapping[str, Any] | None]
    if demands is None:
        rows = {name: numbers_in(metadata) for name, metadata in known.items()}
    elif callable(demands):
        rows = {name: demands(one) for name, one in samples.items()}
    elif isinstance(demands, str | Path) and str(demands).lower().endswith((".csv", ".tsv")):
        sheet, notes = read_sheet(Path(demands))
        notes[""] = stray_rows(Path(demands).name, sheet, samples, partial=partial)
        rows = {name: sheet.get(name) for name in known}
    else:
        listed = [demands] if isinstance(demands, str | Path) else demands
        keys = listed if isinstance(listed, Mapping) else {key: key for key in map(str, listed)}
        rows = {
            name: {own: metadata.get(key) for own, key in keys.items()}
            for name, metadata in known.items()
        }
    asked = {name: row for name, row in rows.items() if row is not None}
    frame = pd.DataFrame.from_dict(asked, orient="index")
    if absent := [name for name in keys if frame[name].isna().all()]:
        there = ", ".join(sorted({key for one in known.values() for key in numbers_in(one)}))
        raise PlanError(f"no sample has the demand {absent[0]!r}; there are: {there or 'none'}")
    numbers = frame.apply(pd.to_numeric, errors="coerce").astype(np.float64)
    words = [name for name in frame if name not in keys and numbers[name].isna().all()]
    frame, numbers = frame.drop(columns=words), numbers.drop(columns=words)
    for name, wrong in (numbers.isna() & frame.notna()).items():
        if wrong.any():
            first = frame[name][wrong]
            raise PlanError(
                f"the demand {name!r} of sample {first.index[0]!r} is {first.iloc[0]!r}, which is "
                f"not a number ({len(first)} are none)"
            )
    return numbers, notes


def _cover_samples(
    frame: pd.DataFrame, layout: Layout
) -> tuple[pd.DataFrame, dict[str, int], tuple[str, ...]]:
    """The samples that the layout describes, how many it does not and why, and what it assumes.

    A demand that only some samples lack is not made up, also where the layout has a rule for that.
    """
    if layout.counted:
        name = layout.feature_names[layout.counted[0]]
        raise PlanError(
            f"layout {layout.name} counts by {name!r} what was played before, and samples have no "
            "order in which a model could learn; give a layout or a variant without it"
        )
    named = {one.name: one for k, one in enumerate(layout.features) if k not in layout.taught}
    asked = [name for name in named if name != _trials(layout)]
    here = [name for name in asked if name in frame]
    ruled = [name for name in here if named[name].if_missing is not None]
    lost = [name for name in asked if name not in frame and named[name].if_missing is None]
    if absent := lost or ([] if here else asked):
        there = ", ".join(name for name in map(str, frame) if name != PARADIGM)
        raise PlanError(
            f"layout {layout.name} needs the demand {absent[0]!r}, which no sample has; there are: "
            f"{there or 'none'}. Say by demands= where it is"
        )
    missing = frame[ruled].isna()
    rest = frame[~missing.any(axis=1)]
    covered = instances_in(rest, layout).covered(layout)
    reasons = [f"no {ruled[int(row.argmax())]}" for row in missing.to_numpy() if row.any()]
    return rest.iloc[covered.rows], left_out([*reasons, *covered.reasons]), covered.notes


def _trials(layout: Layout) -> str:
    """The feature that says of how many trials an outcome counts the successes; empty for none."""
    return layout.outcome.trials if isinstance(layout.outcome, Binomial) else ""


def _notes(items: pd.DataFrame, layout: Layout) -> tuple[str, ...]:
    """What demands cannot tell, since they do not vary or vary together."""
    own = [name for name in layout.feature_names if name in items and name != _trials(layout)]
    varying = [name for name in own if items[name].nunique() > 1]
    if own and not varying and len(items) > 1:
        raise PlanError(
            f"every sample asks for the same ({', '.join(own[:3])}): demands that do not vary tell "
            "nothing of a capability"
        )
    alike = np.abs(np.corrcoef(items[varying].to_numpy().T, rowvar=True)) > _ALIKE
    return (
        *(
            f"{name} is {items[name].iloc[0]:g} for every sample, so what it asks for is not told "
            "apart from chance"
            for name in own
            if name not in varying
        ),
        *(
            f"{varying[i]} and {varying[j]} vary together, so what they ask for cannot be told "
            "apart"
            for i, j in combinations(range(len(varying)), 2)
            if alike[i, j]
        ),
    )


def _policy(given: Policy | Mapping[str, Any] | str | None, exposures: int = 1) -> Policy:
    if isinstance(given, Policy):
        return given
    named: Mapping[str, Any] = {"name": given} if isinstance(given, str) else given or {}
    lists: dict[str, Any] = {
        name: tuple(named[name]) for name in ("about", "order") if name in named
    }
    options: dict[str, Any] = {"exposures": exposures, **named, **lists}
    return Policy(**options)


def _rule(given: Stop) -> StoppingRule:
    if isinstance(given, StoppingRule):
        return given
    if isinstance(given, str):
        if given not in PRESETS:
            raise PlanError(
                f"stop {given!r} is no preset; there are {', '.join(PRESETS)}; or give a number of "
                "samples"
            )
        return PRESETS[given]
    if isinstance(given, float):
        raise PlanError(f'stop {given} is a width, which goes with target="accuracy" alone')
    options: Mapping[str, Any] = {"max_episodes": given} if isinstance(given, int) else given or {}
    return StoppingRule(**options)
