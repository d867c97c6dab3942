"""What an adaptive evaluation consists of, as data that a log keeps and that determines it."""

from __future__ import annotations

import base64
import io
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.inspect.logs import LogError
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import PRESETS, RULES, Policy, StoppingRule, insist_on_rules
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import LayoutSource, load_layout
from animalcat.layouts.library.choice import load_for
from animalcat.layouts.model.frames import instances_in
from animalcat.layouts.model.nodes import Bernoulli, Binomial
from animalcat.layouts.model.spec import Layout, from_dict, to_dict

if TYPE_CHECKING:
    import pandas as pd

Demands: TypeAlias = (
    Sequence[str] | Mapping[str, str] | str | Path | Callable[[Any], Mapping[str, Any]] | None
)
"""Where demands come from: keys of the samples' metadata; keys by the layout's name of each; a CSV
by sample id; or a function of a sample."""
Stop: TypeAlias = StoppingRule | Mapping[str, Any] | str | int | None

VERSION: Final = 1
"""Version of what a log keeps; other versions are refused."""
PARADIGM: Final = "paradigm"
IDS: Final = ("instance", "id", "sample", "sample_id")
"""What the column of a CSV may be called that has the samples' ids."""
_ALIKE: Final = 0.99
"""Correlation from which on two demands ask for the same."""
_NAMED: Final = 3


