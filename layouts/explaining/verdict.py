"""The verdict on an agent: two to six sentences, made from the posterior."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.seen import sum_up_episodes
from animalcat.layouts.adaptive.signs import wrong_way_round
from animalcat.layouts.explaining.controls import Standing
from animalcat.layouts.explaining.faked import confusing_cues, find_cues
from animalcat.layouts.explaining.flat import FlatPosterior
from animalcat.layouts.explaining.judgement import Judgement, judge_layout
from animalcat.layouts.explaining.kinds import (
    NAMED,
    WEAK,
    KindEstimate,
    PlayedEpisodes,
    RivalExplanation,
    find_kind,
    first_outcome,
)
from animalcat.layouts.explaining.limits import Costs, costs, thin_draws
from animalcat.layouts.explaining.notes import notes
from animalcat.layouts.explaining.prediction import PredictionTest
from animalcat.layouts.explaining.wording import (
    Scale,
    Vocabulary,
    all_of,
    percent,
    plain_scale,
    scale_of,
)
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NodeNote, Profile, learnt
from animalcat.layouts.watching.cues import CueFinding
from animalcat.text.counts import count_of

Floats: TypeAlias = npt.NDArray[np.float64]
Told: TypeAlias = Literal["can", "faked", "cannot", "unknown"]
"""What is told of a capability: that it is there, that it may be faked, that it is a weaker side,
or that it is not known."""

DRAWS: Final = 500
"""Draws from which kinds are computed."""
_JUDGED: Final = 200
"""Draws with which the battery is predicted."""
_INSTANCES: Final = 300
"""Most instances of the battery that are predicted, at equal distances in its order."""
_MOST: Final = 3
"""Most nodes that one sentence names."""
_SURE: Final = 0.9
"""Probability of one sign from which a bias is named."""
_LEAST_NOISE: Final = 0.02
"""Least lower end of the interval of noise that is named."""
_MOSTLY: Final = 0.5
"""Share of the expected failures from which one node makes most of them."""
_PARTLY: Final = 0.2
"""The same for a part that is worth naming."""
_NOISY: Final = 0.1
"""Share of outcomes from which noise is named."""
_UNSHOWN: Final = "its controls show a reason that the layout does not"
"""Why no kind is named where pairs of arenas and controls say more than the layout."""
_UNREAD: Final = "the layout does not describe this agent"
_UNFITTED: Final = "the fit has not converged"
_DOUBTED: Final = "other layouts describe what was played better than this one"
_UNHEARD: Final = "most of its answers were not valid actions"
"""Why no kind is named where no capability is to be read."""


@dataclass(frozen=True)
class ExpectedFailures:
    """How much of the battery the agent is expected to fail, and which node costs it most.

    Attributes:
        share: Expected share of the battery's instances that it fails.
        by: The node without whose limit it would fail least; empty if no node matters.
        without: Expected share that it would still fail then.
    """

    share: float
    by: str
    without: float


@dataclass(frozen=True)
class ControlFinding:
    """What arenas and their controls say of why an agent fails; it rests on outcomes alone.

    Attributes:
        sentence: It, as a sentence.
        standing: What it says of what the control takes away.
        eased: Nodes of which the control asks less than its arenas do.
    """

    sentence: str
    standing: Standing
    eased: frozenset[str]

    def agrees(self, blamed: str, share: str) -> bool:
        """Whether it goes together with what the layout says of why the agent fails.

        Args:
            blamed: The node that the layout names; empty for none.
            share: How much the layout says that it makes: "mostly", "partly", or empty where that
                is open.
        """
        match self.standing:
            case "main reason":
                return bool(share) and (blamed in self.eased or share == "partly")
            case "not the main reason":
                return bool(share) and (blamed not in self.eased or share == "partly")
            case "a reason":
                return bool(share)
            case _:
                return True

    @property
    def is_reason(self) -> bool:
        """Whether what the control takes away is a reason."""
        return self.standing in ("main reason", "a reason")


@dataclass(frozen=True)
class Verdict:
    """What a posterior says about an agent, in words.

    Attributes:
        sentences: Two to five plain sentences.
        found: The kind of the agent, with its probability.
        fails: What would most likely make it fail.
        notes: What must be known beside each node's estimate, by node.
        judgement: Whether the layout describes the agent.
        scales: How the values of the nodes are read, in the layout's order.
        blamed: The node that the sentences name as what makes the agent fail, or as what may; empty
            if they name none.
        cues: What was played tells of each cue that the agent may go by.
        claimed: The capabilities that the sentences say it has.
        inverted: What `wrong_way_round` says of the outcomes.
    """

    sentences: tuple[str, ...]
    found: KindEstimate
    fails: ExpectedFailures
    notes: Mapping[str, NodeNote]
    judgement: Judgement
    scales: tuple[Scale, ...]
    blamed: str = ""
    cues: tuple[CueFinding, ...] = ()
    claimed: tuple[str, ...] = ()
    inverted: str = ""

    @property
    def text(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values, as the schema "profile" documents them."""
        kind = self.found
        return {
            "sentences": list(self.sentences),
            "kind": kind.kind,
            "probability": kind.probability,
            "probabilities": dict(kind.probabilities),
            "why_unclear": kind.why,
            "weakness": kind.weakness,
            "depends_on": None if kind.rival is None else _rival_dict(kind.rival),
            "fails": asdict(self.fails),
            "cues": [
                {
                    "goes_by": finding.cue.name,
                    "instead_of": finding.cue.mimics,
                    "episodes": finding.episodes,
                    "passed": finding.passed,
                    "factor": finding.factor,
                    "standing": finding.standing,
                }
                for finding in self.cues
            ],
        }


