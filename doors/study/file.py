"""Reads a study file and says what is wrong with it."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Any, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from animalcat.text import names
from animalcat.text.marked_yaml import load_yaml, read_text, sentences, validate
from animalcat.values.options import SessionOptions, given_options

HELP: Final = "docs/studies.md says what stands in the file"
MOST_TEXT: Final = 200_000
"""Most characters of a text that is shown."""
MOST_ANSWER: Final = 5_000
"""Most characters of an answer in words."""
PICTURES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
"""Endings of pictures that a text may show."""
CAMERA: Final = 256
"""Side of the picture in pixels where the study does not say another."""
PROLIFIC: Final = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
"""Parameters by which Prolific says who comes."""
_GIVEN: Final = {
    *("fresh", "camera", "lease_seconds", "slots", "practice", "action_timeout_seconds"),
    "played_before",
}
"""Options of a session that the study decides by other keys, or for which people leave no choice.

Twins of arenas are made where practice shares the battery with what counts.
"""
WORDS: Final[Mapping[str, str]] = load_yaml(
    read_text(Path(__file__).with_name("words.yaml")), "words.yaml"
).data
"""Each text of the pages by its key, in English."""
_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table")


class _Strict(BaseModel):
    """What knows exactly its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def html_of(text: str) -> str:
    """Return a text in Markdown as HTML in which nothing can run; raw HTML is shown as written."""
    return _MARKDOWN.render(text)


def pictures_of(text: str) -> frozenset[str]:
    """Return the names of the pictures that a text in Markdown shows."""
    inline = [token for block in _MARKDOWN.parse(text) for token in block.children or ()]
    return frozenset(str(token.attrs["src"]) for token in inline if token.type == "image")


def _folder(info: ValidationInfo) -> Path | None:
    """Where the file is that is being read; None for a study that is kept."""
    context: Mapping[str, Path] = info.context or {}
    return context.get("folder")


