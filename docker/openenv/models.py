"""What goes over OpenEnv's wire: an answer one way, words and perhaps a picture the other."""

from __future__ import annotations

from pydantic import Field

from openenv.core.env_server.types import Action, Observation, State


class AnimalcatAction(Action):
    """One answer of the agent."""

    answer: str = Field(
        max_length=100_000,
        description="A script such as Think('It is to the left.');Turn(-30);Go(5), or lines such "
        "as FORWARD 5, by the tongue of the episode.",
    )


class AnimalcatObservation(Observation):
    """What the agent is told.

    `reward` is 1 at the end of a training episode that was passed, and else 0. An evaluation tells
    no reward: the session keeps the score.
    """

    text: str = Field(default="", description="What came of the last answer, and what is perceived")
    prompt: str = Field(
        default="", description="What has to be known first; told at the start of each episode"
    )
    picture: str = Field(
        default="", description="A PNG of what the agent sees, in base64; empty without pictures"
    )
    points: float = Field(default=0.0, description="Animal-AI's own reward since the last answer")
    readable: bool = Field(default=True, description="Whether the last answer could be read")
    answers_left: int = Field(default=0, ge=0, description="Answers that the episode still has")


class AnimalcatState(State):
    """Where an episode stands. What asks for demands or arenas in an evaluation is told nothing."""

    evaluation: bool = Field(default=False, description="Whether a session is played")
    split: str = Field(default="", description="In training, the family of the arena")
    index: int | None = Field(default=None, description="In training, the arena within its split")
    seed: int | None = Field(default=None, description="In training, the seed of the episode")
    tongue: str = Field(default="", description="How the agent is told, and how it answers")
    over: bool = Field(default=False, description="Whether the session has no further episode")
