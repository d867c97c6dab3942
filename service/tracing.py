"""Traces each decision by OpenTelemetry: how it was chosen, played, stored and learnt from.

The libraries are in the extra `otel`, and are loaded only where a collector is named.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from animalcat.extending.installing import install
from animalcat.service.logs import about
from animalcat.wire.protocol import version

NAME: Final = "animalcat"
"""What the service is called in traces."""
_tracer: Any = None
"""Makes spans; None while nobody traces, which costs nothing."""


class TracesError(Exception):
    """Nothing can be traced; the message says why, and what to do."""


@contextmanager
def traced(url: str) -> Generator[None]:
    """Send traces to a collector while the block lasts.

    Args:
        url: Where the collector takes OTLP over HTTP, without the path; empty to trace nothing.

    Raises:
        TracesError: The libraries are not installed.
    """
    global _tracer
    if not url:
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError:
        raise TracesError(
            "ANIMALCAT_TRACES needs libraries that are not installed; install them with: "
            f"{install('otel')}"
        ) from None
    resource = Resource.create({"service.name": NAME, "service.version": version()})
    provider = TracerProvider(resource=resource)
    exporter = OTLPSpanExporter(endpoint=f"{url.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _tracer = provider.get_tracer(NAME)
    try:
        yield
    finally:
        _tracer = None
        provider.shutdown()


@contextmanager
def span(name: str, **attributes: str | int | float | bool) -> Generator[None]:
    """Trace the block, within what is traced around it; log lines in it carry the trace's id.

    Args:
        name: What is done.
        attributes: What it is about.
    """
    if _tracer is None:
        yield
        return
    told = {f"animalcat.{key}": value for key, value in attributes.items()}
    with (
        _tracer.start_as_current_span(name, attributes=told) as current,
        about(trace=f"{current.get_span_context().trace_id:032x}"),
    ):
        yield


def note(**attributes: str | int | float | bool) -> None:
    """Add to the innermost block that is traced what it is about."""
    if _tracer is None:
        return
    from opentelemetry import trace

    for key, value in attributes.items():
        trace.get_current_span().set_attribute(f"animalcat.{key}", value)