def _content(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None


def _read_text(value: Any, info: ValidationInfo) -> str:
    """Take a text as it stands, or read the file that it names."""
    if not isinstance(value, str):
        raise ValueError(
            f"it is read as {value!r}; give a text in Markdown, in quotes, or the name of a file "
            "that ends in .md"
        )
    folder = _folder(info)
    if folder is None:  # it is kept as it was read
        return value
    text = _content(folder / value) if value.endswith(".md") and "\n" not in value else value
    if not text.strip():
        raise ValueError("the text is empty")
    if len(text) > MOST_TEXT:
        raise ValueError(f"the text has {len(text)} characters; give at most {MOST_TEXT}")
    for name in pictures_of(text):
        if PurePath(name).name != name or PurePath(name).suffix.lower() not in PICTURES:
            raise ValueError(
                f"the picture {name!r} does not stand beside the study file; put it there, as "
                f"{', '.join(sorted(PICTURES))}, and give its name alone"
            )
        if not (folder / name).is_file():
            raise ValueError(f"there is no picture {folder / name}")
    return text


Text: TypeAlias = Annotated[str, BeforeValidator(_read_text)]
_Component: TypeAlias = Annotated[
    str, BeforeValidator(lambda value: names.check_component(str(value), "name"))
]


class Consent(_Strict):
    """What a person agrees to."""

    version: str = Field(min_length=1, max_length=100)
    """Changes whenever the text does; each person's version and digest are kept."""
    text: Text
    ask: tuple[str, ...] = ()
    """Statements, each with a box that has to be ticked."""

    @property
    def digest(self) -> str:
        """SHA-256 of the text and the statements, in hexadecimal digits."""
        return hashlib.sha256("\0".join((self.text, *self.ask)).encode()).hexdigest()


class Question(_Strict):
    """A question: of choices, of a scale or for a number; of none of these, it takes a text."""

    ask: str
    name: str = Field(default="", pattern=r"^([A-Za-z][A-Za-z0-9_]*)?$")
    """What its column is called in exports."""
    choices: tuple[str, ...] = Field(default=(), max_length=100)
    many: bool = False
    """Whether several choices may be ticked."""
    scale: tuple[str, str] | None = None
    """What the first and the last point of a scale mean."""
    points: int = Field(default=7, ge=2, le=11)
    number: tuple[float, float] | None = None
    """The least and the largest number."""
    required: bool = True
    right: int | None = None
    """Which choice, point or number is right; choices and points are counted from 1."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.choices != ()) + (self.scale is not None) + (self.number is not None) > 1:
            raise ValueError("give one of choices, scale and number, or none for a text")
        if len(self.choices) == 1 or (self.many and not self.choices):
            raise ValueError("it needs two choices at least")
        low, high = self.number or (1, len(self.offered))
        if self.right is not None and not low <= self.right <= high:
            raise ValueError(f"right is {self.right}, and answers are {low:g} to {high:g}")
        return self

    @property
    def offered(self) -> tuple[str, ...]:
        """What is offered to be chosen, from 1 on; nothing for a number or a text."""
        if self.scale is None:
            return self.choices
        points = map(str, range(2, self.points))
        return (f"1 ({self.scale[0]})", *points, f"{self.points} ({self.scale[1]})")

    @property
    def about(self) -> str:
        """The question, with what its answers mean."""
        choices = "; ".join(f"{k} = {choice}" for k, choice in enumerate(self.choices, 1))
        return f"{self.ask} {choices or ', '.join(self.offered)}".strip()

    def read(self, said: str) -> str:
        """Return an answer as it is kept: numbers of choices with blanks between, or as written.

        Raises:
            ValueError: It is none, or none is given where one is required.
        """
        said = " ".join(said.split()) if self.offered or self.number else said.strip()
        if not said and not self.required:
            return ""
        if self.offered:
            chosen = [int(one) for one in said.split()]
            fits = len({*chosen}) == len(chosen) and (self.many or len(chosen) == 1)
            fits = fits and all(1 <= one <= len(self.offered) for one in chosen)
        elif self.number is not None:
            fits = self.number[0] <= float(said) <= self.number[1]
        else:
            fits = len(said) <= MOST_ANSWER
        if not said or not fits:
            raise ValueError(f"{said[:100]!r} is no answer to {self.ask[:100]!r}")
        return said

    def is_right(self, said: int | str) -> bool:
        """Whether an answer is not wrong; where no answer is right, none is wrong."""
        return self.right is None or str(said).removesuffix(".0") == str(self.right)


class Questions(_Strict):
    """What is asked beside the instructions: before them, and after all rounds."""

    before: tuple[Question, ...] = ()
    after: tuple[Question, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = [question.name for question in (*self.before, *self.after)]
        if "" in found or len({*found}) != len(found):
            raise ValueError("each question needs a name of its own, as in `name: age`")
        return self


class Careless(_Strict):
    """By which rule people are flagged in exports; nobody is left out by it."""

    wrong: int = Field(default=1, ge=0)
    """So many questions before or after that have a right answer are answered wrongly; 0: never."""
    idle: float = Field(default=0.5, gt=0, le=1)
    """In this share of the rounds, or more, no key is pressed."""
    one_key: float = Field(default=1.0, gt=0, le=1)
    """This share of all presses, or more, is of one key."""


class Understanding(_Strict):
    """Questions after the instructions, each of which has a right answer."""

    questions: tuple[Question, ...] = Field(min_length=1)
    tries: int = Field(default=2, ge=1, le=10)
    """How often the instructions are read and answered before the person is screened out."""

    @field_validator("questions")
    @classmethod
    def _check(cls, value: tuple[Question, ...]) -> tuple[Question, ...]:
        if any(question.right is None for question in value):
            raise ValueError("each needs a right answer, as in `right: 1`")
        return value


class Device(_Strict):
    """What a participant's device must have."""

    width: int = Field(default=480, ge=200, le=4000)
    """Least width of the window, in CSS pixels."""
    height: int = Field(default=480, ge=200, le=4000)
    input: Literal["any", "keyboard", "touch"] = "any"
    full_screen: bool = False
    """Whether play begins in full screen."""


class Practice(_Strict):
    """Rounds before those that count."""

    battery: str = ""
    """Where its arenas come from; empty: twins of the study's arenas, which nobody plays again."""
    passes: int = Field(default=2, ge=0)
    """Rounds that must be passed, of the last `of`."""
    of: int = Field(default=3, ge=1)
    most: int = Field(default=8, ge=1, le=1000)
    """Rounds after which practice ends in any case."""
    otherwise: Literal["go on", "screen out"] = "go on"
    """What becomes of a person who does not reach the criterion."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.passes <= self.of <= self.most:
            raise ValueError(
                f"passes {self.passes}, of {self.of} and most {self.most}: each must be at most "
                "the next"
            )
        return self

    def met(self, outcomes: tuple[bool, ...]) -> bool:
        """Whether the criterion is met by the outcomes so far."""
        return sum(outcomes[-self.of :]) >= self.passes


class Blocks(_Strict):
    """When there is a break."""

    trials: int = Field(default=0, ge=0)
    """Rounds of a block; 0: no limit."""
    minutes: float = Field(default=5.0, ge=0)
    """Minutes of a block, after which its round is played to its end; 0: no limit."""
    break_seconds: float = Field(default=60.0, ge=0, le=3600)
    """Longest break; then the next block may begin by itself only if the person wants it."""
    latin: Mapping[Annotated[str, Field(pattern=r"^\w{1,20}$")], tuple[str, ...]] = {}
    """Blocks by name, each with as many arenas; every order of a Latin square is a condition."""

    @field_validator("latin")
    @classmethod
    def _check(cls, value: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        arenas = [arena for block in value.values() for arena in block]
        if value and (len({*map(len, value.values())}) > 1 or len({*arenas}) < len(arenas)):
            raise ValueError("give each block as many arenas as the others, and none twice")
        return value

    @property
    def most(self) -> tuple[int, float]:
        """After how many rounds, and how many seconds, a block ends; 0: no limit."""
        if self.latin:
            return len(next(iter(self.latin.values()))), 0.0
        return self.trials, 60.0 * self.minutes

    @property
    def orders(self) -> list[list[str]]:
        """Orders of the blocks: each is everywhere, and behind each other, equally often.

        Williams, E. J. (1949), Experimental designs balanced for the estimation of residual
        effects of treatments.
        """
        names = [*self.latin]
        row = [(k + 1) // 2 if k % 2 else -(k // 2) for k in range(len(names))]
        rows = [[names[(k + by) % len(names)] for k in row] for by in range(len(names))]
        return rows + [order[::-1] for order in rows] * (len(names) % 2)


class Shown(_Strict):
    """What is told while and after playing."""

    health: bool = True
    reward: bool = False
    stars: bool = False
    """A star for every round, passed or not."""
    outcome: bool = False
    """After each round, whether it was passed."""
    score: bool = False
    """At the end, how many were passed."""


class Completion(_Strict):
    """What a person gets at an end, to show that it was reached."""

    link: str = ""
    code: str = Field(default="", max_length=100)

    @field_validator("link")
    @classmethod
    def _check(cls, value: str) -> str:
        if value and (urlsplit(value).scheme != "https" or not urlsplit(value).hostname):
            raise ValueError(f"{value!r} is no link; give an address that begins with https://")
        return value


class Completions(_Strict):
    """The ends, each with its own completion."""

    done: Completion = Completion()
    declined: Completion = Completion()
    screened: Completion = Completion()
    withdrawn: Completion = Completion()
    full: Completion = Completion()
    technical: Completion = Completion()
    """For who says that it does not work; they are asked for it once there is a link or code."""


class Who(_Strict):
    """Who may take part."""

    by: Literal["open", "codes", "prolific"] = "open"
    codes: tuple[_Component, ...] = ()
    """The codes, or the name of a file with one a line."""
    most: int = Field(default=0, ge=0)
    """Persons at most; 0: no limit."""
    visits: int = Field(default=1, ge=1, le=100)
    """How often a person comes."""
    days_between: float = Field(default=0.0, ge=0)
    drop_hours: float = Field(default=24.0, gt=0)
    """Hours of silence after which the place and condition of who is not done are free again."""

    @field_validator("codes", mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        return tuple(_content((_folder(info) or Path()) / value).split())

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.by == "codes") != bool(self.codes):
            raise ValueError("codes are for `by: codes`, which needs at least one")
        if len({*self.codes}) != len(self.codes):
            twice = next(c for c in self.codes if self.codes.count(c) > 1)
            raise ValueError(f"the code {twice!r} is there twice; each person needs another one")
        if self.visits > 1 and self.by == "open":
            raise ValueError(
                "who comes again is known by a code or by Prolific alone; choose `by: codes` or "
                "`by: prolific`, or `visits: 1`"
            )
        return self


class Measured(_Strict):
    """What is played, and how it is chosen: a session of the service."""

    model_config = ConfigDict(extra="allow", frozen=True)

    battery: str = Field(min_length=1)
    layout: str = ""
    variant: str = ""
    camera: int = Field(default=CAMERA, ge=16, le=1024)
    """Side of the picture that the person sees, in pixels."""

    @property
    def options(self) -> dict[str, Any]:
        """What else is said, by the table of `SessionOptions`."""
        return self.model_extra or {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if own := sorted(_GIVEN & self.options.keys()):
            raise ValueError(f"{own[0]} is not chosen here: a session of a person has its own")
        try:
            given_options(SessionOptions, self.options)
        except TypeError as error:
            raise ValueError(str(error)) from None
        return self


class Condition(_Strict):
    """One of several ways in which people take part."""

    name: _Component
    weight: float = Field(default=1.0, gt=0)
    """How many come here in proportion to the other conditions."""
    play: Mapping[str, Any] = {}
    """What differs in `play`."""
    shown: Mapping[str, bool] = {}
    """What differs in `shown`."""


def _order_condition(blocks: Blocks, order: Sequence[str]) -> Condition:
    arenas = [arena for name in order for arena in blocks.latin[name]]
    play = {"policy": "listed", "first": arenas, "max_episodes": len(arenas)}
    return Condition(name="-".join(order), play=play)


class Study(_Strict):
    """A study, as its file says it."""

    study: _Component
    """Its id, which is part of its address."""
    title: str = Field(min_length=1, max_length=200)
    language: str = Field(default="en", pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")
    """Language of the texts, as browsers name it, such as "de" or "pt-BR"."""
    direction: Literal["ltr", "rtl"] = "ltr"
    contact: str = Field(min_length=1, max_length=300)
    """Whom participants may ask; it stands on every page."""
    consent: Consent
    instructions: tuple[Text, ...] = ()
    understanding: Understanding | None = None
    questions: Questions = Questions()
    careless: Careless = Careless()
    device: Device = Device()
    practice: Practice | None = None
    blocks: Blocks = Blocks()
    play: Measured
    shown: Shown = Shown()
    debrief: Text = ""
    completion: Completions = Completions()
    who: Who = Who()
    conditions: tuple[Condition, ...] = ()
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Decides which of equally filled conditions is next."""
    slower: float = Field(default=1.0, ge=1.0, le=10.0)
    """How many times slower than real time arenas run."""
    gap_seconds: float = Field(default=5.0, ge=1.0, le=600.0)
    """Longest absence after which a round goes on at its step; after a longer one it is void."""
    words: Mapping[str, str] = {}
    """Words of the pages that differ from the English ones; or the name of a file of them."""
    folder: Path = Field(default=Path(), exclude=True)
    """Where its file is."""

    @field_validator("words", mode="before")
    @classmethod
    def _read_words(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        return load_yaml(_content((_folder(info) or Path()) / value), value).data

    @field_validator("words")
    @classmethod
    def _check_known(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for key, text in value.items():
            if key not in WORDS:
                raise ValueError(f"there is no text {key!r}; there are: {', '.join(sorted(WORDS))}")
            if _gaps(text) != _gaps(WORDS[key]):
                wanted = ", ".join(f"{{{gap}}}" for gap in sorted(_gaps(WORDS[key]))) or "no braces"
                raise ValueError(f"{key}: the English text has {wanted}; give the same")
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if made := tuple(_order_condition(self.blocks, order) for order in self.blocks.orders):
            if self.conditions not in ((), made):
                raise ValueError("blocks.latin makes the conditions; leave one of both out")
            object.__setattr__(self, "conditions", made)
        found = [condition.name for condition in self.conditions]
        if len({*found}) != len(found):
            raise ValueError("conditions: two have the same name")
        for condition in self.conditions:
            try:
                self.measured(condition.name)
                self.shows(condition.name)
            except ValidationError as error:
                _, said = sentences(error, Shown)
                raise ValueError(f"conditions.{condition.name}: {said}") from None
        return self

    @cached_property
    def texts(self) -> dict[str, str]:
        """All words of the pages, by key."""
        return {**WORDS, **self.words}

    @cached_property
    def pictures(self) -> frozenset[str]:
        """Names of the pictures beside the file that its texts show."""
        shown = (self.consent.text, *self.instructions, self.debrief)
        return frozenset[str]().union(*map(pictures_of, shown))

    def asked(self, stage: str) -> tuple[Question, ...]:
        """Return the questions of a stage: "before", "questions" on the instructions, "after"."""
        understood = () if self.understanding is None else self.understanding.questions
        own = {"before": self.questions.before, "questions": understood}
        return {**own, "after": self.questions.after}.get(stage, ())

    @property
    def digest(self) -> str:
        """SHA-256 of all that it says but the codes of its people, in hexadecimal digits."""
        said = self.model_dump_json(exclude={"who": {"codes"}})
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def batteries(self) -> list[str]:
        """All batteries that are played, by name."""
        found = {self.measured(c.name).battery for c in self.conditions} or {self.play.battery}
        own = self.practice is not None and self.practice.battery
        return sorted(found | {own} if own else found)

    def measured(self, condition: str) -> Measured:
        """What is played in a condition; empty for a study without conditions."""
        own = (c.play for c in self.conditions if c.name == condition)
        return Measured.model_validate({**self.play.model_dump(), **next(own, dict[str, Any]())})

    def shows(self, condition: str) -> Shown:
        """What is told in a condition."""
        own = (c.shown for c in self.conditions if c.name == condition)
        return Shown.model_validate({**self.shown.model_dump(), **next(own, dict[str, bool]())})


def _gaps(text: str) -> set[str]:
    try:
        return {gap for _, gap, _, _ in string.Formatter().parse(text) if gap is not None}
    except ValueError:
        return {"an unpaired brace"}


def read_study(path: Path) -> Study:
    """Read a study file with the texts that it names, which stand beside it.

    Raises:
        YamlError: It cannot be read, or something in it is wrong.
    """
    folder = path.absolute().parent
    marked = load_yaml(read_text(path), str(path))
    study = validate(Study, marked, context={"folder": folder}, help=HELP)
    return study.model_copy(update={"folder": folder})