def verdict(
    profile: Profile,
    draws: Floats,
    played: PlayedEpisodes,
    battery: npt.ArrayLike,
    *,
    weights: Floats | None = None,
    misfit: str = "",
    doubted: bool = False,
    prediction: PredictionTest | None = None,
    finding: ControlFinding | None = None,
    flat: Mapping[str, FlatPosterior] = {},
) -> Verdict:
    """Make the verdict.

    Args:
        profile: The profile; its nodes are what is said.
        draws: (draws, latents) of the same posterior: `FitResult.flat_draws`, or the particles.
        played: What was played.
        battery: (instances, features) on which success is predicted; what was played if empty.
        weights: (draws,), as `LivePosterior.weights`; equal if not given.
        misfit: Where predictions fail, if an alarm stands; else empty.
        doubted: Whether the check before the last word was not passed, without an alarm.
        prediction: Whether the layout predicts this agent, if that is known.
        finding: What arenas and their controls say, if they say something.
        flat: What is known of nodes under flat priors, as `flat_posteriors` finds it.
    """
    layout, words = profile.layout, played.words
    nodes = list(profile.nodes)
    some = thin_draws(draws, weights, DRAWS)
    instances = np.asarray(battery, np.float64).reshape(-1, len(layout.features))
    instances = _spread(instances if len(instances) else np.asarray(played.features, np.float64))
    scales = [scale_of(layout, k, played.features) for k in range(len(layout.latents))]
    evaluator = Evaluator(layout)
    columns = evaluator.columns(played.features)
    shares = played.shares(layout, columns)
    cues = find_cues(evaluator, some, played, columns, shares)
    seen = sum_up_episodes(layout, evaluator.touched(columns), shares)
    noted = notes(layout, nodes, some, seen, scales, cues, flat)
    cost = costs(layout, thin_draws(some, None, _JUDGED), instances)
    fails = _fails(cost)
    # What the answers of an agent in words were goes before what they came to.
    said = [f"{text}." for text in profile.provenance.get("answers", ())[:1]]
    inverted = wrong_way_round(layout, played.features, played.outcomes, played.weights)
    power = profile.diagnostics.get("predictive_power")
    judgement = judge_layout(misfit, prediction, power, inverted)
    converged = bool(profile.diagnostics["converged"]) or _is_live(profile)
    described = judgement.standing != "not described"
    unheard = bool(profile.provenance.get("unheard"))
    trusted = described and converged and not doubted and not unheard
    kind = find_kind(layout, some, played, cost)
    if not trusted:
        doubt = _DOUBTED if doubted else _UNFITTED
        kind = kind.unread(_UNHEARD if unheard else doubt if described else _UNREAD)
    # What pairs say rests on outcomes alone, so the layout's words give way to it.
    unlimited = frozenset[str]()
    if finding is not None and finding.is_reason:
        unlimited = frozenset(n for n in finding.eased if noted[n].side == "at least")
    if finding is not None and trusted and _contradicts(finding, kind):
        kind = kind.unread(_UNSHOWN)
    blamed = ""
    if unheard:
        said.append(f"No capability is named: {_UNHEARD}.")
    elif not described:
        said.append(judgement.text)
    elif doubted:
        said.append(f"No capability is named: {_DOUBTED}.")
    elif not converged:
        said.append("The fit has not converged: do not rely on its numbers.")
    told = _tell_nodes(layout, nodes, noted, cost, scales, unlimited)
    observed = bool(np.isfinite(shares).any())
    if observed:
        noun = words.again if played.repeated else words.many
        informed = bool(profile.provenance.get("privileged"))
        said.append(_say_passes(layout, shares, noun, informed=informed))
    else:
        what = "observed" if len(played) else "played"
        said.append(f"Nothing was {what}, so this is only the prior.")
    if trusted and observed:
        said += _abilities(layout, nodes, noted, scales, told, confusing_cues(cues))
        failed = bool((first_outcome(shares) < 1.0).any())
        said += _others(layout, nodes, some, failed=failed)
        if kind.kind not in ("fraudster", "context"):  # they say themselves what makes it fail
            failing, blamed = _failing(layout, nodes, noted, fails, failed=failed)
            if finding is None or finding.agrees(blamed, _share_of(failing)):
                said.append(failing)
            else:
                blamed = ""
    elif (
        kind.kind in ("able", "unclear")  # the others say it themselves
        and kind.rival is not None
        and kind.rival.probability >= NAMED
    ):
        said.append(_by_rival(kind.rival, words))
    if finding is not None:
        said.append(finding.sentence)
    said.append(_kind(kind, words))
    return Verdict(
        tuple(_short(said)),
        kind,
        fails,
        noted,
        judgement,
        tuple(scales),
        blamed,
        cues,
        tuple(n for n, which in told.items() if which == "can" and trusted and observed),
        inverted,
    )