class PlanError(ValueError):
    """An adaptive evaluation cannot be set up; the message says why, and what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """All that determines an adaptive evaluation but the answers.

    Attributes:
        layout: The layout that is measured.
        items: Ids of the samples that may be chosen, as text.
        features: (items, features), in the layout's order.
        outside: Demands that the layout does not use, each (items,).
        groups: What kind each item is, by which random draws are balanced; all empty for one kind.
        policy: How samples are chosen.
        rule: When to stop.
        seed: Seed of all randomness.
        at_once: How many samples may run at once. Choice k uses the outcomes of the choices 1 to
            k - at_once.
        epochs: How often a sample is run for one choice.
        score: Name of the score that is the outcome.
        pass_mark: From which score on an outcome is a success; None where it is the score itself.
        exposure: Probability with which an item may be chosen at all, drawn anew for each seed.
        tokens: How many tokens all samples together may use; 0 for any number.
        cost: How many dollars they may cost together; 0 for any.
        size: Number of samples of the dataset, with those left out.
        left_out: How many samples are left out, by reason.
        notes: What has to be known of the demands, in sentences.
    """

    layout: Layout
    items: tuple[str, ...]
    features: npt.NDArray[np.float64]
    outside: Mapping[str, npt.NDArray[np.float64]]
    groups: tuple[str, ...]
    policy: Policy = field(default_factory=Policy)
    rule: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 0
    at_once: int = 1
    epochs: int = 1
    score: str = ""
    pass_mark: float | None = None
    exposure: float = 1.0
    tokens: int = 0
    cost: float = 0.0
    size: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    notes: tuple[str, ...] = ()

    def learner(self) -> Learner:
        """A learner that was told nothing yet.

        Raises:
            ValueError: The policy or the rule does not fit the layout or the items.
        """
        bank = Bank(
            self.layout,
            self.features,
            self.groups,
            names=self.items,
            outside=self.outside,
        )
        learner = Learner(bank, self.policy, self.rule, self.seed)
        learner.set_aside(*self.spared)
        return learner

    @property
    def spared(self) -> list[str]:
        """Items that are not chosen under this seed, so that none is asked of every model."""
        if self.exposure >= 1.0:
            return []
        shares = rng(self.seed, "exposure", 0).random(len(self.items))
        listed = frozenset(self.policy.order)
        return [
            name
            for name, share in zip(self.items, shares, strict=True)
            if share >= self.exposure and name not in listed
        ]

    @property
    def trials(self) -> bool:
        """Whether an outcome is a number of successes."""
        return isinstance(self.layout.outcome, Binomial)

    def demands_of(self, item: str) -> dict[str, float]:
        """What an item demands, by the layout's names and those of what it does not use."""
        row = self.items.index(item)
        asked = dict(zip(self.layout.feature_names, self.features[row].tolist(), strict=True))
        return {**asked, **{name: float(column[row]) for name, column in self.outside.items()}}

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values; the table of items is compressed CSV, as text."""
        kept = ("seed", "at_once", "epochs", "score", "pass_mark", "exposure", "tokens", "cost")
        return {
            "version": VERSION,
            "rules": RULES,
            "layout": to_dict(self.layout),
            "policy": asdict(self.policy),
            "rule": asdict(self.rule),
            **{name: getattr(self, name) for name in kept},
            "size": self.size,
            "left_out": dict(self.left_out),
            "notes": list(self.notes),
            "outside": list(self.outside),
            "items": _packed(self._frame()),
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
        layout = from_dict(data["layout"])
        table = _unpacked(str(data["items"]))
        policy: dict[str, Any] = dict(data["policy"])
        for name in ("about", "order"):
            policy[name] = tuple(policy[name])
        pick = ("seed", "at_once", "epochs", "score", "pass_mark", "exposure", "tokens", "cost")
        return cls(
            layout,
            tuple(table["instance"].astype(str)),
            table[list(layout.feature_names)].to_numpy(np.float64),
            {str(name): np.asarray(table[name], np.float64) for name in data["outside"]},
            tuple(table[PARADIGM].astype(str)),
            Policy(**policy),
            StoppingRule(**data["rule"]),
            **{name: data[name] for name in pick},
            size=int(data["size"]),
            left_out=dict(data["left_out"]),
            notes=tuple(data["notes"]),
        )

    def _frame(self) -> pd.DataFrame:
        import pandas as pd

        named = dict(zip(self.layout.feature_names, self.features.T, strict=True))
        return pd.DataFrame(
            {"instance": self.items, PARADIGM: self.groups, **named, **self.outside}
        )


def make_plan(
    samples: Sequence[Any],
    layout: LayoutSource,
    demands: Demands = None,
    *,
    stop: Stop = None,
    policy: Policy | Mapping[str, Any] | str | None = None,
    exposures: int = 1,
    common: int = 0,
    group: str = "",
    variant: str = "",
    **options: Any,
) -> Plan:
    """Set up an adaptive evaluation of samples.

    Args:
        samples: The samples, each with an id.
        layout: The layout, or what `load_layout` makes one of.
        demands: Where demands come from; by default the metadata, by the layout's names.
        stop: When to stop: a rule, its attributes, the name of a preset, or a number of samples.
        policy: How to choose: a policy, its attributes, or its name.
        exposures: How often a sample may be chosen, where the policy does not say it; 0 for any
            number of times.
        common: Number of random samples that come first and are the same under every seed, so that
            models have them in common.
        group: Key of the metadata that says what kind a sample is.
        variant: Variant of the layout; by default the one that is meant.
        **options: Further attributes of `Plan`.

    Raises:
        PlanError: There are no samples, ids are not unique, or demands are not there or all alike.
        ValueError: The layout, the policy or the rule is wrong, or a demand is out of range.
    """
    ids = _ids(samples)
    frame, left_out = _table(samples, ids, demands, group)
    if frame.empty:
        raise PlanError(f"no sample has demands ({_counted(left_out)}); say where they are")
    chosen = load_for(load_layout(layout, variant) if variant else layout, frame)
    if len(chosen.outcomes) > 1:
        raise PlanError(
            f"layout {chosen.name} has {len(chosen.outcomes)} outcomes, and a sample has the one "
            "score that is named; give a layout of one outcome"
        )
    epochs = int(options.get("epochs", 1))
    frame = _with_trials(frame, chosen, epochs)
    frame, incomplete = _complete(frame, chosen)
    left_out |= incomplete
    if frame.empty:
        raise PlanError(f"no sample has all demands of the layout ({_counted(left_out)})")
    covered = instances_in(frame, chosen).covered(chosen)
    left_out.update(Counter(reason for reason in covered.reasons if reason))
    instances = covered.instances
    if not covered.rows:
        raise PlanError(f"layout {chosen.name} describes no sample ({_counted(left_out)})")
    known = chosen.feature_names
    outside = [c for c in instances.columns if c not in known and demands is not None]
    features = instances.features(chosen)
    items = tuple(map(str, instances.names))
    given = _policy(policy, exposures)
    if common:
        given = replace(given, order=_common(items, common))
    plan = Plan(
        chosen,
        items,
        features,
        {name: instances.column(name) for name in outside},
        instances.paradigms or ("",) * len(items),
        given,
        _rule(stop),
        **options,
        size=len(samples),
        left_out=left_out,
        notes=_notes(chosen, features),
    )
    if isinstance(chosen.outcome, Bernoulli) and plan.epochs > 1:
        raise PlanError(
            f"layout {chosen.name} takes one success or failure, and a choice has {plan.epochs} "
            "epochs: give epochs=1, or a layout of counts (binomial)"
        )
    for name, least in (("at_once", 1), ("epochs", 1), ("tokens", 0), ("cost", 0)):
        if getattr(plan, name) < least:
            raise PlanError(f"{name} is {getattr(plan, name)}; give {least} or more")
    if not 0.0 < plan.exposure <= 1.0:
        raise PlanError(f"exposure is {plan.exposure}; give a share above 0, up to 1")
    return plan


def _ids(samples: Sequence[Any]) -> list[str]:
    """Ids of samples as text."""
    if not len(samples):
        raise PlanError("the task has no samples; give one whose dataset is not empty")
    ids = [str(one.id) for one in samples]
    twice = (
        sorted({name for name in ids if ids.count(name) > 1}) if len(set(ids)) < len(ids) else []
    )
    if twice:
        raise PlanError(
            f"{len(twice)} ids of samples are there more than once, of which the first is "
            f"{twice[0]!r}; give every sample an id of its own"
        )
    return ids


def _table(
    samples: Sequence[Any], ids: Sequence[str], demands: Demands, group: str
) -> tuple[pd.DataFrame, dict[str, int]]:
    """The demands of the samples that have any, and how many are left out and why."""
    import pandas as pd

    read, keys = _reader(demands)
    rows: list[dict[str, Any]] = []
    without = 0
    for name, sample in zip(ids, samples, strict=True):
        asked = read(sample, name)
        if asked is None:
            without += 1
            continue
        rows.append({"instance": name, PARADIGM: _group(sample, group), **asked})
    frame = pd.DataFrame(rows)
    if keys is not None and (absent := [key for key in keys if key not in frame.columns]):
        there = ", ".join(c for c in frame.columns if c not in ("instance", PARADIGM))
        raise PlanError(f"no sample has the demand {absent[0]!r}; there are: {there or 'none'}")
    for column in [c for c in frame.columns if c not in ("instance", PARADIGM)]:
        numbers = pd.to_numeric(frame[column], errors="coerce")
        wrong = frame["instance"][numbers.isna() & frame[column].notna()]
        if keys is None and len(wrong) and isinstance(demands, type(None)):
            frame = frame.drop(columns=column)  # other metadata than demands
        elif len(wrong):
            value = frame[column][frame["instance"] == wrong.iloc[0]].iloc[0]
            raise PlanError(
                f"the demand {column!r} of sample {wrong.iloc[0]!r} is {value!r}, which is no "
                f"number ({len(wrong)} are none)"
            )
        else:
            frame[column] = numbers.astype(np.float64)
    return frame, {"without demands": without} if without else {}


def _reader(
    demands: Demands,
) -> tuple[Callable[[Any, str], Mapping[str, Any] | None], Sequence[str] | None]:
    """What reads the demands of a sample with its id, and which there have to be."""
    if callable(demands):
        function = demands
        return lambda sample, _: function(sample), None
    if isinstance(demands, Path) or (
        isinstance(demands, str) and demands.lower().endswith((".csv", ".tsv"))
    ):
        table = _sheet(Path(demands))
        return lambda _, name: table.get(name), None
    if isinstance(demands, Mapping):
        names = demands
    else:
        listed = [demands] if isinstance(demands, str) else demands
        names = None if listed is None else {key: key for key in listed}

    def of_metadata(sample: Any, _: str) -> Mapping[str, Any] | None:
        metadata: Mapping[str, Any] = sample.metadata or {}
        if names is None:
            return {
                key: value
                for key, value in metadata.items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            }
        return {name: metadata[key] for name, key in names.items() if key in metadata}

    return of_metadata, None if names is None else list(names)


def _sheet(path: Path) -> dict[str, dict[str, Any]]:
    """Demands by the id of a sample, of a CSV."""
    import pandas as pd

    try:
        table = pd.read_csv(path, sep=None, engine="python", dtype=dict.fromkeys(IDS, str))
    except (OSError, ValueError) as error:
        raise PlanError(f"{path}: no table of demands: {error}") from None
    column = next((name for name in IDS if name in table.columns), None)
    if column is None:
        raise PlanError(
            f"{path} has no column with the ids of samples; call it {', '.join(IDS[:-1])} or "
            f"{IDS[-1]}"
        )
    twice = table[column][table[column].duplicated()]
    if len(twice):
        raise PlanError(f"{path}: the id {twice.iloc[0]!r} is there more than once")
    rows = table.drop(columns=column).to_dict("records")
    named = [{str(key): value for key, value in row.items()} for row in rows]
    return dict(zip(table[column].astype(str), named, strict=True))


def _group(sample: Any, key: str) -> str:
    if not key:
        return ""
    metadata: Mapping[str, Any] = sample.metadata or {}
    return str(metadata.get(key, ""))


def _with_trials(frame: pd.DataFrame, layout: Layout, epochs: int) -> pd.DataFrame:
    """Where outcomes are counts, the number of trials is that of epochs."""
    kind = layout.outcome
    if not isinstance(kind, Binomial):
        return frame
    if kind.trials not in frame.columns:
        return frame.assign(**{kind.trials: float(epochs)})
    if (frame[kind.trials] != epochs).any():
        raise PlanError(
            f"layout {layout.name} counts successes of {kind.trials}, which is not the {epochs} "
            f"epochs of a choice for every sample; leave the column {kind.trials} out, or give "
            "epochs=N"
        )
    return frame


def _complete(frame: pd.DataFrame, layout: Layout) -> tuple[pd.DataFrame, dict[str, int]]:
    """The samples that have every demand of the layout, and how many lack which."""
    needed = list(layout.feature_names)
    if absent := [name for name in needed if name not in frame.columns]:
        there = ", ".join(c for c in frame.columns if c not in ("instance", PARADIGM))
        raise PlanError(
            f"layout {layout.name} needs the demand {absent[0]!r}, which no sample has; there are: "
            f"{there or 'none'}. Say by demands= where it is"
        )
    gone: dict[str, int] = {}
    for name in needed:
        lacking = int(frame[name].isna().sum())
        if lacking:
            gone[f"without {name}"] = lacking
            frame = frame[frame[name].notna()]
    return frame, gone


def _notes(layout: Layout, features: npt.NDArray[np.float64]) -> tuple[str, ...]:
    """What demands cannot tell, since they do not vary or vary together."""
    own = [k for k in range(len(layout.features)) if k not in layout.taught]
    if isinstance(layout.outcome, Binomial):
        own = [k for k in own if layout.feature_names[k] != layout.outcome.trials]
    varying = [k for k in own if np.ptp(features[:, k]) > 0.0]
    names = layout.feature_names
    if own and not varying and len(features) > 1:
        raise PlanError(
            f"every sample asks for the same ({', '.join(names[k] for k in own[:_NAMED])}): "
            "demands that do not vary tell nothing of a capability"
        )
    said = [
        f"{names[k]} is {features[0, k]:g} for every sample, so what it asks for is not told apart "
        "from chance"
        for k in own
        if k not in varying
    ]
    for one, other in combinations(varying, 2):
        r = float(np.corrcoef(features[:, one], features[:, other])[0, 1])
        if abs(r) > _ALIKE:
            said.append(
                f"{names[one]} and {names[other]} vary together (r = {r:.3f}), so what they ask "
                "for cannot be told apart"
            )
    return tuple(said)


def _policy(given: Policy | Mapping[str, Any] | str | None, exposures: int) -> Policy:
    if isinstance(given, Policy):
        return given
    if given is None or isinstance(given, str):
        return Policy(given or "variance", exposures=exposures)  # pyright: ignore[reportArgumentType]
    options: dict[str, Any] = {"exposures": exposures, **given}
    for name in options.keys() & {"about", "order"}:
        options[name] = tuple(options[name])
    return Policy(**options)


def _rule(given: Stop) -> StoppingRule:
    if given is None:
        return StoppingRule()
    if isinstance(given, StoppingRule):
        return given
    if isinstance(given, int):
        return StoppingRule(max_episodes=given)
    if isinstance(given, str):
        if given not in PRESETS:
            raise PlanError(
                f"stop {given!r} is no preset; there are {', '.join(PRESETS)}; or give a number of "
                "samples"
            )
        return PRESETS[given]
    return StoppingRule(**given)


def _common(items: Sequence[str], count: int) -> tuple[str, ...]:
    """Items that come first for every model, the same under every seed."""
    ranked = sorted(items)
    drawn = rng(0, "common", len(ranked)).permutation(len(ranked))
    return tuple(ranked[int(k)] for k in drawn[:count])


def _counted(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {why}" for why, count in left_out.items()) or "none were looked at"


def _packed(frame: pd.DataFrame) -> str:
    text = frame.to_csv(index=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _unpacked(text: str) -> pd.DataFrame:
    import pandas as pd

    content = zlib.decompress(base64.b64decode(text)).decode()
    return pd.read_csv(
        io.StringIO(content),
        dtype={"instance": str, PARADIGM: str},
        keep_default_na=False,
        na_values=[""],
    ).fillna({PARADIGM: ""})
