"""`animalcat-unity`: takes the place of an Animal-AI build, for code written for `animalai`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from animalcat.extending.doorways import entries
from animalcat.extending.installing import install
from animalcat.machine.codes import BAD_INPUT, FAILED, MISSING, UNREACHABLE
from animalcat.text.terminals import PlainFormatter

if TYPE_CHECKING:
    from animalcat.envs.mlagents.arguments import Arguments
    from animalcat.envs.mlagents.handshake import ClientIdentity
    from animalcat.envs.mlagents.link import ClientConnection
    from animalcat.envs.mlagents.peer import MakeSource

LOST: Final = 5
"""Exit code: the client went without closing."""
REFUSED: Final = 6
"""Exit code: the client speaks another version of the protocol."""
INTERRUPTED: Final = 130
"""Exit code: Ctrl-C."""
LOGS: Final = "ANIMALCAT_OBSERVATION_LOGS"
"""Environment variable: folder of the observation logs, or none."""

USAGE: Final = """\
animalcat-unity plays Unity's part for the Python package animalai; a client starts it:

    AnimalAIEnvironment(file_name="{path}", arenas_configurations="arena.yaml")

It takes the options of an Animal-AI build, and these, which additional_args can hold:

    --build NAME             play as build {builds}; or as a version, such as 4.3.1
    --observationLogs FOLDER where observation logs (CSV) go; none: nowhere. By default the variable
                             {variable}, then ObservationLogs beside this program
    --cameraEncoding png|raw how images are sent
    --rayTags 12|18          kinds of objects that rays tell apart