def _contradicts(finding: ControlFinding, kind: KindEstimate) -> bool:
    """Whether what pairs say and a kind cannot both be so."""
    if kind.kind == "able":
        return finding.is_reason
    if kind.kind != "single weakness" or not kind.weakness:
        return False
    if finding.standing == "main reason":
        return kind.weakness not in finding.eased
    return finding.standing == "not the main reason" and kind.weakness in finding.eased


def _share_of(failing: str) -> str:
    """How much the sentence of `_failing` says that one node makes; empty where that is open."""
    return next((word for word in ("mostly", "partly") if f" {word} " in failing), "")


def _short(said: Sequence[str]) -> list[str]:
    """At most five sentences: what passed goes into one with what follows."""
    shown = list(said)
    while len(shown) > 5:
        shown[:2] = [f"{shown[0].removesuffix('.')}; {_lower(shown[1])}"]
    return shown


def _is_live(profile: Profile) -> bool:
    return profile.diagnostics.get("engine") == "smc"


def _spread(instances: Floats) -> Floats:
    rows = np.linspace(0, len(instances) - 1, min(len(instances), _INSTANCES)).round()
    return instances[rows.astype(np.int64)]


def _say_passes(layout: Layout, shares: Floats, noun: str, *, informed: bool) -> str:
    """How much was reached of every outcome that was observed, and whether the agent was helped."""
    said: list[str] = []
    for name, own in zip(layout.outcome_names, shares.T, strict=True):
        y = own[np.isfinite(own)]
        if len(y):
            which = f" ({name})" if len(layout.outcomes) > 1 else ""
            said.append(f"{_words_of_rate(y, noun)}{which}")
    end = ""
    if (shares[np.isfinite(shares)] == 1.0).all():
        end = ", so its limits were not found"
    elif not (shares > 0.0).any():
        end = ", so what it can do is not known"
    helped = "Told where everything is, it" if informed else "It"
    return f"{helped} {all_of(said)}{end}."


def _words_of_rate(y: Floats, noun: str) -> str:
    all_of_them = f"{len(y)} {noun}" if len(y) > 1 else f"the only {noun.removesuffix('s')}"
    if not np.isin(y, (0.0, 1.0)).all():
        return f"scored {percent(float(y.mean()))} of what was possible in {all_of_them}"
    number = int(y.sum())
    if len(y) == 1:
        return f"{'passed' if number else 'failed'} {all_of_them} that was played"
    if number == len(y) == 2:
        return f"passed both {noun}"
    passed = "all" if number == len(y) else f"{number or 'none'} of"
    return f"passed {passed} {all_of_them}"


def _tell_nodes(
    layout: Layout,
    nodes: Sequence[NodeSummary],
    noted: Mapping[str, NodeNote],
    cost: Costs,
    scales: Sequence[Scale],
    unlimited: Collection[str] = (),
) -> dict[str, Told]:
    """What is told of every capability; some are left out.

    Those that the layout is about come first, and of these the one that is known best.
    """
    weak = (cost.alone >= WEAK).mean(axis=1)
    left = [node.sd / latent.prior.sd for node, latent in zip(nodes, layout.latents, strict=True)]
    told: dict[str, Told] = {}
    about = layout.measures
    order = sorted(layout.capabilities, key=lambda i: (nodes[i].name not in about, left[i]))
    for i in order:
        node, note = nodes[i], noted[nodes[i].name]
        if node.name in unlimited:
            continue
        if not note.known:
            told[node.name] = "unknown"
        # A bound alone is no weakness that was found: it may have no limit, or not be able at all.
        elif weak[i] >= NAMED and note.side is None and not scales[i].full(node):
            told[node.name] = "cannot"
        else:
            told[node.name] = "faked" if note.instead else "can"
    return told


