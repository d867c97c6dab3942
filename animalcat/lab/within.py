"""Measures an agent within this process, by the engine and the store of a server, without one."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar, Unpack

from animalcat.client.async_client import AsyncClient, PendingConnection, SessionLike
from animalcat.client.connection import PrivateLoop
from animalcat.envs.types import ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.lab.batteries import Arenas
from animalcat.lab.lab import Lab, reach_private
from animalcat.lab.policies import PolicySource, read_policy
from animalcat.lab.result import Result
from animalcat.values.options import SessionOptions, describe_options

if TYPE_CHECKING:
    from animalcat.client.evaluation import PlayedEpisode
    from animalcat.layouts.inference.fitter import Fitter
    from animalcat.service.host.settings import Settings
    from animalcat.service.session.workers import Starter

_T = TypeVar("_T")

PLACE: Final = "this process"
"""What stands for the address of a server."""


@describe_options(SessionOptions)
def measure(
    agent: PolicySource,
    battery: Arenas,
    *,
    folder: str | os.PathLike[str] = ".animalcat",
    env: Any = None,
    sensors: tuple[str, ...] | None = None,
    deterministic: bool = True,
    repeat: int = 1,
    step: int | None = None,
    name: str | None = None,
    layout: Any = "",
    layout_variant: str = "",
    preset: str = "",
    take: int = 1,
    against: Result | SessionLike = "",
    prior: Result | SessionLike = "",
    observation_spec: ObservationSpec | None = None,
    on_episode: Callable[[PlayedEpisode], None] | None = None,
    progress: bool = True,
    allow_builds: tuple[str | os.PathLike[str], ...] = (),
    allow_plugins: tuple[str, ...] = (),
    **options: Unpack[SessionOptions],
) -> Result:
    """Measure a policy or an agent within this process: no server, no other process for it.

        model = PPO("MlpPolicy", gymnasium.make("animalcat/Arena-v0", sensors=["rays"]))
        result = animalcat.measure(model.learn(10_000), "navigation", max_episodes=30)

    It is the same session as `local(folder).measure` gives for the same agent, seed and secret, and
    it is kept in the same folder. While it is measured nobody else can use that folder; what the
    result needs afterwards is read when it is asked for. Its profile says that the agent was not
    confined: an agent of this process sees the evaluator.

    Args:
        agent: A model of Stable-Baselines3, or another that has `predict` as theirs; a function of
            an observation of Gymnasium that gives an action; or an agent: an object with `reset`
            and `act`, its class, a function that makes one, or a reference, which is loaded here. A
            function with a memory has a method `reset(info)`; that of a recurrent model is reset as
            every episode begins.
        battery: What `Lab.battery` takes.
        folder: The data directory; it is made if it is not there.
        env: The environment that a policy was trained in, of Gymnasium or Stable-Baselines3: it
            is measured behind the same wrappers, with their statistics as they are. By default that
            which a model has; one that was loaded has none. The environment itself is not touched.
        sensors: What of an observation a policy is given, as in `animalcat/Arena-v0`. By default
            what the model was trained on, and all for a function.
        deterministic: A model takes its likeliest action; else it draws one, by the episode's seed.
        repeat: For how many decisions an action of the policy holds, where no wrapper says so.
        step: After how many steps of training this is; name and fingerprint of the agent say it.
        name: What the agent is called; by default by its class or function.
        layout: As for `Lab.measure`, like what follows.
        layout_variant: Variant of it.
        preset: "quick", "standard" or "thorough".
        take: Which session of all with the same agent, battery and options; 2 begins another.
        against: Another agent's result or session: play what was drawn for that.
        prior: An earlier result or session of the same agent, from which this one goes on.
        observation_spec: What the agent sees. By default what the environment of a model shows, or
            else what its spaces say; rays for all others.
        on_episode: Is told of every episode that ended.
        progress: Show how far it is.
        allow_builds: Unity builds that the session may run.
        allow_plugins: Packages whose plugins may run, with all that this process may.
        **options: The options below.

    Raises:
        AnimalcatError: Something is not what it should be; a server has the folder.
        Exception: Whatever the policy raises. The session is then paused until `judge_failure` of
            a lab says what the open episode counts as.
        TypeError: There is no such option.
    """
    read = read_policy(
        agent,
        name,
        options,
        env=env,
        sensors=sensors,
        spec=observation_spec,
        deterministic=deterministic,
        repeat=repeat,
        step=step,
    )
    with Within(folder, allow_builds, allow_plugins) as lab:
        return lab.measure(
            read.agent,
            battery,
            layout=layout,
            layout_variant=layout_variant,
            preset=preset,
            take=take,
            against=against,
            prior=prior,
            observation_spec=read.spec,
            on_episode=on_episode,
            progress=progress,
            **options,
        )


class Within(Lab):
    """A lab whose data directory this process has itself, for the time of a call.

    As a context it has the directory until the context's end. Where a server has the directory
    already, a call is made to that; a context is refused.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        builds: tuple[str | os.PathLike[str], ...] = (),
        plugins: tuple[str, ...] = (),
    ) -> None:
        """Describe it; the first call takes the directory.

        Args:
            folder: The data directory.
            builds: Unity builds that sessions may run.
            plugins: Packages whose plugins may run.
        """
        self._home = Path(folder).expanduser().absolute()
        self._builds = tuple(Path(build).expanduser().absolute() for build in builds)
        self._plugins = tuple(plugins)
        self._held = False
        self._kept: Kept | None = None
        super().__init__(self._reach_server, str(self._home), now=False)

    def _reach_server(self, stack: ExitStack) -> PendingConnection:
        return reach_private(self._home, self._builds, self._plugins, stack)

    def __enter__(self) -> Self:
        self._held = True
        try:
            self._open_loop()
        except BaseException:
            self._held = False
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held = False
        self.close()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Wait for a coroutine that uses `aio`, and let the directory go unless it is held."""
        try:
            return super().run(coroutine)
        finally:
            self._let_go()

    def iterate(self, source: AsyncGenerator[_T]) -> Iterator[_T]:
        """What an asynchronous generator that uses `aio` yields, as it comes."""
        try:
            yield from super().iterate(source)
        finally:
            self._let_go()

    def close(self) -> None:
        """Store what is open, and let the directory go; a call takes it again."""
        if self._open is None or self._kept is None:
            super().close()
            return
        (loop, client), self._open, self._kept = self._open, None, None
        loop.run(client.close())

    def _let_go(self) -> None:
        if not self._held:
            self.close()

    def _open_loop(self) -> tuple[PrivateLoop, AsyncClient]:
        if self._open is not None:
            return self._open
        from animalcat.extending.installing import needing

        with needing("animalcat.measure", "server"):
            import_module("animalcat.service.rpc.within")  # all that serves
            from animalcat.service.host.lock import DirectoryInUseError
        kept = Kept.of_thread()
        try:
            client = kept.loop.run(_client(kept, self._home, self._builds, self._plugins))
        except DirectoryInUseError as error:
            if self._held:
                raise AnimalcatError(
                    _words_in_use(self._home, error.holder.pid), "IN_USE"
                ) from None
            return super()._open_loop()
        self._open, self._kept = (kept.loop, client), kept
        return self._open


class Kept(NamedTuple):
    """What stays from one call to the next, as it takes seconds to start; one for each thread.

    Attributes:
        loop: The event loop on which directories are served.
        fitter: Runs NUTS.
        starter: Starts simulators.
    """

    loop: PrivateLoop
    fitter: Fitter
    starter: Starter

    @classmethod
    def of_thread(cls) -> Self:
        """That of the present thread, which is made if there is none."""
        if not hasattr(_thread, "kept"):
            from animalcat.layouts.inference.fitter import Fitter
            from animalcat.service.session.workers import own_starter

            settings = _settings(Path())
            fitter = Fitter(settings.fit_patience.outlast)
            starter = own_starter(settings.worker_patience, forked=settings.fork_workers)
            _thread.kept = kept = cls(PrivateLoop(), fitter, starter)
            atexit.register(kept.end)
        return _thread.kept

    def end(self) -> None:
        """End its processes."""
        with suppress(Exception):
            self.loop.run(self.fitter.close())
            self.loop.run(self.starter.close())
            self.loop.close()


_thread: Final = threading.local()


async def _client(
    kept: Kept, home: Path, builds: tuple[Path, ...], plugins: tuple[str, ...]
) -> AsyncClient:
    """A client of a directory that this process serves until the client is closed."""
    from animalcat.service.rpc.within import serve_within

    stack = AsyncExitStack()
    settings = _settings(home, builds, plugins)
    calls = await stack.enter_async_context(serve_within(settings, kept.fitter, kept.starter))
    return _ClientWithin(calls, stack)


class _ClientWithin(AsyncClient):
    """A client of its own process."""

    def __init__(self, calls: Any, served: AsyncExitStack) -> None:
        super().__init__(PLACE, calls)
        self._served = served

    async def close(self) -> None:
        """End what is served."""
        await self._served.aclose()


def _settings(home: Path, builds: tuple[Path, ...] = (), plugins: tuple[str, ...] = ()) -> Settings:
    """How a directory is served within a process."""
    from animalcat.service.host.settings import Settings

    settings = Settings(home=home, allowed_builds=builds, allowed_plugins=plugins)
    if settings.store or settings.engine != "local":
        raise AnimalcatError(
            "ANIMALCAT_STORE and ANIMALCAT_ENGINE are for servers, and this process measures in a "
            "folder of its own: unset them, or measure by connect('host:port').measure(...)",
            "INVALID_REQUEST",
        )
    return settings


def _words_in_use(home: Path, pid: int) -> str:
    if pid == os.getpid():
        return f"{home} is in use by this process, which measures there; give another folder"
    by = f"the process {pid}" if pid else "another process"
    return (
        f"{home} is in use by {by}, such as the server of an open lab: close that (lab.close()), "
        "let it measure (lab.measure(...)), or give another folder"
    )