Messages go to standard error and to -logFile (the client's log_folder), by default
{log}. Exit codes: 0 the client closed; 1 a fault; 2 an option or
an arena is wrong; 3 something is not installed; 4 nobody listens at the port; 5 the client went
without closing; 6 the client speaks another version of the protocol.

With ANIMALCAT_SERVER=HOST:PORT and ANIMALCAT_SESSION=ID in the environment, that session chooses
the arenas and takes the outcomes.
"""

logger = logging.getLogger("animalcat.unity")


def main(argv: Sequence[str] | None = None) -> None:
    """Be a build for the client at the port that the command line names; ends the process."""
    words = list(sys.argv[1:] if argv is None else argv)
    if {"-h", "--help"} & set(words):
        from animalcat.arena_configs.builds import BUILDS

        path, log = Path(sys.argv[0]).absolute(), default_log("PORT")
        builds = ", ".join(BUILDS)
        print(USAGE.format(path=path, log=log, builds=builds, variable=LOGS), end="")
        return
    code = run(words)
    logging.shutdown()
    sys.stdout.flush()
    # The client waits for the end of this process, and to take numba and PhysX apart takes long.
    os._exit(code)


def default_log(port: int | str) -> Path:
    """Where messages go when the client names no file: a client shows nothing of its builds.

    Args:
        port: The client's port: clients side by side have different ones.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "animalcat", f"Player-{port}.log")


def log_folder(named: str | None) -> Path | None:
    """Where observation logs go: beside this program, as beside a build, unless told otherwise.

    Args:
        named: The folder of the command line; None if it names none.

    Returns:
        The folder, or None for no logs.
    """
    from animalcat.envs.mlagents.arguments import NO_LOGS

    folder = named or os.environ.get(LOGS)
    if folder == NO_LOGS:
        return None
    return Path(folder) if folder else Path(sys.argv[0]).absolute().parent / "ObservationLogs"


def run(words: Sequence[str]) -> int:
    """What `main` does.

    Args:
        words: The command line after the program's name.

    Returns:
        The exit code.
    """
    from animalcat.envs.mlagents.arguments import (
        LOG_FILE,
        PORT,
        ArgumentsError,
        parse_arguments,
        word_after,
    )

    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # else it writes of every client that closes
    _log_to(logging.StreamHandler())
    log, port = word_after(LOG_FILE, words), word_after(PORT, words)
    try:
        _log_to_file(log, default_log(port if port.isdigit() else 0))
        arguments = parse_arguments(words)
    except ArgumentsError as error:
        return _end(BAD_INPUT, error)
    except OSError as error:
        return _end(BAD_INPUT, f"-logFile {log} cannot be written: {error.strerror}")
    if arguments.port is None:
        return _end(
            BAD_INPUT, "no --mlagents-port: a Python client starts this program, see --help"
        )
    try:
        return _serve(arguments, arguments.port)
    except KeyboardInterrupt:
        return INTERRUPTED


def _serve(arguments: Arguments, port: int) -> int:
    """Greet the client and play; imports little before it, since the client's time runs."""
    try:
        from animalcat.envs.mlagents.handshake import VersionRefusedError, greet
        from animalcat.envs.mlagents.link import (
            ClientClosed,
            ClientConnection,
            ClientGoneError,
            NobodyListensError,
        )
    except ImportError as error:
        return _end(MISSING, _missing(error))
    try:
        with ClientConnection(port) as link:
            link.connect()
            return _play(link, greet(link), arguments)
    except ClientClosed as end:
        logger.info("%s", end)
        return 0
    except VersionRefusedError:  # said already
        return REFUSED
    except NobodyListensError as error:
        return _end(UNREACHABLE, error)
    except ClientGoneError as error:
        return _end(LOST, error)
    except Exception:
        logger.exception("this is a fault of animalcat: please report it")
        return FAILED


def _play(link: ClientConnection, client: ClientIdentity, arguments: Arguments) -> int:
    """Play until it ends; what the client ends, or what is a fault, is raised."""
    try:
        from animalcat.arena_configs.model import ArenaError
        from animalcat.envs.mlagents.channels import ChannelError
        from animalcat.envs.mlagents.peer import ClientError, converse
        from animalcat.envs.mlagents.source import SourceFailedError, SourceOver

        make_source = _source_maker(link, arguments)
    except (ImportError, ValueError) as error:
        missing = isinstance(error, ImportError)
        logger.error("%s", _missing(error) if missing else error)
        link.stop()  # the client waits, and without a time-out
        return MISSING if missing else BAD_INPUT
    try:
        converse(link, client, arguments, make_source)
    except SourceOver:  # what ends it here is said already
        return 0
    except (ArenaError, ChannelError, ClientError):
        return BAD_INPUT
    except SourceFailedError as error:
        return UNREACHABLE if error.unreachable else BAD_INPUT
    except ImportError as error:
        return _end(MISSING, _missing(error))
    return 0


def _source_maker(link: ClientConnection, arguments: Arguments) -> MakeSource:
    """A person, a session or the client's own arenas: who gives the episodes.

    Raises:
        ImportError: What that needs is not installed.
        ValueError: The environment variables that name a session are wrong.
    """
    from animalcat.client.session_source import SESSION, source_maker

    session_maker = source_maker()
    if arguments.plays:
        if session_maker is not None:
            raise ValueError(f"{SESSION} is set: a session is for an agent, not for play=True")
        way = entries("sources").get("person")
        if way is None:
            raise ValueError("play=True is for a person, and the door for people was taken away")
        return way.load()(arguments.build, link.on_gone)
    if session_maker is not None:
        return session_maker
    from animalcat.envs.mlagents.source import config_source

    return partial(config_source, build=arguments.build, logs=log_folder(arguments.logs))


def _end(code: int, message: object) -> int:
    logger.error("%s", message)
    return code


def _missing(error: ImportError) -> str:
    return f"{error}: {install('server')}"


def _log_to_file(path: str, usual: Path) -> None:
    """Also log to a file, a new one as Unity writes it; "-" is standard output."""
    if path == "-":
        _log_to(logging.StreamHandler(sys.stdout))
        return
    file = Path(path or usual)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _log_to(logging.FileHandler(file, mode="w", encoding="utf-8"))
    except OSError as error:
        if path:
            raise
        logger.warning("no log at %s: %s", file, error.strerror)


def _log_to(handler: logging.Handler) -> None:
    handler.setFormatter(PlainFormatter("animalcat-unity: %(levelname)s: %(message)s"))
    root = logging.getLogger("animalcat")
    root.addHandler(handler)
    root.setLevel(logging.INFO)


if __name__ == "__main__":
    main()