def _abilities(
    layout: Layout,
    nodes: Sequence[NodeSummary],
    noted: Mapping[str, NodeNote],
    scales: Sequence[Scale],
    told: Mapping[str, Told],
    unsure: Mapping[str, CueFinding],
) -> list[str]:
    """What it can do, what it may fake, what it cannot, and of what nothing was learnt."""
    at = {name: layout.latent_names.index(name) for name in told}
    each = {name: _ability(scales[k], nodes[k], noted[name]) for name, k in at.items()}
    can, faked, cannot, unknown = (
        [name for name, which in told.items() if which == wanted] for wanted in get_args(Told)
    )
    first = [f"it {_join_parts([each[name] for name in can])}"] if can else []
    first += [_say_not_shown(each[name], unsure[name]) for name in faked]
    sentences = [f"{_upper('; '.join(first))}."] if first else []
    if cannot:
        weaker = _join_parts([each[name] for name in cannot])
        sentences.append(f"Its weaker side{'s' * (len(cannot) > 1)}: it {weaker}.")
    if unknown:
        sentences.append(f"Not known yet: {all_of(unknown)}.")
    return (
        sentences
        if len(sentences) < 3
        else [sentences[0], f"{sentences[1].removesuffix('.')}; {_lower(sentences[2])}"]
    )


def _say_not_shown(ability: str, finding: CueFinding) -> str:
    """That a capability is not claimed, and why."""
    how = "may rely" if finding.standing == "open" else "more likely relies"
    number = finding.episodes
    played = "no episode" if not number else count_of(number, "episode")
    passed = f", of which it passed {finding.passed:g}" * bool(number)
    return (
        f"that it {ability} is not shown, since it {how} on {finding.cue.name}, which misled in "
        f"{played}{passed}"
    )


def _ability(scale: Scale, node: NodeSummary, note: NodeNote) -> str:
    said = scale.say(node, note) if note.bound is None else scale.proved(note, *node.hdi)
    return said if not note.leans else f"{said.removesuffix(')')}; this leans on its prior)"


def _others(
    layout: Layout, nodes: Sequence[NodeSummary], draws: Floats, *, failed: bool
) -> list[str]:
    """Biases that are sure of their sign, and noise that matters; a bias only if it failed."""
    said: list[str] = []
    for i, latent in enumerate(layout.latents):
        node = nodes[i]
        if not learnt(node.sd, latent.prior.sd):
            continue
        if latent.kind == "bias" and latent.prior.low < 0.0 < latent.prior.high and failed:
            above = float((draws[:, i] > 0.0).mean())
            if max(above, 1.0 - above) >= _SURE:
                said.append(f"it has a bias, {_value(node)}")
        elif (
            latent.kind == "robustness"
            and latent.is_share
            and node.mean >= _NOISY
            and node.hdi[0] >= _LEAST_NOISE
        ):
            low, high = node.hdi
            said.append(
                f"nothing explains {percent(node.mean)} of its outcomes "
                f"(90 %: {100 * low:.0f} to {percent(high)})"
            )
    return [f"{_upper(_join_parts(said))}."] if said else []


def _value(node: NodeSummary) -> str:
    value, interval = plain_scale(node.unit).brief(node.mean, *node.hdi)
    return f"{node.name} {value} (90 %: {interval})"


def _fails(cost: Costs) -> ExpectedFailures:
    share = 1.0 - float(cost.success.mean())
    gain = cost.gain.mean(axis=(1, 2))
    best = int(np.argmax(gain))
    if gain[best] < 0.01:
        return ExpectedFailures(share, "", share)
    return ExpectedFailures(share, cost.layout.latents[best].name, share - float(gain[best]))


