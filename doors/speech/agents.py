"""Language models as agents, by references such as `llm:openai/gpt-4o+script,words=no`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Self, cast

from animalcat.doors.speech.estimate import most_tokens
from animalcat.doors.speech.tongue import Tongue
from animalcat.extending.installing import install

if TYPE_CHECKING:
    from animalcat.envs.agents.base import Agent
    from animalcat.envs.agents.limits.reference import Expected
    from animalcat.envs.types import ObservationSpec


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A language model, and how it is told what it perceives.

    Attributes:
        name: The model, as inspect_ai names it.
        tongue: How it is told what it perceives, and how it answers.
    """

    name: str
    tongue: Tongue

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a reference without its beginning; a model's name may have colons.

        Raises:
            ValueError: It names no model, or its tongue is none.
        """
        name, _, spoken = text.partition("+")
        if not name:
            raise ValueError("name the model, as in llm:openai/gpt-4o")
        return cls(name, Tongue.of(spoken or "tools"))

    @property
    def picture(self) -> int:
        """Side of the pictures that it is to be shown, in pixels; 0 for none."""
        return self.tongue.picture

    @property
    def options(self) -> Mapping[str, str]:
        """All that makes it another agent, for its fingerprint."""
        return {**self.tongue.options, "inspect_ai": version("inspect_ai")}

    def check(self) -> None:
        """Look for inspect_ai, and for what the model's provider needs; no model is made.

        Raises:
            ValueError: It is missing; the message says how to install it.
        """
        try:
            import_module("inspect_ai")
        except ModuleNotFoundError as error:
            needs = f"it needs {error.name}, which is missing: {install('inspect')}"
            raise ValueError(needs) from error
        from animalcat.doors.speech.speaking import insist_on_provider

        insist_on_provider(self.name)

    def make(self) -> Agent:
        """Make the agent, whose methods are coroutines.

        Raises:
            ValueError: As for `check`.
            AnimalcatError: There is no such model.
        """
        self.check()
        from animalcat.doors.speech.speaking import ModelAgent

        return cast("Agent", ModelAgent(self.name, self.tongue))

    def expected(self, spec: ObservationSpec, episodes: int) -> Expected:
        """Say what a session takes at most, without a provider's cache."""
        most = most_tokens(self.tongue, spec, episodes)
        return most.given, most.returned, self.tongue.answers
