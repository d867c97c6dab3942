"""Unity's part of the conversation with an ML-Agents client, after the handshake.

Source: reference/animal-ai.md sections 6.3, 6.4 and 6.6.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from animalcat.arena_configs.model import ArenaError
from animalcat.envs.mlagents import channels
from animalcat.envs.mlagents.arguments import Arguments
from animalcat.envs.mlagents.channels import ChannelError
from animalcat.envs.mlagents.encoding import Encoder
from animalcat.envs.mlagents.source import SourceFailedError, SourceOver
from animalcat.envs.mlagents.v1 import communicator_pb2 as pb
from animalcat.envs.types import Phase

if TYPE_CHECKING:
    from animalcat.arena_configs.builds import Build
    from animalcat.envs.mlagents.handshake import ClientIdentity, Transport
    from animalcat.envs.mlagents.source import EpisodeSource, ScheduledStep
    from animalcat.envs.types import ObservationSpec

BEHAVIOUR: Final = "AnimalAI?team=0"
_BRANCHES: Final = (3, 3)
"""Options of the two choices of an action: to move, to turn."""

logger = logging.getLogger(__name__)

MakeSource = Callable[["ObservationSpec", int], "EpisodeSource"]
"""Makes the source of episodes from the specification of observations and the client's seed."""


class ClientError(ValueError):
    """The client asked for something impossible; the message says what."""


def converse(
    connection: Transport,
    client: ClientIdentity,
    arguments: Arguments,
    make_source: MakeSource,
) -> None:
    """Act as a build for a client after the handshake, until one of the two ends it.

    Whatever ends the conversation is raised. If this side ends it, the reason is logged and then
    the client is told, so that it ends at once. A client that has not received an observation yet
    is not told: it is still in its constructor, where nobody can close it, and its own threads
    would wait for that for ever. It checks for the build every few seconds and finds it gone.

    Args:
        connection: The connected client.
        client: Its identity.
        arguments: The command line of the build.
        make_source: Makes the source of episodes.

    Raises:
        ClientClosed: The client closed its environment, which is the usual end.
        ClientGoneError: The client is gone.
        SourceOver: There is nothing more to play.
        SourceFailedError: The source of episodes has failed.
        ArenaError: The client's arenas cannot be read or built.
        ChannelError: Its side channels cannot be read.
        ClientError: It sent an action that does not exist.
    """
    encoder = Encoder(channels_first=client.channels_first, encoding=arguments.encoding)
    # Now, while the client waits for the second message without a limit of time: on a machine's
    # first start numba compiles for half a minute. Whatever goes wrong, that message must come.
    try:
        source = make_source(arguments.spec, client.seed)
    except BaseException as error:
        if isinstance(error, (SourceFailedError, SourceOver)):
            _log(error)
        connection.stop()
        raise
    try:
        _play(connection, source, encoder, arguments.build)
    finally:
        source.close()


def _play(connection: Transport, source: EpisodeSource, encoder: Encoder, build: Build) -> None:
    request = connection.exchange(None).rl_input
    turn: ScheduledStep | None = None
    introduced: pb.InitializationOutput | None = introduction()
    try:
        while request.command != pb.COMMAND_QUIT:
            _heed(request.side_channel, source, build)
            turns = _turns(source, turn, request)
            turn = turns[-1]
            output = pb.UnityOutput(rl_initialization_output=introduced)
            introduced = None  # the client learns it with the first observations
            for following in turns:
                encoder.write(following.step, output.rl_output.agent_infos[BEHAVIOUR].value.add())
            request = connection.exchange(output).rl_input
    except (ArenaError, ChannelError, ClientError, SourceFailedError, SourceOver) as error:
        _log(error)
        if turn is not None:
            connection.stop()
        raise


def _turns(
    source: EpisodeSource, turn: ScheduledStep | None, request: pb.RlInput
) -> list[ScheduledStep]:
    """The next steps for the client: one, or two when an episode ends and another begins."""
    if turn is None or request.command == pb.COMMAND_RESET:
        turns = [source.reset()]
    elif turn.step.phase is Phase.LAST:
        turns = [source.restart()]
    else:
        turns = [source.step(_action(request))]
    while turns[-1].due:
        turns.append(source.restart())
    return turns


def _action(request: pb.RlInput) -> int:
    """The action 3 x move + turn; a client that sends none lets the agent do nothing."""
    agents = request.agent_actions[BEHAVIOUR].value
    if not agents:
        return 0
    choices = list(agents[0].discrete_actions)
    if len(choices) != len(_BRANCHES) or not all(0 <= c < 3 for c in choices):
        raise ClientError(f"action {choices}: an action is two numbers from 0 to 2")
    return 3 * choices[0] + choices[1]


def _heed(side_channel: bytes, source: EpisodeSource, build: Build) -> None:
    from animalcat.arena_configs.reading import check_drawn  # it takes a while to import

    for channel, content in channels.messages(side_channel):
        if channel == channels.ARENAS:
            loaded = channels.read_arenas(content)
            for problem in check_drawn(loaded, "the client's arenas", build):
                logger.warning("%s", problem)
            source.use(loaded.config)
            logger.info("arenas: %d", len(loaded.config.arenas))
        elif channel not in (channels.ENGINE, channels.ANALYTICS):
            logger.warning("side channel %s is unknown: a message is left unread", channel)


def introduction() -> pb.InitializationOutput:
    """What is sent with the first observations: the only kind of agent, and its actions."""
    actions = pb.ActionSpec(num_discrete_actions=len(_BRANCHES), discrete_branch_sizes=_BRANCHES)
    brain = pb.BrainParameters(brain_name=BEHAVIOUR, is_training=True, action_spec=actions)
    return pb.InitializationOutput(brain_parameters=[brain])


def _log(error: Exception) -> None:
    if isinstance(error, SourceOver):
        logger.info("%s", error)
        return
    for problem in (isinstance(error, ArenaError) and error.problems) or (error,):
        logger.error("%s", problem)