def _failing(
    layout: Layout,
    nodes: Sequence[NodeSummary],
    noted: Mapping[str, NodeNote],
    fails: ExpectedFailures,
    *,
    failed: bool,
) -> tuple[str, str]:
    """What makes it fail in a sentence, and the node that the sentence names."""
    if not failed:
        return "It never failed, so nothing shows what would make it fail.", ""
    saved = (fails.share - fails.without) / fails.share if fails.by else 0.0
    if saved < _PARTLY or noted[fails.by].side == "at least":
        if not any(noted[nodes[k].name].known for k in layout.capabilities):
            return "Why it fails is not clear yet.", ""
        return "According to the layout, no single limit explains its failures.", ""
    at = layout.latent_names.index(fails.by)
    node = layout.latents[at]
    # Each ability that may be none can be what keeps the others from showing.
    unknown, unshown = _open(layout, nodes, noted)
    if not noted[fails.by].known:
        rest = f", or {' or '.join(unshown)}, in which it showed no ability" if unshown else ""
        said = f"Why it fails is not clear yet; it may be {fails.by}, which is not known yet{rest}."
        return said, fails.by
    if fails.by in unshown and len(unshown) + len(unknown) > 1:
        which = " or ".join(unshown)
        are = "are" if len(unknown) > 1 else "is"
        rest = f", and {all_of(unknown)} {are} not known yet" if unknown else ""
        return f"Why it fails is not clear yet: it showed no ability in {which}{rest}.", fails.by
    what, it = f"limit in {fails.by}", "limit"
    if node.kind == "robustness":
        what = it = "noise"
    elif node.kind == "bias":
        what, it = f"bias ({fails.by})", "bias"
    how = "mostly" if saved >= _MOSTLY else "partly"
    said = (
        f"It fails {how} because of its {what}: without that {it}, the layout expects "
        f"{percent(saved)} fewer failures."
    )
    return said, fails.by


def _open(
    layout: Layout, nodes: Sequence[NodeSummary], noted: Mapping[str, NodeNote]
) -> tuple[list[str], list[str]]:
    """Names of the capabilities that are not known, and of those of which none was shown."""
    unknown: list[str] = []
    unshown: list[str] = []
    for k in layout.capabilities:
        node, side = nodes[k], noted[nodes[k].name].side
        if not noted[node.name].known:
            if side != "at least":
                unknown.append(node.name)
        elif side == "at most":
            unshown.append(node.name)
    return unknown, unshown


def _by_rival(rival: RivalExplanation, words: Vocabulary) -> str:
    if rival.role == "cue":
        return f"It seems to rely on {rival.name}: it {_deeds(rival, words)}."
    aside = ", which should not matter" if rival.role == "irrelevant" else ""
    return f"It {_deeds(rival, words)}{aside}."


def _deeds(rival: RivalExplanation, words: Vocabulary) -> str:
    low, high = rival.rates
    if rival.role == "cue":
        best, worst = percent(high), percent(low)
        return f"passed {best} where that {rival.high}, and {worst} where it {rival.low}"
    name = words.setting if rival.role == "paradigm" else rival.name
    return (
        f"passed {percent(high)} where {name} is {rival.high}, and {percent(low)} where it is "
        f"{rival.low}"
    )


def _kind(kind: KindEstimate, words: Vocabulary) -> str:
    sure = f"(probability {kind.probability:.2f})"
    rival = kind.rival
    if kind.kind == "able":
        return f"Its kind: able {sure}; these {words.many} show no weakness."
    if kind.kind == "single weakness":
        named = f"Its kind: a single weakness {sure}"
        if rival is None or (kind.weakness and not _explains(rival)):
            return f"{named}, {kind.weakness or 'which is not named'}."
        return f"{named}{':' if _explains(rival) else '; for example'} it {_deeds(rival, words)}."
    if kind.kind == "single strength" and rival is not None:
        return f"Its kind: a single strength {sure}: it {_deeds(rival, words)}."
    if kind.kind == "fraudster" and rival is not None and rival.role == "cue":
        return (
            f"Its kind: a fraudster {sure}, which relies on {rival.name}: it "
            f"{_deeds(rival, words)}."
        )
    if kind.kind in ("fraudster", "context") and rival is not None:
        what = (
            f"a fraudster {sure}, whose success depends on {rival.name}, which should not matter"
            if kind.kind == "fraudster"
            else f"a context agent {sure}, whose success depends on {words.setting}"
        )
        return f"Its kind: {what}: it {_deeds(rival, words)}."
    return f"Its kind is unclear: {kind.why}."


def _explains(rival: RivalExplanation) -> bool:
    """Whether a demand explains the outcomes, in whatever shape, and not the layout's node."""
    return rival.role == "demand" and rival.probability >= NAMED


def _rival_dict(rival: RivalExplanation) -> dict[str, Any]:
    return {**asdict(rival), "rates": list(rival.rates)}


def _join_parts(parts: Sequence[str]) -> str:
    shown = list(parts[:_MOST])
    if len(parts) > _MOST:
        shown.append(f"{len(parts) - _MOST} more in the table")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]
