"""Offers a server's measurements to Prometheus, on a port of their own.

Names and meanings are listed in `docs/operations.md`. The library is in the extra `metrics`.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import grpc

from animalcat.installing import install
from animalcat.service.refusals import Refusals
from animalcat.service.session.disk import free_bytes
from animalcat.service.session.engines import Engines
from animalcat.service.session.events import Event
from animalcat.values import Outcome, SessionState

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

STEPS: Final = (10, 30, 100, 300, 1000, 3000, 10_000)
"""Bounds of the histogram of decisions per episode."""


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
    def served(self, host: str, port: int, engines: Engines, refusals: Refusals) -> Generator[int]:
        """Offer the measurements over HTTP during the block; yields the port.

        Args:
            host: Address to listen at.
            port: Port to listen at; 0 for any free one.
            engines: The engines, whose present state is measured when somebody asks.
            refusals: Has counted what was refused.

        Raises:
            MetricsError: The address cannot be listened at.
        """
        import prometheus_client as prometheus

        for outcome in Outcome:  # so that every series is there from the start
            self._episodes.labels(outcome.name.lower())
        self.registry.register(_Present(engines, refusals))
        try:
            server, thread = prometheus.start_http_server(port, host, self.registry)
        except OSError as error:
            raise MetricsError(
                f"cannot listen at {host}:{port} for --metrics ({error.strerror}); choose another "
                "port, or 0 for any free one"
            ) from error
        with engines.parts.bus.listen(self.take):
            try:
                yield server.server_port
            finally:
                server.shutdown()
                thread.join()
                server.server_close()


class _Present:
    """What is measured when somebody asks."""

    def __init__(self, engines: Engines, refusals: Refusals) -> None:
        self._engines = engines
        self._refusals = refusals

    def collect(self) -> Iterator[Metric]:
        """Yield the measurements; the library calls it in a thread of its own."""
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        states = GaugeMetricFamily("animalcat_sessions", "Sessions by state.", labels=["state"])
        counted = self._engines.parts.store.count_sessions()
        for state in SessionState:
            if state is not SessionState.UNREADABLE:
                states.add_metric([state.name.lower()], counted.get(state.name, 0))
        yield states
        yield GaugeMetricFamily(
            "animalcat_agents", "Agents that are connected.", value=self._engines.agents
        )
        yield GaugeMetricFamily(
            "animalcat_engines",
            "Sessions that are in memory.",
            value=len(self._engines.in_memory),
        )
        refused = CounterMetricFamily(
            "animalcat_refusals", "What was refused or ended.", labels=["what"]
        )
        for what, number in self._refusals.totals().items():
            refused.add_metric([what], number)
        yield refused
        with suppress(OSError):
            yield GaugeMetricFamily(
                "animalcat_disk_free_bytes",
                "Bytes that are free where the data directory is.",
                value=free_bytes(self._engines.parts.data),
            )


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
