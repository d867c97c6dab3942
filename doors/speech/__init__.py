"""One tongue for everything that speaks: observations become words and pictures, words actions.

A language model, a client of MCP and whoever else answers in words perceive and act through these
functions. They are pure, and know no door through which a speaker comes:

- `tongue`: the options of a tongue, all of which are part of the agent's identity;
- `perceiving`: an observation as words and as a picture;
- `reading`: what a speaker said, as deeds;
- `body`: how far it went and turned, what it met and how long it was held, as perceived;
- `doing`: a deed as one action after the other, and what came of it in words;
- `conversation`: one episode, turn by turn;
- `estimate`: how many tokens that takes at most;
- `prompts`: what a speaker is told before it sees anything;
- `speaking`: a language model as an agent, and `agents` its references `llm:MODEL`.
"""

from animalcat.doors.speech.conversation import Conversation, Shown
from animalcat.doors.speech.doing import Doing
from animalcat.doors.speech.estimate import Tokens, most_tokens
from animalcat.doors.speech.perceiving import picture, words
from animalcat.doors.speech.prompts import prompt
from animalcat.doors.speech.reading import (
    Deed,
    Go,
    Press,
    Said,
    Turn,
    UnreadableError,
    Wait,
    read,
    read_call,
)
from animalcat.doors.speech.tongue import Form, Tongue

__all__ = [
    "Conversation",
    "Deed",
    "Doing",
    "Form",
    "Go",
    "Press",
    "Said",
    "Shown",
    "Tokens",
    "Tongue",
    "Turn",
    "UnreadableError",
    "Wait",
    "most_tokens",
    "picture",
    "prompt",
    "read",
    "read_call",
    "words",
]
