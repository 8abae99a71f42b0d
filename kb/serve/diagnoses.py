"""`POST /v1/diagnose` and `POST /v1/classify`: logs to answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from kb.classify import Outcome, Result
from kb.classify.result import Unreadable
from kb.containment import reason
from kb.diagnosis import Diagnosis
from kb.errors import LogError
from kb.log import Log
from kb.serve.bodies import Named, opened_log, opened_units
from kb.serve.metrics import Metrics
from kb.serve.parameters import number_of, one_of
from kb.serve.refusal import RefusedError
from kb.serve.respond import json_response, to_line
from kb.serve.turns import Turns
from kb.service.service import DEFAULT_MATCHES
from kb.service.wire import to_answer

MAX_TOP = 50
"""Incidents of one answer."""
UNITS = ("file", "job")


class Diagnoses:
    """Answers about logs."""

    def __init__(self, turns: Turns, metrics: Metrics) -> None:
        self._turns = turns
        self._metrics = metrics

    async def of(self, request: Request, log: Log, top: int = DEFAULT_MATCHES) -> Diagnosis:
        """The diagnosis of a log, counted.

        Raises:
            LogError: it cannot be read.
            RefusedError: too many wait, or it takes too long.
        """
        diagnosis = await self._turns.diagnose(request, lambda: log, top)
        first = diagnosis.matches[0].incident.id if diagnosis.matches else None
        self._metrics.diagnosed(diagnosis.verdict, first)
        return diagnosis

    async def diagnose(self, request: Request) -> Response:
        """One log, or the logs of one job."""
        top = number_of(request, "top", DEFAULT_MATCHES, MAX_TOP)
        async with opened_log(request) as log:
            diagnosis = await self.of(request, log, top)
        return await self._turns.write(lambda: json_response(to_answer(diagnosis)))

    async def classify(self, request: Request) -> Response:
        """Many logs: a row for each, as soon as it is known."""
        jobs = one_of(request, "unit", UNITS) == "job"
        async with AsyncExitStack() as stack:
            units = await stack.enter_async_context(opened_units(request, jobs=jobs))
            held = stack.pop_all()
        return StreamingResponse(
            self._rows(request, units, held), media_type="application/x-ndjson"
        )

    async def _rows(
        self, request: Request, units: list[Named], held: AsyncExitStack
    ) -> AsyncIterator[str]:
        async with held:
            for unit in units:
                outcome = await self._outcome(request, unit)
                row = outcome if isinstance(outcome, Unreadable) else outcome.row()
                yield f"{to_line(row)}\n"

    async def _outcome(self, request: Request, unit: Named) -> Outcome:
        """A failure of one unit is its row, and does not stop the others."""
        try:
            return Result.of(unit.path, await self.of(request, Log(unit.sources), top=1))
        except (LogError, RefusedError) as error:
            return Unreadable(unit.path, str(error))
        except Exception as error:  # noqa: BLE001  one broken file must not stop thousands
            return Unreadable(unit.path, str(LogError(unit.path, reason(error))))
