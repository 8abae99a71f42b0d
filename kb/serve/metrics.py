"""What is counted, in the form of Prometheus. With several processes, each writes its numbers into
a directory that `PROMETHEUS_MULTIPROC_DIR` names, and any of them answers for all."""

from __future__ import annotations

import os
import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb.serve.turns import Turns
from kb.verdict import Verdict

SHARED_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the classes of latencies: a diagnosis takes 20 ms, the last in a queue 2 s."""
_NO_ROUTE = "none"
"""Of requests for what does not exist: their paths would be labels without end."""


class Metrics:
    """The numbers of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._diagnoses = Counter(
            "kb_diagnoses",
            "Diagnoses, by verdict and first incident.",
            ("verdict", "incident"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "kb_request_seconds",
            "Time to the end of the answer.",
            ("route", "status"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._generation = Gauge(
            "kb_index_generation",
            "The number of the state of the index; it grows when records change.",
            registry=self._registry,
            multiprocess_mode="max",
        )

    def diagnosed(self, verdict: Verdict, incident: str | None) -> None:
        """Count a diagnosis."""
        self._diagnoses.labels(verdict.value, incident or "").inc()

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._seconds.labels(route, str(status)).observe(seconds)

    async def page(self, request: Request, turns: Turns) -> Response:
        """All numbers, as Prometheus reads them."""
        self._generation.set((await turns.ask(request, turns.service.state)).generation)
        registry = self._registry
        if SHARED_DIRECTORY in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return Response(generate_latest(registry), media_type="text/plain; version=0.0.4")


class Timed:
    """Counts each request and its time."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 500, time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", _NO_ROUTE)
            self._metrics.answered(route, status, time.perf_counter() - began)
