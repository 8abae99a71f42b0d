"""One process that diagnoses units, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from kb.classify.inputs import open_log
from kb.classify.result import Outcome, Result, Unreadable
from kb.diagnosis.scan import RangeScan
from kb.errors import KbError, LogError
from kb.log.ranges import Range
from kb.service.service import Service, result_of
from kb.settings import Settings


class Worker:
    """Opens the index once."""

    def __init__(self, settings: Settings) -> None:
        self._service = Service(settings, leads=False)
        result_of(self._service.open())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._service.close()

    def classify(self, unit: str) -> Outcome:
        """Diagnose a unit. A failure in one unit does not stop the others."""
        try:
            return self.diagnose(unit)
        except KbError as error:
            return Unreadable(unit, str(error))
        except Exception as error:  # noqa: BLE001  one broken file must not stop thousands
            failure = LogError(unit, f"{type(error).__name__}: {error}")
            return Unreadable(unit, str(failure))

    def diagnose(self, unit: str, ranges: Iterable[RangeScan] | None = None) -> Result:
        """Diagnose a unit. All `ranges` of a file may have been scanned by other workers.

        Raises:
            Exception: it cannot be diagnosed.
        """
        diagnosis = self._service.diagnose(lambda: open_log(unit), 1, ranges)
        return Result.of(unit, result_of(diagnosis))

    def scan(self, part: Range) -> RangeScan:
        """Scan a range of a file, for the worker that diagnoses it.

        Raises:
            Exception: it cannot be read.
        """
        return result_of(self._service.scan(part))
