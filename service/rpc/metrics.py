"""Offers a server's measurements to Prometheus, and how it is, on a port of their own.

Names and meanings are listed in `docs/operations.md`. The library is in the extra `metrics`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import platform
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

import grpc
from sqlalchemy.exc import DBAPIError

from animalcat.extending.installing import install
from animalcat.service.host.standing import Standing
from animalcat.service.refusals import Refusals
from animalcat.service.session.engines import Engines
from animalcat.service.session.events import Event
from animalcat.values import Cause, Outcome, SessionState
from animalcat.wire.protocol import version

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

log = logging.getLogger(__name__)

STEPS: Final = (10, 30, 100, 300, 1000, 3000, 10_000)
"""Bounds of the histogram of decisions per episode."""
LIVE_SECONDS: Final = 5.0
"""How long the event loop may take to answer, so that the process counts as alive."""
MOST_ENDS: Final = 100
"""Most certificates and tokens of which it is told when they end, those that end first."""


class MetricsError(Exception):
    """Measurements cannot be offered; the message says why, and what to do."""


class Metrics:
    """The measurements of one server."""

    def __init__(self) -> None:
        """Measure nothing yet.

        Raises:
            MetricsError: The library is not installed.
        """
        try:
            import prometheus_client as prometheus
        except ModuleNotFoundError:
            raise MetricsError(
                "--metrics needs a library that is not installed; install it with: "
                f"{install('metrics')}"
            ) from None
        self.registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self.registry)
        self._calls = prometheus.Counter(
            "animalcat_calls", "Calls that have ended.", ["method", "code"], registry=self.registry
        )
        self._call_seconds = prometheus.Histogram(
            "animalcat_call_seconds",
            "Duration of calls, but for streams.",
            ["method"],
            registry=self.registry,
        )
        self._episodes = prometheus.Counter(
            "animalcat_episodes", "Attempts that have ended.", ["outcome"], registry=self.registry
        )
        self._steps = prometheus.Histogram(
            "animalcat_episode_steps",
            "Decisions per attempt.",
            buckets=STEPS,
            registry=self.registry,
        )
        self._early = prometheus.Counter(
            "animalcat_episodes_ended_early",
            "Attempts that ended early, by outcome and cause.",
            ["outcome", "cause"],
            registry=self.registry,
        )
        self._seconds = prometheus.Counter(
            "animalcat_episode_seconds",
            "Seconds that attempts have taken, added up.",
            registry=self.registry,
        )

    def take(self, event: Event) -> None:
        """Count an event of a session."""
        episode = event.episode
        if episode is not None and episode.outcome is not None and not episode.invalid:
            self._episodes.labels(episode.outcome.name.lower()).inc()
            self._steps.observe(episode.steps)
            self._seconds.inc(episode.seconds)
            if episode.kind is not None:
                self._early.labels(episode.outcome.name.lower(), episode.kind.name.lower()).inc()

    def called(self, method: str, code: str, seconds: float | None) -> None:
        """Count a call.

        Args:
            method: Full name of the method.
            code: Name of its gRPC status.
            seconds: How long it took; None for a stream, which lasts as long as its agent likes.
        """
        self._calls.labels(method, code).inc()
        if seconds is not None:
            self._call_seconds.labels(method).observe(seconds)

    @contextmanager
    def served(
        self, host: str, port: int, engines: Engines, refusals: Refusals, standing: Standing
    ) -> Generator[int]:
        """Offer the measurements over HTTP during the block; yields the port.

        `/livez` and `/readyz` say whether the process is alive and takes work.

        Args:
            host: Address to listen at.
            port: Port to listen at; 0 for any free one.
            engines: The engines, whose present state is measured when somebody asks.
            refusals: Has counted what was refused.
            standing: How the server is.

        Raises:
            MetricsError: The address cannot be listened at.
        """
        for outcome in Outcome:  # so that every series is there from the start
            self._episodes.labels(outcome.name.lower())
        for cause in (Cause.AGENT_LEFT, Cause.ACTION_TIMEOUT, Cause.AGENT_FAILED):
            self._early.labels("void", cause.name.lower())
        self.registry.register(_Present(engines, refusals, standing))
        try:
            server = _Pages((host, port), self, standing, asyncio.get_running_loop())
        except OSError as error:
            raise MetricsError(
                f"cannot listen at {host}:{port} for --metrics ({error.strerror}); choose another "
                "port, or 0 for any free one"
            ) from error
        thread = threading.Thread(
            target=server.serve_forever, name="animalcat-metrics", daemon=True
        )
        thread.start()
        with engines.parts.bus.listen(self.take):
            try:
                yield int(server.server_address[1])
            finally:
                server.shutdown()
                thread.join()
                server.server_close()


class _Pages(ThreadingHTTPServer):
    """The port of measurements: three pages, and nothing else."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        metrics: Metrics,
        standing: Standing,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Page)
        self.metrics = metrics
        self.standing = standing
        self.loop = loop

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what fails, unless whoever asked has gone."""
        if not isinstance(sys.exception(), ConnectionError):
            log.exception("a page of measurements failed")

    def alive(self) -> bool:
        """Return whether the event loop answers."""
        answered = threading.Event()
        try:
            self.loop.call_soon_threadsafe(answered.set)
        except RuntimeError:  # it is closed
            return False
        return answered.wait(LIVE_SECONDS)


class _Page(BaseHTTPRequestHandler):
    """Answers one request."""

    server: _Pages  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version = "animalcat"
    sys_version = ""
    timeout = 30.0

    def do_GET(self) -> None:
        """Answer by path."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            import prometheus_client.exposition as exposition

            encode, kind = exposition.choose_encoder(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, encode(self.server.metrics.registry), kind)
        elif path == "/livez":
            well = self.server.alive()
            self._say(well, "alive" if well else "the event loop does not answer")
        elif path == "/readyz":
            reasons = list(self.server.standing.readiness.reasons.values())
            if not self.server.alive():
                reasons.append("the event loop does not answer")
            self._say(not reasons, "\n".join(reasons) or "ready")
        else:
            words = b"there are /metrics, /livez and /readyz\n"
            self._answer(HTTPStatus.NOT_FOUND, words, "text/plain")

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: who measures comes every few seconds."""

    def _say(self, well: bool, words: str) -> None:
        status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
        self._answer(status, f"{words}\n".encode(), "text/plain; charset=utf-8")

    def _answer(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Present:
    """What is measured when somebody asks; a database that hangs does not keep them waiting."""

    def __init__(self, engines: Engines, refusals: Refusals, standing: Standing) -> None:
        self._engines = engines
        self._refusals = refusals
        self._standing = standing

    def collect(self) -> Iterator[Metric]:
        """Yield the measurements; the library calls it in a thread of its own."""
        yield from self._of_work()
        yield from self._of_machine()
        yield from self._of_ends()

    def _of_work(self) -> Iterator[Metric]:
        from prometheus_client.metrics_core import CounterMetricFamily

        parts, readiness = self._engines.parts, self._standing.readiness
        sessions = readiness.sessions
        if readiness.answers:
            with suppress(DBAPIError):
                sessions = parts.store.count_sessions()
        if sessions is not None:
            states = [s.name for s in SessionState if s is not SessionState.UNREADABLE]
            counted = {(name.lower(),): sessions.get(name, 0) for name in states}
            yield _gauges("animalcat_sessions", "Sessions by state.", ["state"], counted)
        yield _gauge("animalcat_agents", "Agents that are connected.", self._engines.agents)
        placement, fits = parts.workers.status(), parts.fitter.fitting()
        busy = Counter("playing" if session else "idle" for session, _ in placement.workers)
        workers = {(state,): busy[state] for state in ("playing", "idle")}
        yield _gauges("animalcat_workers", "Simulators that run.", ["state"], workers)
        yield _gauge(
            "animalcat_waiting_for_workers",
            "Agents that wait for a simulator.",
            parts.workers.room.waiting,
        )
        works = Counter("fitting" if busy else "idle" for _, busy in fits.processes)
        processes = {(state,): works[state] for state in ("fitting", "idle")}
        yield _gauges("animalcat_fits", "Processes that make fits.", ["state"], processes)
        yield _gauge("animalcat_fits_waiting", "Fits that wait for a process.", fits.waiting)
        in_memory = len(self._engines.in_memory)
        yield _gauge("animalcat_engines", "Sessions that are in memory.", in_memory)
        refused = CounterMetricFamily(
            "animalcat_refusals", "What was refused or ended.", labels=["what"]
        )
        for what, number in self._refusals.totals().items():
            refused.add_metric([what], number)
        yield refused

    def _of_machine(self) -> Iterator[Metric]:
        from prometheus_client.metrics_core import CounterMetricFamily, SummaryMetricFamily

        standing, readiness = self._standing, self._standing.readiness
        free, size = standing.disk()
        if size:
            where = "where the data directory is."
            yield _gauge("animalcat_disk_free_bytes", f"Bytes that are free {where}", free)
            yield _gauge("animalcat_disk_bytes", f"All bytes {where}", size)
        if (memory := standing.memory.available()) is not None:
            words = "Bytes of memory that processes can still get."
            yield _gauge("animalcat_memory_available_bytes", words, memory)
        yield CounterMetricFamily(
            "animalcat_out_of_memory_kills",
            "Processes of the server's control groups that were killed for want of memory.",
            value=standing.memory.kills() or 0,
        )
        looks, seconds = readiness.looks
        yield SummaryMetricFamily(
            "animalcat_database_seconds", "Time of looks at the database.", looks, seconds
        )
        yield _gauge("animalcat_ready", "Whether the server takes work.", int(readiness.ready))
        yield _gauge(
            "animalcat_uptime_seconds", "Seconds since the start.", standing.uptime_seconds
        )
        build = {(version(), platform.python_version()): 1}
        yield _gauges("animalcat_build_info", "What runs.", ["version", "python"], build)

    def _of_ends(self) -> Iterator[Metric]:
        ends = sorted(self._standing.expiries(), key=lambda expiry: expiry.ends)[:MOST_ENDS]
        for what in ("certificate", "token"):
            found = {(e.name,): e.ends.timestamp() for e in ends if e.what == what}
            yield _gauges(
                f"animalcat_{what}_ends_timestamp_seconds",
                f"When a {what} ends, in seconds since 1970.",
                [what],
                found,
            )


def _gauge(name: str, words: str, value: float) -> Metric:
    return _gauges(name, words, [], {(): value})


def _gauges(
    name: str, words: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]
) -> Metric:
    from prometheus_client.metrics_core import GaugeMetricFamily

    family = GaugeMetricFamily(name, words, labels=labels)
    for of, value in values.items():
        family.add_metric(of, value)
    return family


class CallCounter(grpc.aio.ServerInterceptor):
    """Counts calls by method and status."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Count the call when it ends."""
        handler: Any = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None:
            self._metrics.called("unknown", "UNIMPLEMENTED", None)
            return None
        streams = handler.request_streaming or handler.response_streaming
        kind = (
            f"{'stream' if handler.request_streaming else 'unary'}_"
            f"{'stream' if handler.response_streaming else 'unary'}"
        )
        call = getattr(handler, kind)
        if not inspect.iscoroutinefunction(call):
            return handler

        async def counted(request: Any, context: Any) -> Any:
            start, code = time.perf_counter(), "OK"
            try:
                return await call(request, context)
            except BaseException:
                status = context.code()
                code = status.name if hasattr(status, "name") else "CANCELLED"
                raise
            finally:
                self._metrics.called(method, code, None if streams else time.perf_counter() - start)

        make: Any = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(counted, handler.request_deserializer, handler.response_serializer)
