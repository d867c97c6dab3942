"""What both environments have in common: an episode that is held as a conversation."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, NamedTuple

from animalcat_openenv.models import AnimalcatAction, AnimalcatObservation, AnimalcatState

from animalcat.doors.speech import Conversation, Tongue, UnreadableError, prompt, read
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.answers import AnswerKind
from animalcat.envs.types import Observation
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata

OVER = "The trial is over. Reset begins the next one."


class Moved(NamedTuple):
    """What actions led to.

    Attributes:
        observation: What is observed now.
        points: Animal-AI's reward over them.
        ended: Whether the episode is over.
    """

    observation: Observation
    points: float
    ended: bool


class SpokenEnvironment(Environment[AnimalcatAction, AnimalcatObservation, AnimalcatState]):
    """An environment whose agent is told in words what it perceives, and answers in words.

    Those who derive from it begin an episode by `_opened`, say what actions lead to, and what an
    episode that has ended is worth.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True
    # A simulator belongs to one thread, and several at once would wait for one another anyway.
    REQUIRES_SINGLE_THREAD_EXECUTOR = True
    about = ""

    def __init__(self) -> None:
        super().__init__()
        self._talk: Conversation | None = None
        self._said = ""
        self._state = AnimalcatState()

    @property
    def state(self) -> AnimalcatState:
        """Where the episode stands."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Name, version and what it is, which OpenEnv tells at /metadata."""
        from animalcat.wire.protocol import version

        return EnvironmentMetadata(name="animalcat", description=self.about, version=version())

    def step(
        self, action: AnimalcatAction, timeout_s: float | None = None, **kwargs: Any
    ) -> AnimalcatObservation:
        """Carry out an answer, until the agent has to speak again or the episode is over.

        Of an answer that cannot be read the agent is told why, and shown the form. The next one
        behind it that cannot be read either costs 0.6 s of the arena's time.

        Raises:
            RuntimeError: No episode is open.
        """
        talk = self._talk
        if talk is None:
            raise RuntimeError("no episode is open: call reset first")
        self._state.step_count += 1
        kind: AnswerKind = "repeat" if action.answer == self._said else "read"
        self._said = action.answer
        try:
            talk.hear(read(action.answer, talk.tongue).deeds)
        except UnreadableError as error:
            kind = "unparseable"
            talk.mishear(str(error))
        self._note_answer(action.answer, kind)
        readable = kind != "unparseable"
        points, seen = 0.0, talk.seen
        while actions := talk.next(seen):
            moved = self._act(actions)
            points += moved.points
            if moved.ended:
                self._talk = None
                return AnimalcatObservation(
                    text=OVER, points=points, readable=readable, done=True, reward=self._worth()
                )
            seen = moved.observation
        return self._observation_of(
            talk, points=points, readable=readable, reward=self._meanwhile()
        )

    def _opened(
        self, tongue: Tongue, info: EpisodeInfo, seen: Observation, first: str = ""
    ) -> AnimalcatObservation:
        """Begin the conversation of an episode."""
        talk = self._talk = Conversation(tongue, info)
        self._said = ""
        talk.next(seen)
        return self._observation_of(talk, first=first, prompt=prompt(tongue, info))

    def _observation_of(
        self, talk: Conversation, *, first: str = "", **told: Any
    ) -> AnimalcatObservation:
        shown = talk.show()
        return AnimalcatObservation(
            text=f"{first} {shown.text}".strip(),
            picture=b64encode(shown.picture).decode() if shown.picture else "",
            answers_left=talk.tongue.answers - talk.answers,
            **told,
        )

    def _note_answer(self, answer: str, kind: AnswerKind) -> None:
        """Take note of an answer."""

    def _act(self, actions: bytes) -> Moved:
        """Take actions, a byte each, until the last or the end of the episode."""
        raise NotImplementedError

    def _meanwhile(self) -> float | None:
        """The reward of an answer that has not ended the episode."""
        return None

    def _worth(self) -> float | None:
        """The reward of an episode that has ended."""
        return None


def read_tongue(text: str) -> Tongue:
    """Read a tongue that is answered by text.

    Raises:
        ValueError: It is none, or is answered by calls of tools.
    """
    tongue = Tongue.of(text)
    if tongue.form == "tools":
        raise ValueError("OpenEnv's answers are text, so the tongue is script or frames")
    return tongue
